import { ArgumentError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import type { ComplexDType, DType, FloatDType } from "../../tensor/dtype.ts";
import { aShape, type SizedArguments, shapeList, tensorOrGone } from "../../tensor/kinds.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { drawFloats, type RandomOptions, randomOptions } from "./distribution.ts";
import type { Distribution } from "./primitive.ts";

const standard: Distribution = { kind: "normal", mean: 0, deviation: 1 };

/**
 * Returns normal random numbers with mean 0 and variance 1, by the Box–Muller transform; the largest float32 is 6.66.
 * Numbers are bitwise the same on every backend.
 *
 * @param options `dtype`: a float or complex dtype, default float32; `generator`
 *
 * @example
 * randn([784, 10], { requiresGrad: true });
 *
 * @throws {ShapeError}
 * @throws {DTypeError} for a dtype that is not a float.
 */
export function randn<D extends FloatDType | ComplexDType = "float32">(
  ...shape: SizedArguments<RandomOptions<D>>
): Tensor<D>;
export function randn(...values: unknown[]): Tensor {
  const { shape, ...options } = randnParameters(values);
  return drawFloats("randn", shape, standard, options, true);
}
const randnParameters = parameters("randn", { shape: required(aShape), ...randomOptions });

/**
 * Returns normal random numbers in the shape and, by default, the dtype of `x`, which must be a float.
 *
 * @example
 * randnLike(zeros([2, 3])).shape; // [2, 3]
 *
 * @throws as {@link randn}
 */
export function randnLike<D extends DType, E extends DType = D>(x: Tensor<D>, options?: RandomOptions<E>): Tensor<E>;
export function randnLike(...values: unknown[]): Tensor {
  const { x, dtype = x.dtype, ...options } = randnLikeParameters(values);
  return drawFloats("randnLike", x.shape, standard, { ...options, dtype }, true);
}
const randnLikeParameters = parameters("randnLike", { x: operand(tensorOrGone), ...randomOptions });

/**
 * Returns normal random numbers with the given mean and standard deviation.
 *
 * @param options `dtype`: a float or complex dtype, default float32; `generator`
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
  options?: RandomOptions<D>,
): Tensor<D>;
export function normal(...values: unknown[]): Tensor {
  const { mean, std, shape, ...options } = normalParameters(values);
  if (!(Number.isFinite(mean) && Number.isFinite(std) && std >= 0))
    throw new ArgumentError(
      "normal",
      "invalidDeviation",
      `expected a finite mean and a finite std ≥ 0, got ${mean} and ${std}`,
    );
  return drawFloats("normal", shape, { kind: "normal", mean, deviation: std }, options);
}
const normalParameters = parameters("normal", {
  mean: required(someNumber),
  std: required(someNumber),
  shape: required(shapeList),
  ...randomOptions,
});
