/** Counts of elements per value, or per interval. */
import { noGrad } from "../../autograd/modes.ts";
import { checkElements, execute, underName } from "../../backend/dispatch.ts";
import { firstBackend } from "../../backend/registry.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber, either, flag, listOf, someNumber } from "../../core/kinds.ts";
import { count as wholeFromOne } from "../../core/options.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";
import { sub } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { eq, ge, le } from "../elementwise/comparison.ts";
import { div } from "../elementwise/division.ts";
import { logicalAnd } from "../elementwise/logic.ts";
import { where } from "../elementwise/where.ts";
import { scatterAddAlong } from "../indexing/adjoint.ts";
import { anIndex, type IndexDType } from "../indexing/indices.ts";
import { amax } from "../reduction/extrema.ts";
import { sum } from "../reduction/sum.ts";
import { aminmax } from "../reduction/without_nan.ts";
import { diff } from "../scan/diff.ts";
import { filled } from "../view/embed.ts";
import { flatten } from "../view/flatten.ts";
import { select } from "../view/slice.ts";
import { evenHistogram, fusesHistogram, largestInteger } from "./extents.cpu.ts";
import { bincountPrimitive, histogramPrimitive } from "./histogram_primitives.ts";
import { bucketize } from "./searchsorted.ts";

/** Options of {@link bincount}. */
export interface BincountOptions {
  /** The minimum number of counts. Default 0. */
  minlength?: number | undefined;
}

/** The dtype of sums of weights: float32 for float32, float64 for all others. */
export type WeightedCounts<D extends DType> = D extends "float32" ? "float32" : "float64";

const atLeastNone = aNumber({
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
});

/**
 * Counts how often each whole number from 0 to the largest occurs, or sums the weights of its occurrences. The largest
 * element is read on the host, which waits for the device.
 *
 * @param x a vector of integers of at least 0
 * @param weights one weight for each element
 * @returns int64 [largest + 1]; with weights, float32 if they are float32 and float64 otherwise, as in PyTorch
 *
 * @example
 * bincount(tensor([0n, 2n, 2n])); // int64 [1, 0, 2]
 * bincount(tensor([0n, 2n, 2n]), tensor([0.5, 1, 2])); // float32 [0.5, 0, 3]
 *
 * @throws {ShapeError} if the arguments are not vectors of equal length, or for a number below 0.
 * @throws {DTypeError} for an x of floats or bools.
 */
export function bincount(x: Tensor<IndexDType>, options?: BincountOptions & { weights?: undefined }): Tensor<"int64">;
export function bincount<D extends DType>(
  x: Tensor<IndexDType>,
  weights: Tensor<D>,
  ...options: Given<BincountOptions, ["minlength"]>
): Tensor<WeightedCounts<D>>;
export function bincount(...values: unknown[]): Tensor {
  const { x, weights, minlength } = bincountParameters(values);
  if (x.rank !== 1 || (weights && !sameShape(weights.shape, x.shape)))
    throw new ShapeError(
      "bincount",
      "shapesDiffer",
      `expected x and any weights to be vectors of equal length, got ${x.describe()}` +
        (weights ? ` and ${weights.describe()}` : ""),
    );
  checkElements("bincount", [x]);
  return underName("bincount", () =>
    tidy(() => {
      const largest = x.size === 0 ? -1 : largestOf(x);
      const length = Math.max(largest + 1, minlength, x.size > 0 ? 1 : 0);
      const factors = weights ? toDType(weights, weights.dtype === "float32" ? "float32" : "float64") : undefined;
      const out = factors?.dtype ?? "int64";
      if (firstBackend() !== "metal" && length > 0)
        return execute(bincountPrimitive, factors ? [x, factors] : [x], [length], out, undefined, "bincount");
      const total = filled([length], out, factors ? 0 : 0n, "bincount");
      return scatterAddAlong("bincount", total, x, factors ?? filled(x.shape, "int64", 1n), 0);
    }),
  );
}
bincount.method = "declared" as const;
const largestOf = (x: Tensor): number => largestInteger("bincount", x) ?? Number(noGrad(() => amax(x)).item());
const bincountParameters = parameters("bincount", {
  x: operand(anIndex),
  weights: optional(aTensor),
  minlength: optional(atLeastNone, 0),
});

/** Options of {@link histc}. */
export interface HistcOptions {
  /** The number of intervals. Default 100. */
  bins?: number | undefined;
  /**
   * The start of the first interval. If `min` equals `max`, the smallest and the largest element are used. Default 0.
   */
  min?: number | undefined;
  /** The end of the last interval. Default 0. */
  max?: number | undefined;
}

/**
 * Counts the elements in each of `bins` intervals of equal width. The last interval includes its end. Elements outside
 * and NaN are not counted.
 *
 * @returns [bins] in x's dtype
 *
 * @example
 * histc(tensor([1, 2, 2, 4]), { bins: 4, min: 0, max: 4 }); // float32 [0, 1, 2, 1]
 *
 * @throws {DTypeError} if x is not of a float dtype.
 * @throws {ArgumentError} for bounds in the wrong order, or if the bounds or elements used as bounds are not finite.
 */
export function histc<D extends DType>(
  x: Tensor<D>,
  ...options: Given<HistcOptions, ["bins", "min", "max"]>
): Tensor<D>;
export function histc(...values: unknown[]): Tensor {
  const { x, bins, min, max: end } = histcParameters(values);
  checkFloats("histc", x);
  return underName("histc", () =>
    tidy(() =>
      noGrad(() => {
        const range = min === end ? undefined : ([min, end] as const);
        if (fusesHistogram(x)) return fused("histc", x, bins, range).hist;
        const edges = edgesOf("histc", x, bins, range);
        return toDType(countsOf(x, edges, undefined, true), x.dtype);
      }),
    ),
  );
}
histc.method = "same" as const;
const aCount = aNumber({
  holds: (value) => wholeFromOne.holds(value) && value <= 2 ** 28,
  expected: wholeFromOne.expected,
});
const histcParameters = parameters("histc", {
  x: operand(aTensor),
  bins: optional(aCount, 100),
  min: optional(someNumber, 0),
  max: optional(someNumber, 0),
});

/** Options of {@link histogram}. */
export interface HistogramOptions {
  /** The start of the first interval and the end of the last. Default: the smallest and the largest element. */
  range?: readonly [number, number] | undefined;
  /** The weight of each element: of x's shape and dtype. Default 1. */
  weight?: Tensor | undefined;
  /** Whether to normalize the result so that its integral is 1. Default false. */
  density?: boolean | undefined;
}

/** Result of {@link histogram}. */
export interface Histogram<D extends DType> {
  /** The count of elements, or the sum of their weights, in each interval. */
  readonly hist: Tensor<D>;
  /** The bounds of the intervals: one more than the number of intervals. */
  readonly binEdges: Tensor<D>;
}

/**
 * Counts the elements in each interval, and returns the bounds of the intervals. The last interval includes its end.
 * Elements outside and NaN are not counted.
 *
 * @param bins the number of intervals of equal width, or their bounds in ascending order
 * @returns hist [bins] and edges [bins + 1]
 *
 * @example
 * histogram(tensor([1, 2, 2, 4]), 3).hist; // float32 [1, 2, 1]
 * histogram(tensor([1, 2, 2, 4]), tensor([0, 2, 8])).hist; // float32 [1, 3]
 *
 * @throws {DTypeError} if the arguments are not floats of one dtype.
 * @throws {ShapeError} for a weight of a different shape, or bounds that are not a vector of at least two.
 * @throws {ArgumentError} for a range in the wrong order, or if the range or the elements used as range are not finite.
 */
export function histogram<D extends DType>(
  x: Tensor<D>,
  bins: number | Tensor<D>,
  ...options: Given<HistogramOptions, []>
): Histogram<D>;
export function histogram(...values: unknown[]): Histogram<DType> {
  const { x, bins, range, weight, density } = histogramParameters(values);
  checkFloats("histogram", x);
  checkWeight(x, weight);
  checkBounds(x, bins, range);
  return underName("histogram", () =>
    tidy(() =>
      noGrad(() => {
        if (!(bins instanceof Tensor || weight || density) && fusesHistogram(x)) {
          const { hist, binEdges } = fused("histogram", x, bins, range as [number, number]);
          return { hist, binEdges };
        }
        const edges = bins instanceof Tensor ? bins : edgesOf("histogram", x, bins, range as [number, number]);
        const wide = accumulationDType(x.dtype);
        const each = weight && toDType(weight, wide);
        const counts = toDType(countsOf(x, edges, each, !(bins instanceof Tensor)), wide);
        const densities = () => div(div(counts, diff(toDType(edges, wide))), sum(counts));
        const hist = density ? densities() : counts;
        return { hist: toDType(hist, x.dtype), binEdges: toDType(edges, x.dtype) };
      }),
    ),
  );
}
histogram.method = "declared" as const;
const histogramParameters = parameters("histogram", {
  x: operand(aTensor),
  bins: optional(either(aCount, aTensor), 100),
  range: named(listOf(someNumber, "a list of two numbers")),
  weight: named(aTensor),
  density: named(flag, false),
});

function checkFloats(operation: string, x: Tensor): void {
  if (!isFloat(x.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `expected floats, got ${x.describe()}; convert with toDType(x, "float32")`,
    );
  checkElements(operation, [x]);
}

function checkWeight(x: Tensor, weight: Tensor | undefined): void {
  if (weight && !sameShape(weight.shape, x.shape))
    throw new ShapeError(
      "histogram",
      "shapesDiffer",
      `expected weight to have the shape of x, got ${weight.describe()} and ${x.describe()}`,
    );
  if (weight && weight.dtype !== x.dtype)
    throw new DTypeError(
      "histogram",
      "dtypesDiffer",
      `expected weight to have the dtype of x, got ${weight.describe()} and ${x.describe()}`,
    );
}

function checkBounds(x: Tensor, bins: number | Tensor, range: readonly number[] | undefined): void {
  if (range && range.length !== 2)
    throw new ArgumentError("histogram", "invalidRange", `expected range to be two numbers, got ${range.length}`);
  if (!(bins instanceof Tensor)) return;
  if (bins.dtype !== x.dtype)
    throw new DTypeError(
      "histogram",
      "dtypesDiffer",
      `expected bins to have the dtype of x, got ${bins.describe()} and ${x.describe()}`,
    );
  if (bins.rank !== 1 || bins.size < 2)
    throw new ShapeError(
      "histogram",
      "wrongRank",
      `expected bins to be a vector of at least two bounds, got ${bins.describe()}`,
    );
}

/** The width that is added on both sides of a range of one number. */
const marginOf = (operation: string): number => (operation === "histc" ? 1 : 0.5);

function checkAscending(operation: string, first: number, last: number): void {
  if (Number.isFinite(first) && Number.isFinite(last) && first <= last) return;
  throw new ArgumentError(
    operation,
    "invalidRange",
    `expected finite, ascending ${operation === "histc" ? "min and max" : "range"}, got ${first} and ${last}`,
  );
}

/** Counts in one native call. */
function fused(operation: string, x: Tensor, bins: number, range: readonly [number, number] | undefined) {
  const [first, last] = range ?? [0, 0];
  const attributes = { first, last, hasRange: range !== undefined, margin: marginOf(operation) };
  const { bounds, ...result } = evenHistogram(operation, x, bins, attributes);
  checkAscending(operation, ...bounds);
  return result;
}

/** Returns the bounds of intervals of equal width, in x's dtype. */
function edgesOf(operation: string, x: Tensor, bins: number, range: readonly [number, number] | undefined): Tensor {
  const [first, last] = range ?? extentOf(x);
  checkAscending(operation, first, last);
  const margin = first < last ? 0 : marginOf(operation);
  const [from, to] = [first - margin, last + margin];
  const edges = new Float64Array(bins + 1);
  for (let at = 0; at < bins; at++) edges[at] = from + ((to - from) * at) / bins;
  edges[bins] = to;
  return tensor(edges, { dtype: x.dtype });
}

function extentOf(x: Tensor): [number, number] {
  if (x.size === 0) return [0, 1]; // as in NumPy and PyTorch
  const { min: least, max: most } = aminmax(x);
  return [Number(least.item()), Number(most.item())];
}

/**
 * Counts the elements between adjacent bounds, or sums their weights.
 *
 * @param isEven whether the bounds are about equally spaced
 */
function countsOf(x: Tensor, edges: Tensor, weights: Tensor | undefined, isEven: boolean): Tensor {
  const flat = flatten(x);
  const each = weights && flatten(weights);
  if (firstBackend() === "metal") return composedCounts(flat, edges, each ?? filled(flat.shape, "int64", 1n));
  const inputs = each ? [flat, edges, each] : [flat, edges];
  return execute(histogramPrimitive, inputs, [edges.size - 1], each?.dtype ?? "int64", { isEven }, "histogram");
}

/** Counts by bisection and `scatterAdd`. */
function composedCounts(values: Tensor, edges: Tensor, each: Tensor): Tensor {
  const bins = edges.size - 1;
  const [first, last] = [at(edges, 0), at(edges, bins)];
  const isInside = logicalAnd(ge(values, first), le(values, last));
  const after = sub(bucketize(values, edges, { right: true }), 1n);
  const place = where(eq(values, last), BigInt(bins - 1), after);
  const inRange = clamp(place, { min: 0n, max: BigInt(bins - 1) }) as Tensor<"int64">;
  const none = each.dtype === "int64" ? 0n : 0;
  const counted = toDType(where(isInside, each, none), each.dtype);
  return scatterAddAlong("histogram", filled([bins], each.dtype, none), inRange, counted, 0);
}

const at = (x: Tensor, index: number): Tensor => select(x, 0, index);
