/** Operators that gather elements by index, and that scatter them. */
import { lastElement } from "../../core/collections.ts";
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, numbersOf, type Operators, Results } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { axisOf, int64, listOf } from "./axes.ts";

/** Bounds are clamped to the axis. With a negative step, the start is clamped to the last element. */
function slice(call: Call): Tensor {
  const x = call.tensor(0);
  const starts = call.numbersOr(1, "starts") ?? [];
  const ends = call.numbersOr(2, "ends") ?? [];
  const axes = call.numbersOr(3, "axes") ?? starts.map((_, at) => at);
  const steps = call.optional(4) ? call.numbers(4) : starts.map(() => 1);
  return axes.reduce((result: Tensor, axis, at) => {
    const dim = axisOf(axis, x.rank);
    const [start, end, step] = [starts[at], ends[at], steps[at]];
    return sliceAxis(result, dim, start, end, step);
  }, x);
}

/**
 * The largest int32 and int64. As an end, they mean the end of the axis in the direction of the step, as in
 * onnxruntime.
 */
const openEnds = new Set([2 ** 31 - 1, 2 ** 63]);

function sliceAxis(x: Tensor, dim: number, start: number, end: number, step: number): Tensor {
  const size = x.shape[dim];
  const from = (value: number) => (value < 0 ? value + size : value);
  const limit = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);
  if (step > 0) {
    const [first, last] = [limit(from(start), 0, size), limit(from(end), 0, size)];
    return ops.slice(x, { dim, start: first, end: Math.max(first, last), step: Math.min(step, Math.max(size, 1)) });
  }
  if (step === 0) throw new NodeProblem("expected a step other than 0, got 0");
  const [first, last] = [limit(from(start), 0, size - 1), openEnds.has(end) ? -1 : limit(from(end), -1, size - 1)];
  const count = Math.max(Math.ceil((first - last) / -step), 0);
  const places = Array.from({ length: count }, (_, at) => first + at * step);
  return ops.indexSelect(x, dim, int64(places));
}

/** Returns nonnegative indices. */
const wrapped = (indices: Tensor, size: number): Tensor<"int64"> =>
  ops.where(ops.lt(indices, 0), ops.add(indices, size), indices).to("int64");

/** Indices of any rank replace the axis. */
function gather(call: Call): Tensor {
  const [x, indices] = [call.tensor(0), call.tensor(1)];
  const axis = axisOf(call.attributes.number("axis", 0), x.rank);
  const rows = ops.indexSelect(x, axis, ops.reshape(wrapped(indices, x.shape[axis]), [indices.size]));
  return ops.reshape(rows, [...x.shape.slice(0, axis), ...indices.shape, ...x.shape.slice(axis + 1)]);
}

function gatherElements(call: Call): Tensor {
  const [x, indices] = [call.tensor(0), call.tensor(1)];
  const axis = axisOf(call.attributes.number("axis", 0), x.rank);
  return ops.gather(x, axis, wrapped(indices, x.shape[axis]));
}

/** Converts index tuples, which are the last axis, to positions in a tensor whose leading axes are flattened. */
function places(indices: Tensor, sizes: readonly number[]): Tensor<"int64"> {
  const depth = lastElement(indices.shape);
  const flat = ops.reshape(
    indices,
    [-1, depth].map((size) => (size === -1 ? indices.size / Math.max(depth, 1) : size)),
  );
  let result = ops.zeros([flat.shape[0]], { dtype: "int64" });
  for (let at = 0; at < depth; at++)
    result = ops.add(ops.mul(result, sizes[at]), wrapped(ops.select(flat, 1, at), sizes[at])).to("int64");
  return result;
}

function gatherNd(call: Call): Tensor {
  const [x, indices] = [call.tensor(0), call.tensor(1)];
  const batch = call.attributes.number("batch_dims", 0);
  const depth = lastElement(indices.shape);
  const batches = x.shape.slice(0, batch).reduce((product, size) => product * size, 1);
  const [indexed, rest] = [x.shape.slice(batch, batch + depth), x.shape.slice(batch + depth)];
  const rows = indexed.reduce((product, size) => product * size, 1);
  const flat = ops.reshape(x, [batches * rows, ...rest]);
  const inBatch = ops.reshape(
    places(indices, indexed),
    [batches, -1].map((n) => (n === -1 ? indices.size / Math.max(depth, 1) / Math.max(batches, 1) : n)),
  );
  const starts = ops.reshape(int64(Array.from({ length: batches }, (_, at) => at * rows)), [batches, 1]);
  const all = ops.add(inBatch, starts).to("int64");
  const result = ops.indexSelect(flat, 0, ops.reshape(all, [all.size]));
  return ops.reshape(result, [...indices.shape.slice(0, -1), ...rest]);
}

const reductions = { add: "sum", mul: "prod", max: "amax", min: "amin" } as const;

function reductionOf(call: Call): "none" | (typeof reductions)[keyof typeof reductions] {
  const name = call.attributes.text("reduction", "none");
  if (name === "none") return "none";
  const known = reductions[name as keyof typeof reductions];
  if (!known) throw new NodeProblem(`attribute reduction: expected none, add, mul, max or min, got ${name}`);
  return known;
}

function scatterElements(call: Call): Tensor {
  const [x, indices, updates] = [call.tensor(0), call.tensor(1), call.tensor(2)];
  const axis = axisOf(call.attributes.number("axis", 0), x.rank);
  return scatterAlong(x, axis, wrapped(indices, x.shape[axis]), updates, reductionOf(call));
}

const scatterAlong = (
  x: Tensor,
  axis: number,
  indices: Tensor<"int64">,
  updates: Tensor,
  reduction: ReturnType<typeof reductionOf>,
): Tensor =>
  reduction === "none"
    ? ops.scatter(x, axis, indices, updates)
    : ops.scatterReduce(x, axis, indices, updates, reduction);

function scatterNd(call: Call): Tensor {
  const [x, indices, updates] = [call.tensor(0), call.tensor(1), call.tensor(2)];
  const depth = lastElement(indices.shape);
  const rest = x.shape.slice(depth);
  const width = rest.reduce((product, size) => product * size, 1);
  const flat = ops.reshape(x, [width === 0 ? 0 : x.size / width, width]);
  const at = places(indices, x.shape.slice(0, depth));
  const rows = ops.expand(ops.reshape(at, [at.size, 1]), [at.size, width]);
  const result = scatterAlong(flat, 0, rows, ops.reshape(updates, [at.size, width]), reductionOf(call));
  return ops.reshape(result, x.shape);
}

function oneHot(call: Call): Tensor {
  const indices = call.tensor(0);
  const depth = call.number(1)!;
  const [off, on] = [ops.select(call.tensor(2), 0, 0), ops.select(call.tensor(2), 0, 1)];
  const axis = axisOf(call.attributes.number("axis", -1), indices.rank + 1);
  const within = ops.where(ops.lt(indices, 0), ops.add(indices, depth), indices);
  const classes = ops.reshape(
    int64(listOf(depth, (at) => at)),
    Array.from({ length: indices.rank + 1 }, (_, at) => (at === axis ? depth : 1)),
  );
  return ops.where(ops.eq(ops.unsqueeze(within, axis), classes.to(within.dtype)), on, off);
}

function topK(call: Call): Results {
  const x = call.tensor(0);
  const k = call.number(1) ?? call.attributes.number("k");
  const dim = axisOf(call.attributes.number("axis", -1), x.rank);
  const { values, indices } = ops.topk(x, k, { dim, largest: call.attributes.flag("largest", true) });
  return new Results(values, indices);
}

function compress(call: Call): Tensor {
  const [x, condition] = [call.tensor(0), call.numbers(1)];
  const chosen = int64(condition.flatMap((value, at) => (value !== 0 ? [at] : [])));
  if (!call.attributes.has("axis")) return ops.indexSelect(ops.reshape(x, [x.size]), 0, chosen);
  return ops.indexSelect(x, axisOf(call.attributes.number("axis"), x.rank), chosen);
}

function unique(call: Call): Results {
  const given = call.tensor(0);
  const hasAxis = call.attributes.has("axis");
  const dim = hasAxis ? axisOf(call.attributes.number("axis"), given.rank) : undefined;
  const x = hasAxis ? given : ops.reshape(given, [given.size]);
  const options = { ...(dim === undefined ? {} : { dim }), returnInverse: true, returnCounts: true } as const;
  const found = ops.unique(x, options);
  const [values, inverse, counts] = [found.values, found.inverse!, found.counts!];
  const firsts = firstPlaces(numbersOf(inverse), counts.size);
  if (call.attributes.flag("sorted", true))
    return new Results(values, int64(firsts), ops.reshape(inverse, [inverse.size]), counts);
  return inOrderOfPlaces(values, firsts, numbersOf(inverse), counts, dim ?? 0);
}

/** The position of each value's first occurrence. */
function firstPlaces(inverse: readonly number[], count: number): number[] {
  const firsts = new Array<number>(count).fill(-1);
  for (const [at, value] of inverse.entries()) if (firsts[value] === -1) firsts[value] = at;
  return firsts;
}

function inOrderOfPlaces(
  values: Tensor,
  firsts: readonly number[],
  inverse: readonly number[],
  counts: Tensor,
  dim: number,
): Results {
  const order = firsts.map((_, at) => at).sort((a, b) => firsts[a] - firsts[b]);
  const ranks = new Array<number>(order.length);
  for (const [rank, at] of order.entries()) ranks[at] = rank;
  const [chosen, sorted] = [int64(order), order.map((at) => firsts[at])];
  const renamed = int64(inverse.map((value) => ranks[value]));
  return new Results(ops.indexSelect(values, dim, chosen), int64(sorted), renamed, ops.indexSelect(counts, 0, chosen));
}

export const indexing: Operators = {
  Compress: compress,
  Gather: gather,
  GatherElements: gatherElements,
  GatherND: gatherNd,
  NonZero: (call) => ops.transpose(ops.nonzero(call.tensor(0)), 0, 1),
  OneHot: oneHot,
  Scatter: scatterElements,
  ScatterElements: scatterElements,
  ScatterND: scatterNd,
  Slice: slice,
  TopK: topK,
  Unique: unique,
};
