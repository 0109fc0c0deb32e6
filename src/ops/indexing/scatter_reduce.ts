/** Scatter with a reduction: sum, product, mean, largest or smallest. */
import { isGradEnabled, noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { checkElements, underName } from "../../backend/dispatch.ts";
import { axis as axisKind, choice, flag } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor, expectNumbers } from "../../tensor/kinds.ts";
import { normalizeAxis } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { eq, gt } from "../elementwise/comparison.ts";
import { div, floorDivide } from "../elementwise/division.ts";
import { maximum } from "../elementwise/extrema.ts";
import { logicalAnd, logicalNot } from "../elementwise/logic.ts";
import { where } from "../elementwise/where.ts";
import { composedGradients } from "../gradient/composed_gradients.ts";
import { cat } from "../join/cat.ts";
import { argsort } from "../sorting/sort.ts";
import { filled } from "../view/embed.ts";
import { expand } from "../view/expand.ts";
import { leading } from "../view/leading.ts";
import { reshape } from "../view/reshape.ts";
import { narrow } from "../view/slice.ts";
import { alongAxis, gatherAlong, scatterAddAlong, scattered, scatteredOthers } from "./adjoint.ts";
import { anIndex, checkIndexShape, checkSomethingToName, checkVector, type IndexDType } from "./indices.ts";
import { scatterAlong } from "./scatter.ts";
import { checkSlices, checkSourceDType, checkSourceShape } from "./scatter_add.ts";

/** Reductions of {@link scatterReduce}. */
export type ScatterReduction = "sum" | "prod" | "mean" | "amax" | "amin";

/** Options of {@link scatterReduce} and {@link indexReduce}. */
export interface ScatterReduceOptions {
  /** Whether the elements of `x` are included in the reduction. Default true. */
  includeSelf?: boolean | undefined;
}

/**
 * Reduces elements of `source` along an axis into a copy of `x` at the places that `index` names: their sum, product,
 * mean, largest or smallest. Every run gives the same bits. For `"amax"` and `"amin"`, equal elements share the
 * gradient. A mean of integers is rounded down. For bools, `"sum"` and `"amax"` are true if any element is true,
 * `"prod"` and `"amin"` if all are.
 *
 * @param index integers of `x`'s rank, with at most `source`'s sizes and, on axes other than `dim`, at most `x`'s
 * @param source of `x`'s dtype; elements outside the index's sizes are ignored
 * @param reduce `"sum"`, `"prod"`, `"mean"`, `"amax"` or `"amin"`
 *
 * @example
 * scatterReduce(tensor([1, 2]), 0, tensor([0n, 0n, 1n]), tensor([5, 3, 1]), "amax"); // float32 [5, 2]
 *
 * @throws {ShapeError} if ranks or sizes do not match, and `indexOutOfRange` if an index is negative or too large (on
 * Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools, a source of a different dtype, or the mean of bools.
 */
export function scatterReduce<D extends DType>(
  x: Tensor<D>,
  dim: number,
  index: Tensor<IndexDType>,
  source: Tensor<D>,
  reduce: ScatterReduction,
  ...options: Given<ScatterReduceOptions, ["includeSelf"]>
): Tensor<D>;
export function scatterReduce(...values: unknown[]): Tensor {
  const { dim, ...given } = scatterReduceParameters(values);
  const axis = normalizeAxis("scatterReduce", dim, given.x.rank);
  checkIndexShape("scatterReduce", given.x, given.index, axis);
  checkSourceDType("scatterReduce", given.x, given.source);
  checkSourceShape("scatterReduce", given.index, given.source);
  return reduced("scatterReduce", { ...given, axis });
}
scatterReduce.method = "same" as const;
const reducing = {
  x: operand(aTensor),
  dim: required(axisKind),
  index: required(anIndex),
  source: required(aTensor),
} as const;
const scatterReduceParameters = parameters("scatterReduce", {
  ...reducing,
  reduce: required(choice("sum", "prod", "mean", "amax", "amin")),
  includeSelf: optional(flag, true),
});

/**
 * Reduces slices of `source` along an axis into a copy of `x` at the slices that `index` names; see {@link
 * scatterReduce}.
 *
 * @param index a vector with one index for each slice of `source`
 * @param source of `x`'s dtype and, on axes other than `dim`, its sizes
 * @param reduce `"prod"`, `"mean"`, `"amax"` or `"amin"`
 *
 * @example
 * indexReduce(tensor([1, 2]), 0, tensor([0n, 0n]), tensor([5, 3]), "prod"); // float32 [15, 2]
 *
 * @throws {ShapeError} if sizes do not match, and `indexOutOfRange` (on Metal when a result is read).
 * @throws {DTypeError} for an index of floats or bools, a source of a different dtype, or an `x` of bools.
 */
export function indexReduce<D extends DType>(
  x: Tensor<D>,
  dim: number,
  index: Tensor<IndexDType>,
  source: Tensor<D>,
  reduce: Exclude<ScatterReduction, "sum">,
  ...options: Given<ScatterReduceOptions, ["includeSelf"]>
): Tensor<D>;
export function indexReduce(...values: unknown[]): Tensor {
  const { dim, index, ...given } = indexReduceParameters(values);
  const { x, source } = given;
  const axis = normalizeAxis("indexReduce", dim, x.rank);
  const vector = checkVector("indexReduce", index);
  checkSourceDType("indexReduce", x, source);
  checkSlices("indexReduce", x, vector, source, axis);
  using along = source.rank === 0 ? reshape(vector, []) : alongAxis(vector, source, axis);
  return reduced("indexReduce", { ...given, axis, index: along });
}
indexReduce.method = "same" as const;
const indexReduceParameters = parameters("indexReduce", {
  ...reducing,
  reduce: required(choice("prod", "mean", "amax", "amin")),
  includeSelf: optional(flag, true),
});

interface Call {
  readonly x: Tensor;
  readonly axis: number;
  readonly index: Tensor<IndexDType>;
  readonly source: Tensor;
  readonly reduce: ScatterReduction;
  readonly includeSelf: boolean;
}

function reduced(operation: string, call: Call): Tensor {
  const { x, index, source, axis } = call;
  if (operation === "indexReduce" || call.reduce === "mean") expectNumbers(operation, x);
  checkElements(operation, [x, index, source]);
  return underName(operation, () =>
    tidy(() => {
      if (x.rank === 0) return reshape(computed(operation, withAnAxis(call)), []);
      checkSomethingToName(operation, index, x.shape[axis]);
      if (index.size === 0) return scatterAddAlong(operation, x, index, source, axis); // x, connected to both inputs
      return computed(operation, { ...call, source: leading(source, index.shape) });
    }),
  );
}

const withAnAxis = ({ x, index, source, ...call }: Call): Call => ({
  ...call,
  x: reshape(x, [1]),
  index: reshape(index, [1]),
  source: reshape(source, [1]),
});

function computed(operation: string, call: Call): Tensor {
  if (call.x.dtype === "bool") return ofBools(operation, call);
  if (call.reduce === "amax" || call.reduce === "amin") return extremes(operation, call, call.reduce);
  const { dtype } = call.x;
  const wide = isFloat(dtype) ? accumulationDType(dtype) : dtype;
  const wideCall = { ...call, x: toDType(call.x, wide), source: toDType(call.source, wide) };
  const result = call.reduce === "prod" ? products(operation, wideCall) : sums(operation, wideCall);
  return toDType(result, dtype);
}

/** Reduces bools as the largest or smallest of 0 and 1. */
function ofBools(operation: string, { x, source, reduce, ...call }: Call): Tensor {
  const numbers = { ...call, reduce, x: toDType(x, "uint8"), source: toDType(source, "uint8") };
  return toDType(extremes(operation, numbers, reduce === "sum" || reduce === "amax" ? "amax" : "amin"), "bool");
}

/** Returns `x` with one value at the indexed places. */
const marked = <D extends DType>(operation: string, x: Tensor<D>, { index, axis }: Call, value: number): Tensor<D> => {
  const one = filled([], x.dtype, x.dtype === "int64" ? BigInt(value) : value);
  return scatterAlong(operation, x, index, expand(one, index.shape), axis);
};

function sums(operation: string, call: Call): Tensor {
  const { x, index, source, axis, reduce, includeSelf } = call;
  const base = includeSelf ? x : marked(operation, x, call, 0);
  const total = scatterAddAlong(operation, base, index, source, axis);
  if (reduce === "sum") return total;
  const ones = expand(filled([], "int64", 1n), index.shape);
  const counts = scatterAddAlong(operation, filled(x.shape, "int64", includeSelf ? 1n : 0n), index, ones, axis);
  const divisors = toDType(maximum(counts, 1n), x.dtype);
  return isFloat(x.dtype) ? div(total, divisors) : floorDivide(total, divisors);
}

function products(operation: string, call: Call): Tensor {
  const { x, index, source, axis, includeSelf } = call;
  const attributes = { operation, dim: axis, way: "prod", includesSelf: includeSelf } as const;
  const result = noGrad(() => scattered(x, index, source, attributes));
  record(operation, [x, source], [result], [x, source, index], ([gradient], [savedX, savedSource, at], needs) => {
    const savedCall = { ...call, x: savedX, source: savedSource, index: at };
    if (!isGradEnabled()) return factorsOf(operation, gradient, savedCall, needs);
    const composed = ([first, second]: readonly Tensor[]) =>
      composedProducts(operation, { ...savedCall, x: first, source: second });
    return composedGradients(composed, [savedX, savedSource], needs, gradient);
  });
  return result;
}

/** Multiplies the gradient by the product of all other factors, which is correct even if factors are 0. */
function factorsOf(
  operation: string,
  gradient: Tensor,
  call: Call,
  needs: readonly boolean[],
): [Tensor | null, Tensor | null] {
  const { x, index, source, axis, includeSelf } = call;
  const attributes = { operation, dim: axis, includesSelf: includeSelf };
  const others = (): Tensor => {
    const ones = expand(filled([], x.dtype, 1), x.shape);
    return mul(gradient, scattered(ones, index, source, { ...attributes, way: "prod" }));
  };
  const ofX = () => (includeSelf ? others() : marked(operation, gradient, call, 0));
  const ofSource = () =>
    mul(gatherAlong(operation, gradient, index, axis), scatteredOthers(x, index, source, attributes));
  return [needs[0] ? ofX() : null, needs[1] ? ofSource() : null];
}

/**
 * Computes products by doubling, differentiable to any order. The elements are sorted by index. After step s, each has
 * been multiplied by the elements with the same index among the 2ˢ − 1 before it. At the end, the last element with an
 * index is the product of all, and `scatter` keeps the last one.
 */
function composedProducts(operation: string, call: Call): Tensor {
  const { x, index, source, axis, includeSelf } = call;
  const order = argsort(index, { dim: axis });
  const sorted = gatherAlong(operation, index, order, axis);
  let running = gatherAlong(operation, source, order, axis);
  const size = index.shape[axis];
  for (let step = 1; step < size; step *= 2) {
    const part = <D extends DType>(tensor: Tensor<D>, start: number): Tensor<D> =>
      narrow(tensor, axis, start, size - step);
    const isSame = eq(part(sorted, step), part(sorted, 0));
    const factor = where(isSame, part(running, 0), 1);
    running = cat([narrow(running, axis, 0, step), mul(part(running, step), toDType(factor, x.dtype))], axis);
  }
  if (!includeSelf) return scatterAlong(operation, x, sorted, running, axis);
  const ones = filled(x.shape, x.dtype, x.dtype === "int64" ? 1n : 1);
  return mul(x, scatterAlong(operation, ones, sorted, running, axis));
}

function extremes(operation: string, call: Call, reduce: "amax" | "amin"): Tensor {
  const { x, index, source, axis, includeSelf } = call;
  const attributes = { operation, dim: axis, way: reduce, includesSelf: includeSelf };
  const result = noGrad(() => scattered(x, index, source, attributes));
  record(operation, [x, source], [result], [x, source, index, result], ([g], [savedX, savedSource, at, best], needs) =>
    sharesOf(operation, g, { ...call, x: savedX, source: savedSource, index: at }, best, needs),
  );
  return result;
}

/** Divides the gradient equally among all elements that equal the extremum. */
function sharesOf(
  operation: string,
  gradient: Tensor,
  call: Call,
  best: Tensor,
  needs: readonly boolean[],
): [Tensor | null, Tensor | null] {
  const { x, index, source, axis, includeSelf } = call;
  const { isX, isSource, counts } = noGrad(() => {
    const reached = marked(operation, filled(x.shape, "uint8", 0), call, 1);
    const isExtreme = eq(x, best);
    const isBest = eq(source, gatherAlong(operation, best, index, axis));
    const isKept = includeSelf ? isExtreme : logicalAnd(isExtreme, logicalNot(gt(reached, 0)));
    const total = scatterAddAlong(operation, toDType(isKept, "int64"), index, toDType(isBest, "int64"), axis);
    return { isX: isKept, isSource: isBest, counts: toDType(maximum(total, 1n), gradient.dtype) };
  });
  const share = div(gradient, counts);
  return [
    needs[0] ? where(isX, share, 0) : null,
    needs[1] ? where(isSource, gatherAlong(operation, share, index, axis), 0) : null,
  ];
}
