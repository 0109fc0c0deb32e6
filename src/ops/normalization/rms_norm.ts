import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { normalizeLastAxes } from "./last_axes.ts";
import type { SumAndNorm } from "./normalize.ts";
import { normalizedSizes, type RmsNormOptions } from "./options.ts";

/**
 * Computes RMS normalization over the last axes: x / √(mean of x² + eps) · weight. Statistics are float32, or float64
 * for float64; the result has the dtype of x. Differentiable to any order in x and weight.
 *
 * @param x [..., ...normalizedShape], of a float dtype, with any strides
 *
 * @example
 * rmsNorm(tensor([[3, 4], [-30, 40]]), { eps: 0 }); // float32 [[0.84852815, 1.1313709], [-0.84852815, 1.1313709]]
 *
 * @throws {DTypeError} if x is not a float, or if weight has neither the dtype of x nor float32.
 * @throws {ShapeError} for a scalar, a normalizedShape that is not the sizes of the last axes, or a weight of another
 * shape.
 * @throws {ArgumentError} if eps is below 0 or not finite, or an option is unknown.
 */
export function rmsNorm<D extends DType>(x: Tensor<D>, ...options: RmsNormArguments): Tensor<D>;
export function rmsNorm(...values: unknown[]): Tensor {
  const given = rmsNormParameters(values);
  return normalizeLastAxes("rmsNorm", false, given, given).out;
}
rmsNorm.method = "same" as const;

/** Options of RMS norms: named, or positional in this order. */
export type RmsNormArguments = Given<RmsNormOptions, ["normalizedShape", "weight", "eps"]>;

const optionsOfRmsNorm = {
  normalizedShape: optional(normalizedSizes),
  weight: optional(aTensor),
  eps: optional(someNumber, 1e-6),
} as const;
const rmsNormParameters = parameters("rmsNorm", { x: operand(aTensor), ...optionsOfRmsNorm });

/**
 * Computes `sum` = x + residual and `out` = rmsNorm(sum) in one pass. In a transformer, `sum` updates the residual
 * stream and `out` is the input of the next block. The backward pass combines the gradients of both results in one pass
 * over the elements.
 *
 * @param x [..., ...normalizedShape], of a float dtype, with any strides
 * @param residual of the same shape and dtype, with any strides
 *
 * @example
 * const { sum, out } = addRmsNorm(tensor([1, 4]), tensor([2, 0]), { eps: 0 }); // [3, 4] and [0.84852815, 1.1313709]
 *
 * @throws {DTypeError} as {@link rmsNorm}, and if the residual has a different dtype.
 * @throws {ShapeError} as {@link rmsNorm}, and if the residual has a different shape.
 * @throws {ArgumentError} as {@link rmsNorm}.
 */
export function addRmsNorm<D extends DType>(
  x: Tensor<D>,
  residual: Tensor<D>,
  ...options: RmsNormArguments
): SumAndNorm<D>;
export function addRmsNorm(...values: unknown[]): SumAndNorm<DType> {
  const given = addRmsNormParameters(values);
  return normalizeLastAxes("addRmsNorm", false, given, given) as SumAndNorm<DType>;
}
const addRmsNormParameters = parameters("addRmsNorm", {
  x: operand(aTensor),
  residual: operand(aTensor),
  ...optionsOfRmsNorm,
});
