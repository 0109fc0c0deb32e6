import { type Shape, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { reshape } from "../view/reshape.ts";
import { sum } from "./sum.ts";

/** The sum over the axes along which `shape` was broadcast to the tensor's shape: what broadcasting does to a gradient. */
export function sumTo(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x;
  const lead = x.rank - shape.length;
  const axes = x.shape.flatMap((size, axis) => (axis < lead || (shape[axis - lead] === 1 && size !== 1) ? [axis] : []));
  return reshape(axes.length === 0 ? x : (sum(x, { dim: axes, keepdim: true }) as Tensor), shape);
}
