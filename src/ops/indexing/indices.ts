/** Index tensors: checks of dtype and shape, and the error for an index out of range. */

import { DTypeError, ShapeError } from "../../core/errors.ts";
import type { Kind } from "../../core/parameters.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { hasDType, Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { reshape } from "../view/reshape.ts";

/** Dtypes of index tensors: all integers. */
export type IndexDType = "int64" | "int32" | "uint32" | "int8" | "uint8";

/** An index tensor. */
export const anIndex: Kind<Tensor<IndexDType>> = {
  expected: "a tensor of indices",
  parse(value, operation, name) {
    const index = aTensor.parse(value, operation, name);
    return index && checkedIndex(operation, index);
  },
};

/**
 * Converts an index to the dtypes that kernels accept, int64 or int32. @throws {DTypeError} for floats and bools.
 * @throws {DisposedError}
 */
export function checkedIndex(operation: string, index: Tensor): Tensor<IndexDType> {
  index.checkAlive(operation);
  if (isFloat(index.dtype) || index.dtype === "bool")
    throw new DTypeError(
      operation,
      "notAnIndex",
      `expected an index of integers, got ${index.dtype}; convert with toDType(index, "int64")`,
    );
  return hasDType(index, "int32") ? index : toDType(index, "int64");
}

/**
 * Checks the shape of an index. @throws {ShapeError} if the index and x differ in rank, or the index is larger along
 * another axis.
 */
export function checkIndexShape(operation: string, x: Tensor, index: Tensor, axis: number): void {
  const fits = index.rank === x.rank && index.shape.every((size, at) => at === axis || size <= x.shape[at]);
  if (!fits)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected index to have the rank of ${x.describe()} and, on axes other than ${axis}, at most its sizes, got ` +
        index.describe(),
    );
}

/** Returns an index as a vector. @throws {ShapeError} if it has more than one axis. */
export function checkVector(operation: string, index: Tensor<IndexDType>): Tensor<IndexDType> {
  const vector = checkedIndex(operation, index);
  if (index.rank > 1)
    throw new ShapeError(operation, "wrongRank", `expected a vector of indices, got ${index.describe()}`);
  return reshape(vector, [index.size]);
}

/** Checks that indices have an axis with elements. @throws {ShapeError} for a nonempty index into an empty axis. */
export function checkSomethingToName(operation: string, index: Tensor, size: number): void {
  if (size === 0 && index.size > 0)
    throw new ShapeError(
      operation,
      "indexOutOfRange",
      `expected no index for an axis without elements, got ${index.size}`,
    );
}

/** The range that an operation's indices must be in. */
export interface IndexRange {
  readonly operation: string;
  /** The index after broadcasting: broadcast axes have stride 0. */
  readonly index: Tensor;
  /** Valid indices are 0 to size − 1. */
  readonly size: number;
  /** The axes of the index that the caller passed, if it was broadcast along further axes. */
  readonly axes?: readonly number[] | undefined;
  /** Whether `size` was added to negative indices. The caller may then pass −size to size − 1. */
  readonly isSigned?: boolean | undefined;
  /** Whether negative indices count from the end. */
  readonly wraps?: boolean | undefined;
  /** An index that is accepted and selects nothing, such as `ignoreIndex`. */
  readonly except?: number | undefined;
}

export const isInRange = ({ size, except, wraps = false }: IndexRange, value: number | bigint): boolean =>
  (value >= (wraps ? -size : 0) && value < size) || Number(value) === except;

/** Returns a view of the index without repetition: axes of stride 0 have one element. The caller disposes of it. */
export function distinct({ storage, dtype, shape, strides, offset }: Tensor): Tensor {
  return new Tensor(storage, dtype, distinctShape(shape, strides), strides, offset);
}

const distinctShape = (shape: readonly number[], strides: readonly number[]): number[] =>
  shape.map((size, axis) => (strides[axis] === 0 ? Math.min(size, 1) : size));

/**
 * Returns the error for an index out of range.
 *
 * @param position its row-major position among the {@link distinct} indices
 * @param value its value, if it is still known
 */
export function indexError(range: IndexRange, position: number, value: number | bigint | undefined): ShapeError {
  const { operation, index, size, axes, isSigned, wraps } = range;
  const given = isSigned && value !== undefined && value < 0 ? BigInt(value) - BigInt(size) : value;
  const all = coordinates(distinctShape(index.shape, index.strides), position);
  const where = axes === undefined ? all : axes.map((axis) => all[axis]);
  return new ShapeError(
    operation,
    "indexOutOfRange",
    `expected indices of ${isSigned || wraps ? -size : 0} to ${size - 1}, ` +
      `got ${given ?? "a value that has since changed"} at [${where.join(", ")}]`,
  );
}

function coordinates(shape: readonly number[], position: number): number[] {
  const result = new Array<number>(shape.length).fill(0);
  let remainder = position;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    result[axis] = remainder % shape[axis];
    remainder = Math.floor(remainder / shape[axis]);
  }
  return result;
}

/** Reads the index at a {@link distinct} position from memory. */
export function indexAt({ index }: IndexRange, position: number): number | bigint {
  const place = coordinates(distinctShape(index.shape, index.strides), position);
  const offset = place.reduce((sum, coordinate, axis) => sum + coordinate * index.strides[axis], index.offset);
  return index.storage.array(index.dtype)[offset];
}
