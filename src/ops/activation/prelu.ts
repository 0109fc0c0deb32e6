import { ShapeError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { renamed } from "../elementwise/define.ts";
import { reshape } from "../view/reshape.ts";
import { leaky } from "./leaky_relu.ts";

const leakyOf = renamed("prelu", leaky);

/**
 * Computes x for each element above 0, and weight · x for the others. The weight is learned: one for all elements, or
 * one for each channel (axis 1). Dtypes are promoted; integers become float32. At 0, the gradient of weight · x is
 * used.
 *
 * Source: K. He et al., "Delving deep into rectifiers", 2015.
 *
 * @param x [batch, channels, …]
 * @param weight one element, or [channels]
 *
 * @example
 * prelu(tensor([[-2, -2], [3, 3]]), tensor([0.5, 0.25])); // float32 [[-1, -0.5], [3, 3]]
 *
 * @throws {ShapeError} if the weight has a different shape.
 */
export function prelu<D extends DType, E extends DType>(x: Tensor<D>, weight: Tensor<E>): Tensor<Promote<D, E>>;
export function prelu(...values: unknown[]): Tensor {
  const { x, weight } = preluParameters(values);
  return leakyOf(x, reshape(weight, weightShape(x, weight)));
}
prelu.method = "promoted" as const;
const preluParameters = parameters("prelu", { x: operand(aTensor), weight: operand(aTensor) });

/** Returns the shape in which the weight broadcasts to x. */
function weightShape(x: Tensor, weight: Tensor): readonly number[] {
  if (weight.size === 1 && weight.rank <= 1) return [];
  const channels = x.rank > 1 ? x.shape[1] : 1;
  if (weight.rank === 1 && weight.size === channels) return [channels, ...new Array<number>(x.rank - 2).fill(1)];
  throw new ShapeError(
    "prelu",
    "shapesDiffer",
    `expected a weight of one element${x.rank > 1 ? ` or of shape [${channels}]` : ""}, got ${weight.describe()}`,
  );
}
