/**
 * Distinct elements, or distinct slices along an axis. Their number is read on the host, which waits for the device.
 */
import { noGrad } from "../../autograd/modes.ts";
import { checkElements, underName } from "../../backend/dispatch.ts";
import { firstBackend } from "../../backend/registry.ts";
import { axis as axisKind, flag } from "../../core/kinds.ts";
import { named, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { contiguous, copyOf } from "../copy/copy.ts";
import { tensor } from "../creation/tensor.ts";
import { sub } from "../elementwise/arithmetic.ts";
import { ne } from "../elementwise/comparison.ts";
import { indexSelectAlong } from "../indexing/adjoint.ts";
import { indexOf, placesOf } from "../indexing/nonzero.ts";
import { scatterAlong } from "../indexing/scatter.ts";
import { cat } from "../join/cat.ts";
import { any } from "../reduction/logic.ts";
import { cumsum } from "../scan/cumsum.ts";
import { diff } from "../scan/diff.ts";
import { filled } from "../view/embed.ts";
import { flatten } from "../view/flatten.ts";
import { movedim } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { axisOf, narrow } from "../view/slice.ts";
import { runsOf } from "./runs.ts";
import { sort } from "./sort.ts";

/** Options of {@link unique} and {@link uniqueConsecutive}. */
export interface UniqueOptions {
  /** Whether to return, for each element of x, its position among the distinct ones. Default false. */
  returnInverse?: boolean | undefined;
  /** Whether to return how often each distinct element occurs. Default false. */
  returnCounts?: boolean | undefined;
  /** The axis along which slices are compared. Default: elements are compared. */
  dim?: number | undefined;
}

/** Result of {@link unique} and {@link uniqueConsecutive} with `returnInverse` or `returnCounts`. */
export interface UniqueElements<D extends DType> {
  readonly values: Tensor<D>;
  /** The position of each element among the values: of x's shape, or with `dim` a vector. */
  readonly inverse?: Tensor<"int64">;
  /** The number of occurrences of each value. */
  readonly counts?: Tensor<"int64">;
}

const uniqueParametersOf = {
  x: operand(aTensor),
  returnInverse: named(flag, false),
  returnCounts: named(flag, false),
  dim: optional(axisKind),
} as const;

/**
 * Returns the distinct elements in ascending order, or with `dim` the distinct slices along an axis in lexicographic
 * order. NaN equals nothing and comes last.
 *
 * @param options `sorted` is accepted for compatibility with PyTorch; the result is always sorted
 * @returns the values [n], or with `dim` x's shape with n slices; inverse and counts in int64, if requested
 *
 * @example
 * unique(tensor([3, 1, 3, 2])); // float32 [1, 2, 3]
 * unique(tensor([3, 1, 3]), { returnCounts: true }).counts; // int64 [1, 2]
 *
 * @throws {ShapeError} for an axis out of range.
 */
export function unique<D extends DType>(
  x: Tensor<D>,
  options: UniqueOptions & { sorted?: boolean } & ({ returnInverse: true } | { returnCounts: true }),
): UniqueElements<D>;
export function unique<D extends DType>(x: Tensor<D>, options?: UniqueOptions & { sorted?: boolean }): Tensor<D>;
export function unique(...values: unknown[]): Tensor | UniqueElements<DType> {
  return distinct("unique", uniqueParameters(values), true);
}
unique.method = "declared" as const;
const uniqueParameters = parameters("unique", { ...uniqueParametersOf, sorted: named(flag, true) });

/**
 * Collapses runs of equal elements, or with `dim` of equal slices along an axis, to one each.
 *
 * @returns the values [n], or with `dim` x's shape with n slices; inverse and counts in int64, if requested
 *
 * @example
 * uniqueConsecutive(tensor([1, 1, 2, 2, 1])); // float32 [1, 2, 1]
 *
 * @throws {ShapeError} for an axis out of range.
 */
export function uniqueConsecutive<D extends DType>(
  x: Tensor<D>,
  options: UniqueOptions & ({ returnInverse: true } | { returnCounts: true }),
): UniqueElements<D>;
export function uniqueConsecutive<D extends DType>(x: Tensor<D>, options?: UniqueOptions): Tensor<D>;
export function uniqueConsecutive(...values: unknown[]): Tensor | UniqueElements<DType> {
  return distinct("uniqueConsecutive", uniqueConsecutiveParameters(values), false);
}
uniqueConsecutive.method = "declared" as const;
const uniqueConsecutiveParameters = parameters("uniqueConsecutive", uniqueParametersOf);

interface Call {
  readonly x: Tensor;
  readonly returnInverse: boolean;
  readonly returnCounts: boolean;
  readonly dim: number | undefined;
}

function distinct(operation: string, call: Call, isSorted: boolean): Tensor | UniqueElements<DType> {
  const { x, dim, returnInverse, returnCounts } = call;
  const axis = dim === undefined ? 0 : axisOf(operation, x, dim);
  checkElements(operation, [x]);
  const parts = underName(operation, () =>
    tidy(() => noGrad(() => partsOf(operation, dim === undefined ? flatten(x) : x, axis, isSorted, call))),
  );
  if (!returnInverse && !returnCounts) return parts.values;
  return parts.inverse && dim === undefined ? { ...parts, inverse: reshape(parts.inverse, x.shape) } : parts;
}

/** Computes the requested results for slices along an axis. */
function partsOf(
  operation: string,
  x: Tensor,
  axis: number,
  isSorted: boolean,
  { returnInverse, returnCounts }: Call,
): UniqueElements<DType> {
  const size = x.shape[axis];
  const { values, order } = isSorted ? inOrder(operation, x, axis) : { values: x, order: undefined };
  const begins = (): Tensor<"bool"> => beginningsOf(values, axis);
  const inverseOf = (): Tensor<"int64"> => {
    const groups = sub(cumsum(begins(), 0), 1n);
    return order && size > 0 ? scatterAlong(operation, filled([size], "int64", 0n), order, groups, 0) : groups;
  };
  const inverse = returnInverse ? { inverse: inverseOf() } : {};
  if (values.rank === 1 && size > 0 && firstBackend() === "cpu") {
    const runs = runsOf(operation, values);
    const counts = () => diff(runs.begins, { append: tensor(BigInt64Array.of(BigInt(size))) });
    return { values: copyOf(operation, runs.firsts), ...inverse, ...(returnCounts && { counts: counts() }) };
  }
  const places = placesOf(begins());
  return {
    values: indexSelectAlong(values, indexOf(places), axis, operation),
    ...inverse,
    ...(returnCounts && { counts: diff(indexOf(Uint32Array.of(...places, size))) }),
  };
}

/** For each slice, whether it starts a run: it differs from its predecessor, or is the first. */
function beginningsOf(x: Tensor, axis: number): Tensor<"bool"> {
  const size = x.shape[axis];
  if (size === 0) return filled([0], "bool", false);
  const rows = movedim(x, axis, 0);
  const differs = ne(narrow(rows, 0, 1, size - 1), narrow(rows, 0, 0, size - 1));
  const width = size === 1 ? 1 : differs.size / (size - 1);
  const isOther = width === 1 ? reshape(differs, [size - 1]) : any(reshape(differs, [size - 1, width]), { dim: 1 });
  return cat([filled([1], "bool", true), isOther], 0);
}

/** Returns the slices in lexicographic order, and their original indices. */
function inOrder(operation: string, x: Tensor, axis: number): { values: Tensor; order: Tensor<"int64"> } {
  if (x.rank === 1) {
    const { values, indices } = sort(x, 0);
    return { values, order: indices };
  }
  const order = tensor(orderOfRows(contiguous(movedim(x, axis, 0))));
  return { values: indexSelectAlong(x, order, axis, operation), order };
}

/** Returns the lexicographic order of rows, computed on the host: a device would need one sort per column. */
function orderOfRows(rows: Tensor): BigInt64Array {
  const size = rows.shape[0];
  const width = size === 0 ? 0 : rows.size / size;
  const elements = rows.dataSync();
  const compare = (a: number, b: number): number => {
    for (let at = 0; at < width; at++) {
      const order = orderOf(elements[a * width + at], elements[b * width + at]);
      if (order !== 0) return order;
    }
    return a - b;
  };
  return BigInt64Array.from(Array.from({ length: size }, (_, row) => row).sort(compare), BigInt);
}

function orderOf(a: number | bigint, b: number | bigint): number {
  if (a < b) return -1;
  if (a > b) return 1;
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}
