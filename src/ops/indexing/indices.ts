/** Tensors of indices: their dtype, and the errors of an index that is out of range. */
import { DTypeError, ShapeError } from "../../core/errors.ts";
import { Tensor } from "../../tensor/tensor.ts";

/** Dtypes that index. */
export type IndexDType = "int64" | "int32";

/** @throws {DTypeError} for a dtype that does not index. @throws {DisposedError} */
export function checkIndexDType(operation: string, index: Tensor): void {
  index.checkAlive(operation);
  if (index.dtype !== "int64" && index.dtype !== "int32")
    throw new DTypeError(
      operation,
      "notAnIndex",
      `an index is int64 or int32, ${index.dtype} came; use toDType(index, "int64")`,
    );
}

/** @throws {ShapeError} where there is an index and nothing that it could name. */
export function checkSomethingToName(operation: string, index: Tensor, size: number): void {
  if (size === 0 && index.size > 0)
    throw new ShapeError(operation, "indexOutOfRange", `${index.size} indices came for an axis without elements`);
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
  const place = coordinates(distinctShape(index.shape, index.strides), position);
  const where = axes === undefined ? place : axes.map((axis) => place[axis]!);
  return new ShapeError(
    operation,
    "indexOutOfRange",
    `index ${value ?? "(changed since)"} at [${where.join(", ")}] came, 0 to ${size - 1} are there; negative indices do not count from the end here`,
  );
}

function coordinates(shape: readonly number[], position: number): number[] {
  const result = new Array<number>(shape.length).fill(0);
  let rest = position;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    result[axis] = rest % shape[axis]!;
    rest = Math.floor(rest / shape[axis]!);
  }
  return result;
}

/** The index at a {@link distinct} position, as it is stored now. */
export function indexAt({ index }: IndexRange, position: number): number | bigint {
  const place = coordinates(distinctShape(index.shape, index.strides), position);
  const at = place.reduce((sum, coordinate, axis) => sum + coordinate * index.strides[axis]!, index.offset);
  return index.storage.array(index.dtype)[at]!;
}
