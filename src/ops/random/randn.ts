import { ArgumentError } from "../../core/errors.ts";
import type { DType, FloatDType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { drawFloats, type RandomOptions } from "./distribution.ts";
import type { Distribution } from "./primitive.ts";

const standard: Distribution = { kind: "normal", mean: 0, deviation: 1 };

/**
 * Normal random numbers of mean 0 and variance 1, by Box and Muller; the largest float32 is 6.66. The same bit by bit
 * on every backend.
 *
 * @param options `dtype`, a float, by default float32; `generator`
 *
 * @example
 * randn([784, 10], { requiresGrad: true });
 *
 * @throws {ShapeError} @throws {DTypeError} for a dtype that is no float.
 */
export const randn = <D extends FloatDType = "float32">(shape: Shape, options: RandomOptions<D> = {}): Tensor<D> =>
  drawFloats("randn", shape, standard, options);

/** Normal numbers in the shape and, where none is given, the dtype of `x`, which must be a float. @see {@link randn} */
export const randnLike = <D extends DType>(x: Tensor<D>, options: RandomOptions<D> = {}): Tensor<D> =>
  drawFloats("randnLike", x.shape, standard, { ...options, dtype: options.dtype ?? x.dtype });

/**
 * Normal random numbers of a mean and a standard deviation.
 *
 * @param options `dtype`, a float, by default float32; `generator`
 *
 * @example
 * normal(0, 0.02, [vocabulary, width], { requiresGrad: true });
 *
 * @throws {ArgumentError} unless both are finite and std ≥ 0.
 */
export function normal<D extends FloatDType = "float32">(
  mean: number,
  std: number,
  shape: Shape,
  options: RandomOptions<D> = {},
): Tensor<D> {
  if (!(Number.isFinite(mean) && Number.isFinite(std) && std >= 0))
    throw new ArgumentError(
      "normal",
      "invalidDeviation",
      `expected a finite mean and a finite std ≥ 0, got ${mean} and ${std}`,
    );
  return drawFloats("normal", shape, { kind: "normal", mean, deviation: std }, options);
}
