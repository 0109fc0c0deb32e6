import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { normalizeLastAxes } from "./last_axes.ts";
import type { SumAndNorm } from "./normalize.ts";
import { type LayerNormOptions, normalizedSizes } from "./options.ts";

/**
 * (x − mean) / √(variance + eps) · weight + bias over the last axes, the variance without correction. Statistics are
 * float32 (float64 of float64), the result has the dtype of x. Gradients of x, weight and bias, of any order.
 *
 * @param x [..., ...normalizedShape], a float dtype, any strides
 *
 * @example
 * layerNorm(tensor([[1, 3], [10, 30]]), { weight: tensor([1, 2]) }); // float32 [[-1, 2], [-1, 2]], but for eps
 *
 * @throws {DTypeError} for what is no float, and for a weight or bias of neither the dtype of x nor float32.
 * @throws {ShapeError} for a scalar, a shape that is not that of the last axes, or another shape of weight or bias.
 * @throws {ArgumentError} for an eps that is below 0 or not finite, and for an unknown option.
 */
export function layerNorm<D extends DType>(x: Tensor<D>, ...options: LayerNormArguments): Tensor<D>;
export function layerNorm(...values: unknown[]): Tensor {
  const { x, ...options } = layerNormParameters(values);
  return normalizeLastAxes("layerNorm", true, { x }, options).out;
}
layerNorm.method = "same" as const;

/** The ways to pass the options: by name, or by position in this order. */
export type LayerNormArguments = Given<LayerNormOptions, ["normalizedShape", "weight", "bias", "eps"]>;

const optionsOfLayerNorm = {
  normalizedShape: optional(normalizedSizes),
  weight: optional(aTensor),
  bias: optional(aTensor),
  eps: optional(someNumber, 1e-5),
} as const;
const layerNormParameters = parameters("layerNorm", { x: operand(aTensor), ...optionsOfLayerNorm });

/**
 * `sum` = x + residual and `out` = layerNorm(sum), in one pass over both, as {@link addRmsNorm} does it.
 *
 * @param x [..., ...normalizedShape], a float dtype, any strides
 * @param residual the same shape and dtype, any strides
 *
 * @example
 * const { sum, out } = addLayerNorm(tensor([1, 10]), tensor([0, 20])); // [1, 30] and [-1, 1], but for eps
 *
 * @throws {DTypeError} as {@link layerNorm}, and for a residual of another dtype.
 * @throws {ShapeError} as {@link layerNorm}, and for a residual of another shape.
 * @throws {ArgumentError} as {@link layerNorm}.
 */
export function addLayerNorm<D extends DType>(
  x: Tensor<D>,
  residual: Tensor<D>,
  ...options: LayerNormArguments
): SumAndNorm<D>;
export function addLayerNorm(...values: unknown[]): SumAndNorm<DType> {
  const { x, residual, ...options } = addLayerNormParameters(values);
  return normalizeLastAxes("addLayerNorm", true, { x, residual }, options) as SumAndNorm<DType>;
}
const addLayerNormParameters = parameters("addLayerNorm", {
  x: operand(aTensor),
  residual: operand(aTensor),
  ...optionsOfLayerNorm,
});
