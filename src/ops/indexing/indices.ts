/** Tensors of indices: their dtype and shape, and the errors of an index that is out of range. */

import { DTypeError, ShapeError } from "../../core/errors.ts";
import type { Kind } from "../../core/parameters.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { reshape } from "../view/reshape.ts";

/** Dtypes that index: all integers. */
export type IndexDType = "int64" | "int32" | "uint32" | "int8" | "uint8";

/** A tensor that indexes. */
export const anIndex: Kind<Tensor<IndexDType>> = {
  expected: "a tensor of indices",
  parse(value, operation, name) {
    const index = aTensor.parse(value, operation, name);
    return index && checkedIndex(operation, index);
  },
};

/** An index as kernels take it: int64 or int32. @throws {DTypeError} for floats and bools. @throws {DisposedError} */
export function checkedIndex(operation: string, index: Tensor): Tensor<IndexDType> {
  index.checkAlive(operation);
  if (isFloat(index.dtype) || index.dtype === "bool")
    throw new DTypeError(
      operation,
      "notAnIndex",
      `expected an index of integers, got ${index.dtype}; toDType(index, "int64") converts`,
    );
  return (index.dtype === "int32" ? index : toDType(index, "int64")) as Tensor<IndexDType>;
}

/** @throws {ShapeError} where an index' rank differs, or its size on another axis is larger. */
export function checkIndexShape(operation: string, x: Tensor, index: Tensor, axis: number): void {
  const fits = index.rank === x.rank && index.shape.every((size, own) => own === axis || size <= x.shape[own]!);
  if (!fits)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected index to have the rank of ${x.describe()} and, on other axes than ${axis}, at most its sizes, got ` +
        index.describe(),
    );
}

/** An index with one axis. @throws {ShapeError} where it has more. */
export function checkVector(operation: string, index: Tensor<IndexDType>): Tensor<IndexDType> {
  const vector = checkedIndex(operation, index);
  if (index.rank > 1)
    throw new ShapeError(operation, "wrongRank", `expected a vector of indices, got ${index.describe()}`);
  return reshape(vector, [index.size]);
}

/** @throws {ShapeError} where there is an index and nothing that it could name. */
export function checkSomethingToName(operation: string, index: Tensor, size: number): void {
  if (size === 0 && index.size > 0)
    throw new ShapeError(
      operation,
      "indexOutOfRange",
      `expected no index for an axis without elements, got ${index.size}`,
    );
}

/** What an operation's indices name. */
export interface IndexRange {
  readonly operation: string;
  /** As the operation sees it: broadcast axes have stride 0. */
  readonly index: Tensor;
  /** The indices that there are: 0 to size − 1. */
  readonly size: number;
  /** The axes that the caller's index has, where it was broadcast along others. */
  readonly axes?: readonly number[] | undefined;
  /** An index that names nothing and is none out of range. */
  readonly except?: number | undefined;
}

export const isInRange = ({ size, except }: IndexRange, value: number | bigint): boolean =>
  (value >= 0 && value < size) || Number(value) === except;

/** The index tensor without repetition: axes of stride 0 have one element. The caller disposes of it. */
export function distinct({ storage, dtype, shape, strides, offset }: Tensor): Tensor {
  return new Tensor(storage, dtype, distinctShape(shape, strides), strides, offset);
}

const distinctShape = (shape: readonly number[], strides: readonly number[]): number[] =>
  shape.map((size, axis) => (strides[axis] === 0 ? Math.min(size, 1) : size));

/**
 * The error of an index out of range.
 *
 * @param position its number among the {@link distinct} indices, row-major
 * @param value what it was
 */
export function indexError(range: IndexRange, position: number, value: number | bigint | undefined): ShapeError {
  const { operation, index, size, axes } = range;
  const all = coordinates(distinctShape(index.shape, index.strides), position);
  const where = axes === undefined ? all : axes.map((axis) => all[axis]!);
  return new ShapeError(
    operation,
    "indexOutOfRange",
    `expected indices of 0 to ${size - 1}, got ${value ?? "another one (changed since)"} at [${where.join(", ")}]`,
  );
}

function coordinates(shape: readonly number[], position: number): number[] {
  const result = new Array<number>(shape.length).fill(0);
  let remainder = position;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    result[axis] = remainder % shape[axis]!;
    remainder = Math.floor(remainder / shape[axis]!);
  }
  return result;
}

/** The index at a {@link distinct} position, as it is stored now. */
export function indexAt({ index }: IndexRange, position: number): number | bigint {
  const own = coordinates(distinctShape(index.shape, index.strides), position);
  const offset = own.reduce((sum, coordinate, axis) => sum + coordinate * index.strides[axis]!, index.offset);
  return index.storage.array(index.dtype)[offset]!;
}
