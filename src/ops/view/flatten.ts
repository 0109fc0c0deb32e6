import { ShapeError } from "../../core/errors.ts";
import { axis as axisKind } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor, shapeList } from "../../tensor/kinds.ts";
import { checkRank, elementCount, normalizeAxis, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { reshape } from "./reshape.ts";

/** Options of {@link flatten}: the range of axes to merge, both ends included. */
export interface FlattenOptions {
  /** The first axis of the range. Default 0. */
  startDim?: number;
  /** The last axis of the range. Default −1. */
  endDim?: number;
}

/**
 * Merges a range of axes into one, in row-major order: a view if the strides allow it, else a copy. A tensor without
 * axes becomes a vector of one element.
 *
 * @example
 * flatten(zeros([2, 3, 5]), 1); // [2, 15]
 *
 * @throws {ShapeError} for an axis out of range, or if the range ends before it starts.
 */
export function flatten<D extends DType>(
  x: Tensor<D>,
  ...options: Given<FlattenOptions, ["startDim", "endDim"]>
): Tensor<D>;
export function flatten(...values: unknown[]): Tensor {
  const { x, startDim, endDim } = flattenParameters(values);
  const start = normalizeAxis("flatten", startDim, x.rank, "startDim");
  const end = normalizeAxis("flatten", endDim, x.rank, "endDim");
  if (start > end)
    throw new ShapeError(
      "flatten",
      "axesReversed",
      `expected startDim to be at most endDim, got ${startDim} and ${endDim} for ${x.describe()}`,
    );
  const run = elementCount(x.shape.slice(start, end + 1));
  return reshape(x, [...x.shape.slice(0, start), run, ...x.shape.slice(end + 1)]);
}
flatten.method = "same" as const;
const flattenParameters = parameters("flatten", {
  x: operand(aTensor),
  startDim: optional(axisKind, 0),
  endDim: optional(axisKind, -1),
});

/**
 * Splits one axis into several, in row-major order; always a view. One size may be −1 and is inferred from the others.
 *
 * @returns x's shape with `sizes` in place of the axis
 *
 * @example
 * unflatten(zeros([2, 15]), 1, [3, -1]); // [2, 3, 5]
 *
 * @throws {ShapeError} if the product of the sizes is not the size of the axis, or for a rank over 8.
 */
export function unflatten<D extends DType>(x: Tensor<D>, dim: number, sizes: Shape): Tensor<D>;
export function unflatten(...values: unknown[]): Tensor {
  const { x, dim, sizes } = unflattenParameters(values);
  const axis = normalizeAxis("unflatten", dim, x.rank);
  const size = x.shape[axis] ?? 1;
  const known = sizes.reduce((product, each) => (each === -1 ? product : product * each), 1);
  const open = sizes.indexOf(-1);
  const filled = open < 0 ? sizes : sizes.with(open, size / known);
  const fits = filled.every((each) => Number.isSafeInteger(each) && each >= 0) && elementCount(filled) === size;
  if (!fits || x.rank === 0)
    throw new ShapeError(
      "unflatten",
      "sizeDiffers",
      `the product of sizes [${sizes.join(", ")}] is not the size of axis ${dim} of ${x.describe()}`,
    );
  const shape = [...x.shape.slice(0, axis), ...filled, ...x.shape.slice(axis + 1)];
  checkRank("unflatten", shape);
  return reshape(x, shape);
}
unflatten.method = "same" as const;
const unflattenParameters = parameters("unflatten", {
  x: operand(aTensor),
  dim: required(axisKind),
  sizes: required(shapeList),
});
