/**
 * `expand` and `sumTo`: broadcasting of a tensor, and its gradient. Each is the other's gradient, so both are in this
 * file. They use only a view and the primitive of a sum, because every operation that broadcasts depends on them.
 */

import { record } from "../../autograd/record.ts";
import { ShapeError } from "../../core/errors.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import { type DType, hasGradients } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { aShape, aTensor, type ShapeArguments } from "../../tensor/kinds.ts";
import { broadcastStrides, checkShape, formatShape, type Shape, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { fold, planReduction } from "../reduction/reduce.ts";
import { reshape } from "./reshape.ts";
import { viewOf } from "./view.ts";

/**
 * Returns a view of a larger shape that repeats axes of size 1 and new leading axes, without a copy. −1 keeps the size
 * of an axis.
 *
 * @param shape as a list or size by size
 *
 * @example
 * expand(tensor([[1], [2]]), [2, 3]); // float32 [[1, 1, 1], [2, 2, 2]]
 *
 * @throws {ShapeError} if an axis has neither size 1 nor the new size.
 */
export function expand<D extends DType>(x: Tensor<D>, ...shape: ShapeArguments): Tensor<D>;
export function expand(...values: unknown[]): Tensor {
  const { x, shape } = expandParameters(values);
  const lead = shape.length - x.rank;
  const sizes = plainList(x.shape);
  const target = checkShape(
    "expand",
    plainList(shape).map((size, axis) => (size === -1 && axis >= lead ? sizes[axis - lead] : size)),
  );
  if (sameShape(target, x.shape)) return x;
  const fits = lead >= 0 && sizes.every((size, axis) => size === 1 || size === target[axis + lead]);
  if (!fits)
    throw new ShapeError(
      "expand",
      "shapesDiffer",
      `${x.describe()} can't be expanded to ${formatShape(shape)}: only axes of size 1 repeat`,
    );
  const inputShape = x.shape;
  return viewOf("expand", x, target, broadcastStrides(inputShape, x.strides, target), x.offset, ([gradient]) => [
    sumTo(gradient, inputShape),
  ]);
}
expand.method = "same" as const;
const expandParameters = parameters("expand", { x: operand(aTensor), shape: required(aShape) });

/** @internal Sums over the axes along which `shape` was broadcast to the tensor's shape. */
export function sumTo(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x;
  const lead = x.rank - shape.length;
  const sizes = plainList(x.shape);
  const axes = sizes.flatMap((size, axis) => (axis < lead || (shape[axis - lead] === 1 && size !== 1) ? [axis] : []));
  return reshape(axes.length === 0 ? x : sumOver(x, axes), shape);
}

/** Sums over axes, which are kept with size 1. */
function sumOver(x: Tensor, axes: readonly number[]): Tensor {
  const shape = x.shape;
  const plan = planReduction("sum", x, { dim: axes, keepdim: true });
  const output = fold("sum", x, plan, hasGradients(x.dtype) ? x.dtype : "int64");
  record("sum", [x], [output], [], ([gradient]) => [expand(gradient, shape)]);
  return output;
}
