import { named } from "../../backend/dispatch.ts";
import type { DType } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkNames } from "../attention/options.ts";
import { reshape } from "../view/reshape.ts";
import { normalize } from "./normalize.ts";
import { checkEps, checkNormalizedShape, checkOperand, checkParameters, type LayerNormOptions } from "./options.ts";

const optionNames: Readonly<Record<keyof LayerNormOptions, true>> = {
  ...{ weight: true, bias: true, eps: true, normalizedShape: true },
};

/**
 * (x − mean) / √(variance + eps) · weight + bias over the last axes, the variance without correction. Statistics are float32 (float64 of
 * float64), the result has the dtype of x. Gradients of x, weight and bias, of any order.
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
export function layerNorm<D extends DType>(x: Tensor<D>, options: LayerNormOptions = {}): Tensor<D> {
  const { weight, bias, eps = 1e-5, normalizedShape } = options;
  checkNames("layerNorm", options, optionNames);
  checkOperand("layerNorm", x);
  const shape = checkNormalizedShape("layerNorm", x, normalizedShape);
  checkParameters("layerNorm", x, shape, { weight, bias });
  checkEps("layerNorm", eps);
  return named("layerNorm", () => {
    const row = [elementCount(shape)];
    const operands = {
      x: reshape<DType>(x, [...x.shape.slice(0, -shape.length), ...row]),
      weight: weight && reshape(weight, row),
      bias: bias && reshape(bias, row),
    };
    const { out } = normalize({ operation: "layerNorm", isCentred: true, eps, operands });
    return reshape(out, x.shape) as Tensor<D>;
  });
}
