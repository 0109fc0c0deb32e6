import { ShapeError } from "../../core/errors.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { freezeList, frozenRowMajor, plainList } from "../../tensor/frozen.ts";
import { aShape, aTensor, type ShapeArguments } from "../../tensor/kinds.ts";
import {
  checkShape,
  elementCount,
  formatShape,
  isRowMajor,
  MAX_RANK,
  type Shape,
  sameShape,
} from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { contiguous } from "../copy/copy.ts";
import { viewOf } from "./view.ts";

/**
 * Returns the elements in row-major order with another shape: a view if the strides allow it, else a copy. One size may
 * be −1 and is inferred from the others.
 *
 * @param shape as a list or size by size
 *
 * @example
 * reshape(tensor([1, 2, 3, 4]), 2, -1); // float32 [[1, 2], [3, 4]]
 *
 * @throws {ShapeError} if the number of elements differs.
 */
export function reshape<D extends DType>(x: Tensor<D>, ...shape: ShapeArguments): Tensor<D>;
export function reshape(...values: unknown[]): Tensor {
  const { x, shape } = reshapeParameters(values);
  const target = inferSize(x, shape);
  if (sameShape(target, x.shape)) return x;
  const inputShape = x.shape;
  const strides = viewStrides(x, target);
  if (strides === null) return reshape(contiguous(x), target);
  return viewOf("reshape", x, target, strides, x.offset, ([gradient]) => [reshape(gradient, inputShape)]);
}
reshape.method = "same" as const;
const reshapeParameters = parameters("reshape", { x: operand(aTensor), shape: required(aShape) });

function inferSize(x: Tensor, shape: Shape): Shape {
  const sizes = plainList(shape);
  return hasSizes(sizes, x.size) ? freezeList(sizes) : inferOpenSize(x, sizes);
}

/** Whether the sizes are valid, contain no −1 and multiply to `count`. */
function hasSizes(sizes: readonly number[], count: number): boolean {
  if (sizes.length > MAX_RANK) return false;
  let product = 1;
  for (let axis = 0; axis < sizes.length; axis++) {
    const size = sizes[axis];
    if (!Number.isSafeInteger(size) || size < 0) return false;
    product *= size;
  }
  return product === count;
}

function inferOpenSize(x: Tensor, shape: Shape): Shape {
  const open = shape.indexOf(-1);
  let known = 1;
  for (let axis = 0; axis < shape.length; axis++) if (shape[axis] !== -1) known *= shape[axis];
  if (open >= 0 && known === 0 && x.size === 0)
    throw new ShapeError(
      "reshape",
      "ambiguous",
      `-1 in ${formatShape(shape)} could be any size, because ${x.describe()} has no elements; pass the size`,
    );
  const target = open < 0 ? shape : shape.with(open, x.size / known);
  // A second −1 would remain in the target.
  if (!target.every((size) => Number.isInteger(size) && size >= 0) || elementCount(target) !== x.size)
    throw new ShapeError(
      "reshape",
      "sizeDiffers",
      `${x.describe()} has ${x.size} elements, which do not fill ${formatShape(shape)}`,
    );
  return checkShape("reshape", target);
}

/**
 * @internal Returns the strides of a view with another shape, or null if it requires a copy. Axes that are contiguous
 * in memory are merged into runs, and each run is split into new axes.
 */
export function viewStrides(
  x: { readonly shape: Shape; readonly strides: readonly number[] },
  shape: Shape,
): readonly number[] | null {
  if (isRowMajor(x.shape, x.strides)) return frozenRowMajor(freezeList(shape));
  const [target, strides] = [plainList(shape), plainList(x.strides)];
  const axes = plainList(x.shape).flatMap((size, axis) => (size === 1 ? [] : [{ size, stride: strides[axis] }]));
  const result = new Array<number>(target.length).fill(1);
  let to = target.length - 1;
  while (axes.length > 0) {
    const { size, stride } = axes.pop()!;
    let run = size;
    while (axes.at(-1)?.stride === stride * run) run *= axes.pop()!.size;
    let covered = 1;
    for (; to >= 0 && (covered < run || target[to] === 1); to--) {
      result[to] = stride * covered;
      covered *= target[to];
    }
    if (covered !== run) return null;
  }
  return result;
}
