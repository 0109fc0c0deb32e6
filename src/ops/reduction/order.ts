/** Order statistics: the element at a position after sorting along an axis. */
import { noGrad } from "../../autograd/modes.ts";
import { needsGradient } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { firstBackend } from "../../backend/registry.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { type AxisArguments, axis as axisKind, flag, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor, expectNumbers } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { sub } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { floorDivide } from "../elementwise/division.ts";
import { logicalNot } from "../elementwise/logic.ts";
import { isnan } from "../elementwise/predicates.ts";
import { where } from "../elementwise/where.ts";
import { detach } from "../gradient/backward.ts";
import { gather } from "../indexing/gather.ts";
import type { IndexDType } from "../indexing/indices.ts";
import { fusesMedian, type MedianAttributes, medians } from "../sorting/median.cpu.ts";
import type { OrderStatistic } from "../sorting/primitive.ts";
import { indicesOf } from "../sorting/runs.ts";
import { sort, topk } from "../sorting/sort.ts";
import { flatten } from "../view/flatten.ts";
import { reshape } from "../view/reshape.ts";
import { narrow, select } from "../view/slice.ts";
import { squeeze } from "../view/squeeze.ts";
import type { ValuesAndIndices } from "./extrema.ts";
import { any } from "./logic.ts";
import { sum } from "./sum.ts";

/** Options of {@link kthvalue}. */
export interface OrderOptions {
  /** The axis. Default −1, the last one. */
  dim?: number | undefined;
  /** Whether to keep the axis with size 1. Default false. */
  keepdim?: boolean | undefined;
}

/**
 * Returns the k-th smallest element along an axis and its index. NaN counts as larger than all numbers.
 *
 * @param k from 1 to the size of the axis
 * @returns values and indices int64, of x's shape without the axis (of size 1 with `keepdim`)
 *
 * @example
 * kthvalue(tensor([3, 1, 2]), 2); // values 2, indices 2
 *
 * @throws {ShapeError} for an axis out of range.
 * @throws {ArgumentError} if k is not from 1 to the size of the axis.
 */
export function kthvalue<D extends DType>(
  x: Tensor<D>,
  k: number,
  ...options: Given<OrderOptions, ["dim", "keepdim"]>
): ValuesAndIndices<D>;
export function kthvalue(...values: unknown[]): ValuesAndIndices<DType> {
  const { x, k, dim, keepdim } = kthvalueParameters(values);
  const axis = normalizeAxis("kthvalue", dim, x.rank);
  const size = x.shape[axis] ?? 1;
  if (!Number.isInteger(k) || k < 1 || k > size)
    throw new ArgumentError(
      "kthvalue",
      "invalidCount",
      `expected k to be a whole number from 1 to ${size}, the size of axis ${dim} of ${x.describe()}, got ${k}`,
    );
  const selects = x.rank > 0 && fusesMedian(x);
  return underName("kthvalue", () =>
    tidy(() => {
      if (selects) return selected("kthvalue", x, { axis, skipsNan: false, kth: k }, keepdim);
      const { values: lowest, indices } = topk(x, k, { dim: axis, largest: false });
      if (x.rank === 0) return { values: lowest, indices };
      const last = <E extends DType>(each: Tensor<E>): Tensor<E> =>
        keepdim ? narrow(each, axis, k - 1, 1) : select(each, axis, k - 1);
      return { values: last(lowest), indices: last(indices) };
    }),
  );
}
kthvalue.method = "declared" as const;
const kthvalueParameters = parameters("kthvalue", {
  x: operand(aTensor),
  k: required(someNumber),
  dim: optional(axisKind, -1),
  keepdim: optional(flag, false),
});

/** Arguments of {@link median} along an axis, which returns indices too. */
export type MedianArguments = Given<OrderOptions, ["dim", "keepdim"]>;

/**
 * Returns the median of all elements, or the medians along an axis and their indices. For an even number of elements it
 * is the lower of the two middle elements. It is NaN if an element is NaN.
 *
 * @returns a scalar; with `dim`, values and indices of x's shape without that axis (of size 1 with `keepdim`)
 *
 * @example
 * median(tensor([4, 1, 3, 2])); // float32 2
 * median(tensor([[4, 1, 3]]), { dim: 1 }); // values [3], indices [2]
 *
 * @throws {ShapeError} for an axis out of range or without elements.
 * @throws {DTypeError} for bools.
 */
export function median<D extends DType>(x: Tensor<D>): Tensor<D>;
export function median<D extends DType>(x: Tensor<D>, ...options: AxisArguments<OrderOptions>): ValuesAndIndices<D>;
export function median(...values: unknown[]): Tensor | ValuesAndIndices<DType> {
  return medianOf("median", medianParameters(values), (sorted, axis) => {
    const lower = Math.floor((sorted.shape[axis] - 1) / 2);
    if (!isFloat(sorted.dtype)) return lower;
    // if there is a NaN, the first one: NaNs are sorted last
    const numbers = countOfNumbers(sorted, axis);
    const size = sorted.shape[axis];
    return where(
      any(isnan(sorted), { dim: axis, keepdim: true }),
      clamp(numbers, { max: BigInt(size - 1) }),
      BigInt(lower),
    );
  });
}
median.method = "declared" as const;
const medianParameters = orderParameters("median");

/**
 * Returns the median of the elements that are not NaN: of all of them, or along an axis with its index. It is NaN if
 * all elements are NaN.
 *
 * @returns a scalar; with `dim`, values and indices of x's shape without that axis (of size 1 with `keepdim`)
 *
 * @example
 * nanmedian(tensor([4, Number.NaN, 1])); // float32 1
 *
 * @throws {ShapeError} for an axis out of range or without elements.
 * @throws {DTypeError} for bools.
 */
export function nanmedian<D extends DType>(x: Tensor<D>): Tensor<D>;
export function nanmedian<D extends DType>(x: Tensor<D>, ...options: AxisArguments<OrderOptions>): ValuesAndIndices<D>;
export function nanmedian(...values: unknown[]): Tensor | ValuesAndIndices<DType> {
  return medianOf("nanmedian", nanmedianParameters(values), (sorted, axis) => {
    if (!isFloat(sorted.dtype)) return Math.floor((sorted.shape[axis] - 1) / 2);
    return floorDivide(clamp(sub(countOfNumbers(sorted, axis), 1n), { min: 0n }), 2n);
  });
}
nanmedian.method = "declared" as const;
const nanmedianParameters = orderParameters("nanmedian");

function orderParameters(operation: string) {
  return parameters(operation, { x: operand(aTensor), dim: optional(axisKind), keepdim: optional(flag, false) });
}

type Place = (sorted: Tensor, axis: number) => number | Tensor;

function medianOf(
  operation: "median" | "nanmedian",
  { x, dim, keepdim }: ReturnType<ReturnType<typeof orderParameters>>,
  place: Place,
): Tensor | ValuesAndIndices<DType> {
  expectNumbers(operation, x);
  const axis = dim === undefined ? 0 : normalizeAxis(operation, dim, x.rank);
  const input = dim === undefined ? flatten(x) : x;
  if (input.rank > 0 && input.shape[axis] === 0)
    throw new ShapeError(
      operation,
      "emptyReduction",
      `${x.describe()} has no elements along the reduced axes, so ${operation} is undefined; expected at least one`,
    );
  return underName(operation, () => {
    const each = firstBackend() === "cpu" ? operation : place;
    if (dim !== undefined) return placed(input, axis, keepdim, each);
    return tidy(() => placed(input, 0, false, each).values);
  });
}

/** Counts the elements along an axis that are not NaN: int64, the axis with size 1. */
const countOfNumbers = (sorted: Tensor, axis: number): Tensor<"int64"> =>
  sum(logicalNot(isnan(sorted)), { dim: axis, keepdim: true });

/** Returns the element at a position of the sorted axis, or a statistic of a single call, and its index. */
function placed(x: Tensor, axis: number, keepdim: boolean, place: Place | OrderStatistic): ValuesAndIndices<DType> {
  return tidy(() => {
    const lines = x.rank === 0 ? reshape(x, [1]) : x;
    const keeps = keepdim && x.rank > 0;
    if (typeof place === "string" && fusesMedian(lines))
      return selected(place, lines, { axis, skipsNan: place === "nanmedian", kth: 0 }, keeps);
    const shaped = <D extends DType>(one: Tensor<D>): Tensor<D> => (keeps ? one : squeeze(one, { dim: axis }));
    if (typeof place === "string") {
      const found = noGrad(() => {
        const { values, indices } = sort(lines, { dim: axis });
        return indicesOf(place, values, indices, axis);
      });
      return { values: shaped(gather(lines, found, { dim: axis })), indices: shaped(found) };
    }
    const { values, indices } = sort(lines, { dim: axis });
    const at = place(detach(values), axis);
    const taken = <D extends DType>(tensor: Tensor<D>): Tensor<D> =>
      shaped(
        at instanceof Tensor
          ? gather(tensor, toDType(at, "int64") as Tensor<IndexDType>, { dim: axis })
          : narrow(tensor, axis, at, 1),
      );
    return { values: taken(values), indices: taken(indices) };
  });
}

/** Returns one element of each slice along an axis, and its index, from a single call of the cpu backend. */
function selected(operation: string, x: Tensor, which: MedianAttributes, keepdim: boolean): ValuesAndIndices<DType> {
  const { axis } = which;
  const [values, indices] = medians(operation, x, which);
  const recorded: Tensor = needsGradient(x) ? gather(x, indices, { dim: axis }) : values;
  return keepdim
    ? { values: recorded, indices }
    : { values: squeeze(recorded, { dim: axis }), indices: squeeze(indices, { dim: axis }) };
}
