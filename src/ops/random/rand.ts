import { ArgumentError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import type { ComplexDType, DType, FloatDType } from "../../tensor/dtype.ts";
import { aShape, type SizedArguments, shapeList, tensorOrGone } from "../../tensor/kinds.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { drawFloats, type RandomOptions, randomOptions } from "./distribution.ts";
import type { Distribution } from "./primitive.ts";

const standard: Distribution = { kind: "uniform", low: 0, high: 1 };

/**
 * Returns uniform random numbers in [0, 1), never 1, with 24 bits in float32 and 53 in float64; float16 and bfloat16
 * are the float32 numbers rounded down. The parts of complex numbers are drawn in the same way. Numbers are the same on
 * every backend.
 *
 * @param options `dtype`: a float or complex dtype, default float32; `generator`
 *
 * @example
 * manualSeed(0);
 * rand([2, 3]);
 *
 * @throws {ShapeError}
 * @throws {DTypeError} for a dtype that is not a float.
 */
export function rand<D extends FloatDType | ComplexDType = "float32">(
  ...shape: SizedArguments<RandomOptions<D>>
): Tensor<D>;
export function rand(...values: unknown[]): Tensor {
  const { shape, ...options } = randParameters(values);
  return drawFloats("rand", shape, standard, options, true);
}
const randParameters = parameters("rand", { shape: required(aShape), ...randomOptions });

/**
 * Returns uniform random numbers in [0, 1) in the shape and, by default, the dtype of `x`, which must be a float.
 *
 * @example
 * randLike(zeros([2, 3])).shape; // [2, 3]
 *
 * @throws as {@link rand}
 */
export function randLike<D extends DType, E extends DType = D>(x: Tensor<D>, options?: RandomOptions<E>): Tensor<E>;
export function randLike(...values: unknown[]): Tensor {
  const { x, dtype = x.dtype, ...options } = randLikeParameters(values);
  return drawFloats("randLike", x.shape, standard, { ...options, dtype }, true);
}
const randLikeParameters = parameters("randLike", { x: operand(tensorOrGone), ...randomOptions });

/**
 * Returns uniform random numbers in [low, high). A number that rounds to `high` becomes `low`.
 *
 * @param options `dtype`: a float, default float32; `generator`
 *
 * @example
 * uniform(-0.1, 0.1, [256, 10], { requiresGrad: true });
 *
 * @throws {ArgumentError} unless low ≤ high, and both and their difference are finite.
 */
export function uniform<D extends FloatDType = "float32">(
  low: number,
  high: number,
  shape: Shape,
  options?: RandomOptions<D>,
): Tensor<D>;
export function uniform(...values: unknown[]): Tensor {
  const { low, high, shape, ...options } = uniformParameters(values);
  if (!(low <= high && Number.isFinite(high - low)))
    throw new ArgumentError("uniform", "invalidRange", `expected finite numbers low ≤ high, got ${low} and ${high}`);
  return drawFloats("uniform", shape, { kind: "uniform", low, high }, options);
}
const uniformParameters = parameters("uniform", {
  low: required(someNumber),
  high: required(someNumber),
  shape: required(shapeList),
  ...randomOptions,
});
