import { record } from "../../autograd/record.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { type AxisArguments, axis as axisKind, either, listOf, someNumber } from "../../core/kinds.ts";
import { operand, optional, parameters, required } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { adjacentAxis } from "../../tensor/adjacent.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { formatShape, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { cat, stack } from "../join/cat.ts";
import { filled } from "./embed.ts";
import { axisOf } from "./slice.ts";

/** Options of {@link split} and {@link chunk}. */
export interface SplitOptions {
  /** The axis to split. Default 0. */
  dim?: number;
}

/** The parts of {@link split}: a tensor for each size, if the list is a literal in the call. */
export type SplitInto<D extends DType, S extends number | readonly number[]> = S extends readonly number[]
  ? { -readonly [At in keyof S]: Tensor<D> }
  : Tensor<D>[];

/** The parts of {@link chunk}: as many tensors as chunks, if the number is a literal in the call. */
export type Chunks<D extends DType, N extends number, Parts extends Tensor<D>[] = []> = number extends N
  ? Tensor<D>[]
  : Parts["length"] extends N
    ? Parts
    : Parts["length"] extends 16
      ? Tensor<D>[]
      : Chunks<D, N, [...Parts, Tensor<D>]>;

/**
 * Splits an axis into views of successive parts.
 *
 * @param splitSize the size of the parts, the last of which may be smaller; or a list of sizes that add up to the size
 * of the axis
 * @returns the parts, with x's shape except along the axis
 *
 * @example
 * split(tensor([0, 1, 2, 3, 4]), 2); // [0, 1], [2, 3], [4]
 *
 * @throws {ShapeError} for an axis out of range, sizes that do not add up, or more than 2²⁰ views.
 * @throws {ArgumentError} for a size that is not a whole number of at least 0, or 0 for a nonempty axis.
 */
export function split<D extends DType, const S extends number | readonly number[]>(
  x: Tensor<D>,
  splitSize: S,
  ...options: AxisArguments<SplitOptions>
): SplitInto<D, S>;
export function split(...values: unknown[]): Tensor[] {
  const { x, splitSize, dim } = splitParameters(values);
  const axis = axisOf("split", x, dim);
  const size = x.shape[axis];
  const sizes = typeof splitSize === "number" ? equalSizes("split", x, size, splitSize) : [...splitSize];
  for (const each of sizes) checkSize("split", each);
  const total = sizes.reduce((sum, each) => sum + each, 0);
  if (total !== size)
    throw new ShapeError(
      "split",
      "sizeDiffers",
      `expected sizes that add up to ${size}, axis ${dim} of ${x.describe()}, ` +
        `got ${formatShape(sizes)}, which add up to ${total}`,
    );
  return parts("split", x, axis, sizes);
}
split.method = "declared" as const;
const splitParameters = parameters("split", {
  x: operand(aTensor),
  splitSize: required(either(someNumber, listOf(someNumber, "a list of sizes"))),
  dim: optional(axisKind, 0),
});

/**
 * Splits an axis into views of at most `chunks` parts of equal size; the last part may be smaller. In TypeScript, a
 * literal number of chunks up to 16 gives a tuple with as many parts. There are fewer if the axis has too few elements:
 * 4 chunks of 2 elements are 2 parts.
 *
 * @returns the parts, with x's shape except along the axis
 *
 * @example
 * chunk(tensor([0, 1, 2, 3, 4]), 2); // [0, 1, 2], [3, 4]
 *
 * @throws {ShapeError} for an axis out of range, or more than 2²⁰ views.
 * @throws {ArgumentError} for a number of chunks below 1.
 */
export function chunk<D extends DType, N extends number>(
  x: Tensor<D>,
  chunks: N,
  ...options: AxisArguments<SplitOptions>
): Chunks<D, N>;
export function chunk(...values: unknown[]): Tensor[] {
  const { x, chunks, dim } = chunkParameters(values);
  const axis = axisOf("chunk", x, dim);
  if (!Number.isSafeInteger(chunks) || chunks < 1)
    throw new ArgumentError(
      "chunk",
      "invalidCount",
      `expected chunks to be a whole number of at least 1, got ${chunks}`,
    );
  const size = x.shape[axis];
  if (size === 0) checkCount("chunk", x, chunks);
  const sizes = size === 0 ? new Array<number>(chunks).fill(0) : equalSizes("chunk", x, size, Math.ceil(size / chunks));
  return parts("chunk", x, axis, sizes);
}
chunk.method = "declared" as const;
const chunkParameters = parameters("chunk", {
  x: operand(aTensor),
  chunks: required(someNumber),
  dim: optional(axisKind, 0),
});

/**
 * Splits an axis into views of each index, without that axis.
 *
 * @returns one tensor per index, of x's shape without the axis
 *
 * @example
 * unbind(tensor([[1, 2], [3, 4]])); // [1, 2], [3, 4]
 *
 * @throws {ShapeError} for an axis out of range, or more than 2²⁰ views.
 */
export function unbind<D extends DType>(x: Tensor<D>, ...options: AxisArguments<SplitOptions>): Tensor<D>[];
export function unbind(...values: unknown[]): Tensor[] {
  const { x, dim } = unbindParameters(values);
  const axis = axisOf("unbind", x, dim);
  x.checkAlive("unbind");
  checkCount("unbind", x, x.shape[axis]);
  const shape = x.shape.toSpliced(axis, 1);
  const strides = x.strides.toSpliced(axis, 1);
  const views = Array.from(
    { length: x.shape[axis] },
    (_, index) => new Tensor(x.storage, x.dtype, shape, strides, x.offset + index * x.strides[axis]),
  );
  const layouts = views.map(layoutOf);
  record("unbind", [x], views, [], (gradients) => [stack(withZeros(gradients, layouts), { dim: axis })]);
  return views;
}
unbind.method = "parts" as const;
const unbindParameters = parameters("unbind", { x: operand(aTensor), dim: optional(axisKind, 0) });

function equalSizes(operation: string, x: Tensor, size: number, each: number): number[] {
  checkSize(operation, each);
  if (each === 0 && size > 0)
    throw new ArgumentError(operation, "invalidSize", `expected a size of at least 1 for an axis of ${size}, got 0`);
  const count = Math.max(1, each === 0 ? 1 : Math.ceil(size / each));
  checkCount(operation, x, count);
  return Array.from({ length: count }, (_, index) => Math.min(each, size - index * each));
}

/** Maximum number of views: creating more takes seconds and gigabytes. */
const MOST_VIEWS = 2 ** 20;

function checkCount(operation: string, x: Tensor, count: number): void {
  if (count <= MOST_VIEWS) return;
  throw new ShapeError(
    operation,
    "tooManyViews",
    `expected at most ${MOST_VIEWS} views, got ${count} of ${x.describe()}; slice and select make one at a time`,
  );
}

function checkSize(operation: string, size: number): void {
  if (!Number.isSafeInteger(size) || size < 0)
    throw new ArgumentError(
      operation,
      "invalidSize",
      `expected a size to be a whole number of at least 0, got ${size}`,
    );
}

/**
 * Records one operation with many results, so that its gradient is one `cat` instead of a sum of zero-padded tensors.
 */
function parts<D extends DType>(operation: string, x: Tensor<D>, axis: number, sizes: readonly number[]): Tensor<D>[] {
  x.checkAlive(operation);
  let start = 0;
  const views = sizes.map((size) => {
    const offset = x.offset + (size === 0 ? 0 : start * x.strides[axis]);
    start += size;
    return new Tensor(x.storage, x.dtype, x.shape.with(axis, size), x.strides, offset);
  });
  const layouts = views.map(layoutOf);
  record(operation, [x], views, [], (gradients) => [joined(withZeros(gradients, layouts), axis)]);
  return views;
}

/** Joins gradients: adjacent views of one tensor become one view, others are copied. */
function joined(gradients: readonly Tensor[], axis: number): Tensor {
  const [first] = tupleOf(gradients, 1);
  if (gradients.some(({ edge }) => edge !== null) || adjacentAxis(gradients) !== axis)
    return cat(gradients, { dim: axis });
  const size = gradients.reduce((sum, { shape }) => sum + shape[axis], 0);
  return new Tensor(first.storage, first.dtype, first.shape.with(axis, size), first.strides, first.offset);
}

const layoutOf = ({ shape, dtype }: Tensor) => ({ shape, dtype });

/** Returns the gradients of all results, with zeros for unused results. */
const withZeros = (
  gradients: readonly (Tensor | null)[],
  layouts: readonly { readonly shape: Shape; readonly dtype: DType }[],
): Tensor[] => gradients.map((gradient, at) => gradient ?? filled(layouts[at].shape, layouts[at].dtype, 0));
