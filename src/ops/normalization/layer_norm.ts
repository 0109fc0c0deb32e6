import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { normalizeLastAxes } from "./last_axes.ts";
import type { SumAndNorm } from "./normalize.ts";
import { type LayerNormOptions, normalizedSizes } from "./options.ts";

/**
 * Computes layer normalization over the last axes: (x − mean) / √(variance + eps) · weight + bias, with the population
 * variance. Statistics are float32, or float64 for float64; the result has the dtype of x. Differentiable to any order
 * in x, weight and bias.
 *
 * @param x [..., ...normalizedShape], of a float dtype, with any strides
 *
 * @example
 * layerNorm(tensor([[1, 3], [10, 30]]), { weight: tensor([1, 2]) }); // float32 [[-1, 2], [-1, 2]], up to eps
 *
 * @throws {DTypeError} if x is not a float, or if weight or bias has neither the dtype of x nor float32.
 * @throws {ShapeError} for a scalar, a normalizedShape that is not the sizes of the last axes, or a weight or bias of
 * another shape.
 * @throws {ArgumentError} if eps is below 0 or not finite, or an option is unknown.
 */
export function layerNorm<D extends DType>(x: Tensor<D>, ...options: LayerNormArguments): Tensor<D>;
export function layerNorm(...values: unknown[]): Tensor {
  const given = layerNormParameters(values);
  return normalizeLastAxes("layerNorm", true, given, given).out;
}
layerNorm.method = "same" as const;

/** Options of layer norms: named, or positional in this order. */
export type LayerNormArguments = Given<LayerNormOptions, ["normalizedShape", "weight", "bias", "eps"]>;

const optionsOfLayerNorm = {
  normalizedShape: optional(normalizedSizes),
  weight: optional(aTensor),
  bias: optional(aTensor),
  eps: optional(someNumber, 1e-5),
} as const;
const layerNormParameters = parameters("layerNorm", { x: operand(aTensor), ...optionsOfLayerNorm });

/**
 * Computes `sum` = x + residual and `out` = layerNorm(sum) in one pass, like {@link addRmsNorm}.
 *
 * @param x [..., ...normalizedShape], of a float dtype, with any strides
 * @param residual of the same shape and dtype, with any strides
 *
 * @example
 * const { sum, out } = addLayerNorm(tensor([1, 10]), tensor([0, 20])); // [1, 30] and [-1, 1], up to eps
 *
 * @throws {DTypeError} as {@link layerNorm}, and if the residual has a different dtype.
 * @throws {ShapeError} as {@link layerNorm}, and if the residual has a different shape.
 * @throws {ArgumentError} as {@link layerNorm}.
 */
export function addLayerNorm<D extends DType>(
  x: Tensor<D>,
  residual: Tensor<D>,
  ...options: LayerNormArguments
): SumAndNorm<D>;
export function addLayerNorm(...values: unknown[]): SumAndNorm<DType> {
  const given = addLayerNormParameters(values);
  return normalizeLastAxes("addLayerNorm", true, given, given) as SumAndNorm<DType>;
}
const addLayerNormParameters = parameters("addLayerNorm", {
  x: operand(aTensor),
  residual: operand(aTensor),
  ...optionsOfLayerNorm,
});
