import { ArgumentError } from "../../core/errors.ts";
import type { DType, FloatDType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { drawFloats, type RandomOptions } from "./distribution.ts";
import type { Distribution } from "./primitive.ts";

const standard: Distribution = { kind: "uniform", low: 0, high: 1 };

/**
 * Uniform random numbers in [0, 1), never 1: 24 bits in float32, 53 in float64; float16 and bfloat16 are the float32
 * numbers rounded down. The same on every backend.
 *
 * @param options `dtype`, a float, by default float32; `generator`
 *
 * @example
 * manualSeed(0);
 * rand([2, 3]);
 *
 * @throws {ShapeError} @throws {DTypeError} for a dtype that is no float.
 */
export const rand = <D extends FloatDType = "float32">(shape: Shape, options: RandomOptions<D> = {}): Tensor<D> =>
  drawFloats("rand", shape, standard, options);

/**
 * Uniform numbers in [0, 1) in the shape and, where none is given, the dtype of `x`, which must be a float.
 * @see {@link rand}
 */
export const randLike = <D extends DType>(x: Tensor<D>, options: RandomOptions<D> = {}): Tensor<D> =>
  drawFloats("randLike", x.shape, standard, { ...options, dtype: options.dtype ?? x.dtype });

/**
 * Uniform random numbers in [low, high). A number that rounds to `high` becomes `low`.
 *
 * @param options `dtype`, a float, by default float32; `generator`
 *
 * @example
 * uniform(-0.1, 0.1, [256, 10], { requiresGrad: true });
 *
 * @throws {ArgumentError} unless low ≤ high, both finite, their difference too.
 */
export function uniform<D extends FloatDType = "float32">(
  low: number,
  high: number,
  shape: Shape,
  options: RandomOptions<D> = {},
): Tensor<D> {
  if (!(low <= high && Number.isFinite(high - low)))
    throw new ArgumentError("uniform", "invalidRange", `expected finite numbers low ≤ high, got ${low} and ${high}`);
  return drawFloats("uniform", shape, { kind: "uniform", low, high }, options);
}
