import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { axis as axisKind, either, nothing, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { embed } from "./embed.ts";
import { viewOf } from "./view.ts";

/** Options of {@link slice}, which keeps the elements start, start + step, … before end. */
export interface SliceOptions {
  /** The axis to slice. Default 0. */
  dim?: number;
  /** The first index; negative values count from the end. Default 0. */
  start?: number | null;
  /** The index after the last; negative values count from the end. Default: the size of the axis. */
  end?: number | null;
  /** The distance between elements, at least 1. Default 1. */
  step?: number;
}

/**
 * Returns a view of every `step`-th element of an axis from `start` to before `end`, as Python's `x[start:end:step]`.
 * Bounds outside the axis are clamped.
 *
 * @example
 * slice(tensor([0, 1, 2, 3, 4]), { start: -4, step: 2 }); // [1, 3]
 *
 * @throws {ShapeError} for an axis out of range.
 * @throws {ArgumentError} for a step below 1; {@link flip} reverses an axis.
 */
export function slice<D extends DType>(
  x: Tensor<D>,
  ...options: Given<SliceOptions, ["dim", "start", "end", "step"]>
): Tensor<D>;
export function slice(...values: unknown[]): Tensor {
  const { x, dim, start, end, step } = sliceParameters(values);
  const axis = axisOf("slice", x, dim);
  if (!Number.isSafeInteger(step) || step < 1)
    throw new ArgumentError(
      "slice",
      step < 0 ? "negativeStep" : "invalidStep",
      `expected step to be a whole number of at least 1, got ${step}; flip(x, [dim]) reverses an axis`,
    );
  const size = x.shape[axis];
  const first = bound("start", start ?? 0, size);
  const last = bound("end", end ?? size, size);
  return cut("slice", x, axis, first, Math.max(0, Math.ceil((last - first) / step)), step);
}
slice.method = "same" as const;
const index = either(someNumber, nothing);
const sliceParameters = parameters("slice", {
  x: operand(aTensor),
  dim: optional(axisKind, 0),
  start: optional(index),
  end: optional(index),
  step: optional(someNumber, 1),
});

/**
 * Normalizes a bound of a slice as Python does: negative values count from the end, and the result is clamped to the
 * axis.
 */
function bound(name: string, index: number, size: number): number {
  if (Number.isNaN(index) || (Number.isFinite(index) && !Number.isInteger(index)))
    throw new ArgumentError("slice", "invalidIndex", `expected ${name} to be a whole number, got ${index}`);
  return Math.min(Math.max(index < 0 ? index + size : index, 0), size);
}

/**
 * Returns a view of `length` elements of an axis, starting at `start`.
 *
 * @param start the first index; negative values count from the end
 * @returns […, length, …]
 *
 * @example
 * narrow(tensor([0, 1, 2, 3, 4]), 0, 1, 3); // [1, 2, 3]
 *
 * @throws {ShapeError} if the axis does not contain these elements.
 */
export function narrow<D extends DType>(x: Tensor<D>, dim: number, start: number, length: number): Tensor<D>;
export function narrow(...values: unknown[]): Tensor {
  const { x, dim, start, length } = narrowParameters(values);
  const axis = axisOf("narrow", x, dim);
  const size = x.shape[axis];
  const first = start < 0 ? start + size : start;
  const fits = [start, length].every(Number.isInteger) && first >= 0 && length >= 0 && first + length <= size;
  if (!fits)
    throw new ShapeError(
      "narrow",
      "indexOutOfRange",
      `expected elements within axis ${dim} of ${x.describe()}, which has ${size}, ` +
        `got ${length} elements from index ${start}`,
    );
  return cut("narrow", x, axis, first, length, 1);
}
narrow.method = "same" as const;
const narrowParameters = parameters("narrow", {
  x: operand(aTensor),
  dim: required(axisKind),
  start: required(someNumber),
  length: required(someNumber),
});

/**
 * Returns a view of one index of an axis, without that axis.
 *
 * @param index negative values count from the end
 * @returns x's shape without the axis
 *
 * @example
 * select(tensor([[1, 2], [3, 4]]), 1, -1); // [2, 4]
 *
 * @throws {ShapeError} for an axis or an index out of range.
 */
export function select<D extends DType>(x: Tensor<D>, dim: number, index: number): Tensor<D>;
export function select(...values: unknown[]): Tensor {
  const { x, dim, index } = selectParameters(values);
  const axis = axisOf("select", x, dim);
  const size = x.shape[axis];
  if (!Number.isInteger(index) || index < -size || index >= size)
    throw new ShapeError(
      "select",
      "indexOutOfRange",
      `expected an index from ${-size} to ${size - 1} for axis ${dim} of ${x.describe()}, got ${index}`,
    );
  const at = index < 0 ? index + size : index;
  const shape = x.shape;
  const strides = plainList(x.strides);
  return viewOf(
    "select",
    x,
    plainList(shape).toSpliced(axis, 1),
    strides.toSpliced(axis, 1),
    x.offset + at * strides[axis],
    ([gradient]) => [embed(gradient, shape, (whole) => select(whole, axis, at))],
  );
}
select.method = "same" as const;
const selectParameters = parameters("select", {
  x: operand(aTensor),
  dim: required(axisKind),
  index: required(someNumber),
});

/** Normalizes the axis to slice. @throws {ShapeError} if it is out of range, or x has no axes. */
export function axisOf(operation: string, x: Tensor, dim: number): number {
  if (x.rank === 0)
    throw new ShapeError(operation, "wrongRank", `expected a tensor of at least rank 1, got ${x.describe()}`);
  return normalizeAxis(operation, dim, x.rank);
}

/** Returns a view of `length` elements of an axis: `start`, `start + step`, …. */
function cut<D extends DType>(
  operation: string,
  x: Tensor<D>,
  axis: number,
  start: number,
  length: number,
  step: number,
): Tensor<D> {
  const strides = plainList(x.strides);
  const stride = strides[axis];
  const shape = x.shape;
  return viewOf(
    operation,
    x,
    plainList(shape).with(axis, length),
    strides.with(axis, stride * step),
    length === 0 ? x.offset : x.offset + start * stride,
    ([gradient]) => [embed(gradient, shape, (whole) => cut(operation, whole, axis, start, length, step))],
  );
}
