import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { normalizeLastAxes } from "./last_axes.ts";
import type { SumAndNorm } from "./normalize.ts";
import { normalizedSizes, type RmsNormOptions } from "./options.ts";

/**
 * x / √(mean of x² + eps) · weight over the last axes. Statistics are float32 (float64 of float64), the result has the
 * dtype of x. Gradients of x and weight, of any order.
 *
 * @param x [..., ...normalizedShape], a float dtype, any strides
 *
 * @example
 * rmsNorm(tensor([[3, 4], [-30, 40]]), { eps: 0 }); // float32 [[0.84852815, 1.1313709], [-0.84852815, 1.1313709]]
 *
 * @throws {DTypeError} for what is no float, and for a weight of neither the dtype of x nor float32.
 * @throws {ShapeError} for a scalar, a shape that is not that of the last axes, or another shape of the weight.
 * @throws {ArgumentError} for an eps that is below 0 or not finite, and for an unknown option.
 */
export function rmsNorm<D extends DType>(x: Tensor<D>, ...options: RmsNormArguments): Tensor<D>;
export function rmsNorm(...values: unknown[]): Tensor {
  const { x, ...options } = rmsNormParameters(values);
  return normalizeLastAxes("rmsNorm", false, { x }, options).out;
}
rmsNorm.method = "same" as const;

/** The ways to pass the options: by name, or by position in this order. */
export type RmsNormArguments = Given<RmsNormOptions, ["normalizedShape", "weight", "eps"]>;

const optionsOfRmsNorm = {
  normalizedShape: optional(normalizedSizes),
  weight: optional(aTensor),
  eps: optional(someNumber, 1e-6),
} as const;
const rmsNormParameters = parameters("rmsNorm", { x: operand(aTensor), ...optionsOfRmsNorm });

/**
 * `sum` = x + residual and `out` = rmsNorm(sum), in one pass over both: a block's way back into its residual stream,
 * and what the next block starts from. The gradients of both results come together in one pass too.
 *
 * @param x [..., ...normalizedShape], a float dtype, any strides
 * @param residual the same shape and dtype, any strides
 *
 * @example
 * const { sum, out } = addRmsNorm(tensor([1, 4]), tensor([2, 0]), { eps: 0 }); // [3, 4] and [0.84852815, 1.1313709]
 *
 * @throws {DTypeError} as {@link rmsNorm}, and for a residual of another dtype.
 * @throws {ShapeError} as {@link rmsNorm}, and for a residual of another shape.
 * @throws {ArgumentError} as {@link rmsNorm}.
 */
export function addRmsNorm<D extends DType>(
  x: Tensor<D>,
  residual: Tensor<D>,
  ...options: RmsNormArguments
): SumAndNorm<D>;
export function addRmsNorm(...values: unknown[]): SumAndNorm<DType> {
  const { x, residual, ...options } = addRmsNormParameters(values);
  return normalizeLastAxes("addRmsNorm", false, { x, residual }, options) as SumAndNorm<DType>;
}
const addRmsNormParameters = parameters("addRmsNorm", {
  x: operand(aTensor),
  residual: operand(aTensor),
  ...optionsOfRmsNorm,
});
