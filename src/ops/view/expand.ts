import { ShapeError } from "../../core/errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import { broadcastStrides, checkShape, formatShape, type Shape, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { sumTo } from "../reduction/sum_to.ts";
import { viewOf } from "./view.ts";

/**
 * A view of a larger shape that repeats axes of size 1, and new axes in front, without a copy. −1 keeps an axis' size.
 *
 * @example
 * expand(tensor([[1], [2]]), [2, 3]); // float32 [[1, 1, 1], [2, 2, 2]]
 *
 * @throws {ShapeError} where an axis is neither 1 nor of the wanted size.
 */
export function expand<D extends DType>(x: Tensor<D>, shape: Shape): Tensor<D> {
  x.checkAlive("expand");
  const lead = shape.length - x.rank;
  const target = shape.map((size, axis) => (size === -1 && axis >= lead ? x.shape[axis - lead]! : size));
  checkShape("expand", target);
  if (sameShape(target, x.shape)) return x;
  const fits = lead >= 0 && x.shape.every((size, axis) => size === 1 || size === target[axis + lead]);
  if (!fits)
    throw new ShapeError(
      "expand",
      "shapesDiffer",
      `${x.describe()} can't be expanded to ${formatShape(shape)}: only axes of size 1 repeat`,
    );
  const own = x.shape;
  return viewOf("expand", x, target, broadcastStrides(own, x.strides, target), x.offset, ([gradient]) => [
    sumTo(gradient!, own),
  ]);
}
expand.method = "same" as const;
