/** Operators that move elements: shapes, slices, joins, indices. */

import { tensor as tensorOf } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, numbersOf, type Operators, Results } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { elementType, elementTypeName } from "../tensors.ts";

const int64 = (values: readonly number[], shape: readonly number[] = [values.length]): Tensor<"int64"> =>
  tensorOf(values.map(BigInt), { shape, dtype: "int64" });

/** Returns axes from the front, sorted. */
export const axesOf = (axes: readonly number[], rank: number): number[] =>
  axes.map((axis) => axisOf(axis, rank)).sort((a, b) => a - b);

/** Returns an axis from the front. @throws {NodeProblem} if there is no such axis */
export function axisOf(axis: number, rank: number): number {
  if (!Number.isInteger(axis) || axis < -rank || axis >= Math.max(rank, 1))
    throw new NodeProblem(`expected an axis of a tensor of rank ${rank}, got ${axis}`);
  return axis < 0 ? axis + rank : axis;
}

/** Casts to an element type of ONNX; a type without a dtype wraps into one that holds its values. */
export function castTo(x: Tensor, number: number): Tensor {
  const type = elementType(number);
  if (!type) throw new NodeProblem(`a cast to ${elementTypeName(number)} is not supported`);
  if (!type.wraps || type.wraps.bits === 64) return castSafely(x, type.dtype);
  const { bits, isSigned } = type.wraps;
  const whole = castSafely(x, "int32");
  const low = ops.bitwiseAnd(whole, 2 ** bits - 1);
  const wrapped = isSigned ? ops.sub(ops.bitwiseXor(low, 2 ** (bits - 1)), 2 ** (bits - 1)) : low;
  return wrapped.to(type.dtype);
}

const castSafely = (x: Tensor, dtype: DType): Tensor => (x.dtype === dtype ? x : x.to(dtype));

/** A 0 keeps the input's size unless `allowzero`, and −1 is computed. */
function reshape(call: Call): Tensor {
  const x = call.tensor(0);
  const wanted = call.numbersOr(1, "shape");
  if (!wanted) throw new NodeProblem("the shape is missing");
  const keepsZero = call.attributes.flag("allowzero");
  const sizes = wanted.map((size, at) => (size === 0 && !keepsZero ? (x.shape[at] ?? 0) : size));
  const known = sizes.filter((size) => size >= 0).reduce((product, size) => product * size, 1);
  const result = sizes.map((size) => (size === -1 ? (known === 0 ? 0 : x.size / known) : size));
  return ops.reshape(x, result);
}

function flatten(call: Call): Tensor {
  const x = call.tensor(0);
  const axis = call.attributes.number("axis", 1);
  const at = axis < 0 ? axis + x.rank : axis;
  const product = (sizes: readonly number[]) => sizes.reduce((result, size) => result * size, 1);
  return ops.reshape(x, [product(x.shape.slice(0, at)), product(x.shape.slice(at))]);
}

function squeeze(call: Call): Tensor {
  const x = call.tensor(0);
  const axes = call.numbersOr(1, "axes");
  const gone = new Set(axes ? axesOf(axes, x.rank) : x.shape.flatMap((size, at) => (size === 1 ? [at] : [])));
  for (const at of gone) if (x.shape[at] !== 1) throw new NodeProblem(`axis ${at} has size ${x.shape[at]}, expected 1`);
  return ops.reshape(
    x,
    x.shape.filter((_, at) => !gone.has(at)),
  );
}

function unsqueeze(call: Call): Tensor {
  const x = call.tensor(0);
  const axes = call.numbersOr(1, "axes") ?? [];
  const sizes = [...x.shape];
  for (const at of axesOf(axes, x.rank + axes.length)) sizes.splice(at, 0, 1);
  return ops.reshape(x, sizes);
}

/** The part of the shape from `start` to `end`. */
function shapeOf(call: Call): Tensor {
  const { shape } = call.tensor(0);
  const end = call.attributes.has("end") ? call.attributes.number("end") : shape.length;
  return int64(shape.slice(call.attributes.number("start", 0), end));
}

function transpose(call: Call): Tensor {
  const x = call.tensor(0);
  return ops.permute(x, [...(call.attributes.numbers("perm") ?? x.shape.map((_, at) => x.rank - 1 - at))]);
}

const concat = (call: Call): Tensor =>
  ops.cat(
    call.inputs.map((_, at) => call.tensor(at)),
    { dim: call.attributes.number("axis", 1) },
  );

function split(call: Call): Results {
  const x = call.tensor(0);
  const axis = axisOf(call.attributes.number("axis", 0), x.rank);
  return new Results(...ops.split(x, splitSizes(call, x.shape[axis]!), { dim: axis }));
}

/** Without sizes, equal parts, of which the last may be shorter. */
function splitSizes(call: Call, size: number): number[] {
  const given = call.numbersOr(1, "split");
  if (given) return [...given];
  const parts = call.attributes.has("num_outputs") ? call.attributes.number("num_outputs") : call.results;
  const each = Math.ceil(size / parts);
  return Array.from({ length: parts }, (_, at) => Math.max(Math.min(each, size - at * each), 0));
}

/** Bounds beyond an axis mean its end; steps may be negative. */
function slice(call: Call): Tensor {
  const x = call.tensor(0);
  const starts = call.numbersOr(1, "starts") ?? [];
  const ends = call.numbersOr(2, "ends") ?? [];
  const axes = call.numbersOr(3, "axes") ?? starts.map((_, at) => at);
  const steps = call.optional(4) ? call.numbers(4) : starts.map(() => 1);
  return axes.reduce((result: Tensor, axis, at) => {
    const dim = axisOf(axis, x.rank);
    const [start, end, step] = [starts[at]!, ends[at]!, steps[at]!];
    return sliceAxis(result, dim, start, end, step);
  }, x);
}

function sliceAxis(x: Tensor, dim: number, start: number, end: number, step: number): Tensor {
  const size = x.shape[dim]!;
  const from = (value: number) => (value < 0 ? value + size : value);
  const limit = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);
  if (step > 0) {
    const [first, last] = [limit(from(start), 0, size), limit(from(end), 0, size)];
    return ops.slice(x, { dim, start: first, end: Math.max(first, last), step: Math.min(step, Math.max(size, 1)) });
  }
  if (step === 0) throw new NodeProblem("a step is 0");
  const [first, last] = [limit(from(start), -1, size - 1), limit(from(end), -1, size - 1)];
  const count = Math.max(Math.ceil((first - last) / -step), 0);
  const places = Array.from({ length: count }, (_, at) => first + at * step);
  return ops.indexSelect(x, dim, int64(places));
}

/** Returns indices from the front. */
const wrapped = (indices: Tensor, size: number): Tensor<"int64"> =>
  ops.where(ops.lt(indices, 0), ops.add(indices, size), indices).to("int64");

/** Indices of any rank replace the axis. */
function gather(call: Call): Tensor {
  const [x, indices] = [call.tensor(0), call.tensor(1)];
  const axis = axisOf(call.attributes.number("axis", 0), x.rank);
  const rows = ops.indexSelect(x, axis, ops.reshape(wrapped(indices, x.shape[axis]!), [indices.size]));
  return ops.reshape(rows, [...x.shape.slice(0, axis), ...indices.shape, ...x.shape.slice(axis + 1)]);
}

function gatherElements(call: Call): Tensor {
  const [x, indices] = [call.tensor(0), call.tensor(1)];
  const axis = axisOf(call.attributes.number("axis", 0), x.rank);
  return ops.gather(x, axis, wrapped(indices, x.shape[axis]!));
}

/** Combines index tuples, the last axis, into places in a tensor whose leading axes are flattened. */
function places(indices: Tensor, sizes: readonly number[]): Tensor<"int64"> {
  const depth = indices.shape.at(-1)!;
  const flat = ops.reshape(
    indices,
    [-1, depth].map((size) => (size === -1 ? indices.size / Math.max(depth, 1) : size)),
  );
  let result = ops.zeros([flat.shape[0]!], { dtype: "int64" });
  for (let at = 0; at < depth; at++)
    result = ops.add(ops.mul(result, sizes[at]!), wrapped(ops.select(flat, 1, at), sizes[at]!)).to("int64");
  return result;
}

function gatherNd(call: Call): Tensor {
  const [x, indices] = [call.tensor(0), call.tensor(1)];
  const batch = call.attributes.number("batch_dims", 0);
  const depth = indices.shape.at(-1)!;
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
  return scatterAlong(x, axis, wrapped(indices, x.shape[axis]!), updates, reductionOf(call));
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
  const depth = indices.shape.at(-1)!;
  const rest = x.shape.slice(depth);
  const width = rest.reduce((product, size) => product * size, 1);
  const flat = ops.reshape(x, [width === 0 ? 0 : x.size / width, width]);
  const at = places(indices, x.shape.slice(0, depth));
  const rows = ops.expand(ops.reshape(at, [at.size, 1]), [at.size, width]);
  const result = scatterAlong(flat, 0, rows, ops.reshape(updates, [at.size, width]), reductionOf(call));
  return ops.reshape(result, x.shape);
}

const padModes = { constant: "constant", reflect: "reflect", edge: "replicate", wrap: "circular" } as const;

/** Padding by axis: starts of all axes, then ends. Negative amounts cut. */
function pad(call: Call): Tensor {
  const x = call.tensor(0);
  const amounts = call.numbersOr(1, "pads") ?? call.attributes.numbers("paddings") ?? [];
  const axes = call.optional(3) ? call.numbers(3).map((axis) => axisOf(axis, x.rank)) : x.shape.map((_, at) => at);
  const mode = call.attributes.text("mode", "constant");
  const value = call.optional(2) ? call.number(2)! : call.attributes.number("value", 0);
  if (!Object.hasOwn(padModes, mode)) throw new NodeProblem(`attribute mode: got ${mode}`);
  return axes.reduce((result: Tensor, axis, at) => {
    const [before, after] = [amounts[at]!, amounts[at + axes.length]!];
    return padAxis(result, axis, before, after, mode as keyof typeof padModes, value);
  }, x);
}

function padAxis(
  x: Tensor,
  axis: number,
  before: number,
  after: number,
  mode: keyof typeof padModes,
  value: number,
): Tensor {
  if (before === 0 && after === 0) return x;
  const size = x.shape[axis]!;
  if (mode === "constant") {
    const list = new Array<number>(2 * x.rank).fill(0);
    list[2 * (x.rank - 1 - axis)] = before;
    list[2 * (x.rank - 1 - axis) + 1] = after;
    return ops.pad(x, list, { value: x.dtype === "bool" ? value !== 0 : value } as never);
  }
  if (size === 0) throw new NodeProblem(`an axis of size 0 can't be padded by mode ${mode}`);
  const places = Array.from({ length: size + before + after }, (_, at) => sourceOf(at - before, size, mode));
  return ops.indexSelect(x, axis, int64(places));
}

/** Where the element of a place outside of an axis comes from. */
function sourceOf(at: number, size: number, mode: keyof typeof padModes): number {
  if (mode === "edge") return Math.min(Math.max(at, 0), size - 1);
  if (mode === "wrap") return ((at % size) + size) % size;
  const period = Math.max(2 * (size - 1), 1);
  const place = ((at % period) + period) % period;
  return size === 1 ? 0 : Math.min(place, period - place);
}

/** Cuts or pads to sizes, evenly on both sides. */
function centerCropPad(call: Call): Tensor {
  const x = call.tensor(0);
  const sizes = call.numbers(1);
  const axes = (call.attributes.numbers("axes") ?? x.shape.map((_, at) => at)).map((axis) => axisOf(axis, x.rank));
  return axes.reduce((result: Tensor, axis, at) => {
    const difference = sizes[at]! - x.shape[axis]!;
    if (difference < 0) return ops.narrow(result, axis, Math.floor(-difference / 2), sizes[at]!);
    const before = Math.floor(difference / 2);
    return padAxis(result, axis, before, difference - before, "constant", 0);
  }, x);
}

/** Both shapes broadcast: a size of 1 keeps the input's. */
function expand(call: Call): Tensor {
  const x = call.tensor(0);
  const wanted = call.numbers(1);
  const rank = Math.max(wanted.length, x.rank);
  const shape = Array.from({ length: rank }, (_, at) => {
    const [given, size] = [x.shape[at - (rank - x.rank)] ?? 1, wanted[at - (rank - wanted.length)] ?? 1];
    return size === 1 ? given : size;
  });
  return ops.expand(x, shape);
}

function oneHot(call: Call): Tensor {
  const indices = call.tensor(0);
  const depth = call.number(1)!;
  const [off, on] = [ops.select(call.tensor(2), 0, 0), ops.select(call.tensor(2), 0, 1)];
  const axis = axisOf(call.attributes.number("axis", -1), indices.rank + 1);
  const within = ops.where(ops.lt(indices, 0), ops.add(indices, depth), indices);
  const classes = ops.reshape(
    int64(Array.from({ length: depth }, (_, at) => at)),
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

function trilu(call: Call): Tensor {
  const diagonal = call.number(1) ?? 0;
  const x = call.tensor(0);
  return call.attributes.flag("upper", true) ? ops.triu(x, { diagonal }) : ops.tril(x, { diagonal });
}

function eyeLike(call: Call): Tensor {
  const x = call.tensor(0);
  const [rows, columns] = x.shape;
  const k = call.attributes.number("k", 0);
  const type = call.attributes.has("dtype") ? elementType(call.attributes.number("dtype"))?.dtype : x.dtype;
  const [row, column] = [ops.arange(rows!), ops.arange(columns!)];
  return ops.eq(ops.add(ops.unsqueeze(row, 1), k), ops.unsqueeze(column, 0)).to(type ?? x.dtype);
}

/** Channels become pixels of blocks: DCR has the block's axes before the depth, CRD after it. */
function depthToSpace(call: Call): Tensor {
  const x = call.tensor(0);
  const block = call.attributes.number("blocksize");
  const [batch, channels, height, width] = x.shape as [number, number, number, number];
  const depth = channels / block ** 2;
  const isColumn = call.attributes.text("mode", "DCR") === "CRD";
  const parts = isColumn ? [depth, block, block] : [block, block, depth];
  const split = ops.reshape(x, [batch, ...parts, height, width]);
  const order = isColumn ? [0, 1, 4, 2, 5, 3] : [0, 3, 4, 1, 5, 2];
  return ops.reshape(ops.permute(split, order), [batch, depth, height * block, width * block]);
}

function spaceToDepth(call: Call): Tensor {
  const x = call.tensor(0);
  const block = call.attributes.number("blocksize");
  const [batch, channels, height, width] = x.shape as [number, number, number, number];
  const split = ops.reshape(x, [batch, channels, height / block, block, width / block, block]);
  const isColumn = call.attributes.text("mode", "DCR") === "CRD";
  const order = ops.permute(split, isColumn ? [0, 1, 3, 5, 2, 4] : [0, 3, 5, 1, 2, 4]);
  return ops.reshape(order, [batch, channels * block ** 2, height / block, width / block]);
}

/** Reverses the first elements of each sequence. */
function reverseSequence(call: Call): Tensor {
  const x = call.tensor(0);
  const lengths = call.numbers(1);
  const time = call.attributes.number("time_axis", 0);
  const batch = call.attributes.number("batch_axis", 1);
  const rows = lengths.map((length, at) => {
    const row = ops.select(x, batch, at);
    const axis = time > batch ? time - 1 : time;
    const places = Array.from({ length: x.shape[time]! }, (_, place) => (place < length ? length - 1 - place : place));
    return ops.indexSelect(row, axis, int64(places));
  });
  return ops.stack(rows, { dim: batch });
}

function cumulative(call: Call, compute: typeof ops.cumsum): Tensor {
  const x = call.tensor(0);
  const dim = axisOf(call.number(1)!, x.rank);
  const isReversed = call.attributes.flag("reverse");
  const ordered = isReversed ? ops.flip(x, [dim]) : x;
  const sums = compute(ordered, { dim }).to(x.dtype) as Tensor;
  const result = call.attributes.flag("exclusive") ? shifted(sums, dim, compute === ops.cumsum ? 0 : 1) : sums;
  return isReversed ? ops.flip(result, [dim]) : result;
}

/** Moves elements one place on; the first is a constant. */
const shifted = (x: Tensor, dim: number, first: number): Tensor =>
  padAxis(ops.narrow(x, dim, 0, Math.max(x.shape[dim]! - 1, 0)), dim, 1, 0, "constant", first);

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
  const found = ops.unique(x, {
    ...(dim === undefined ? {} : { dim }),
    returnInverse: true,
    returnCounts: true,
  } as never);
  const { values, inverse, counts } = found as unknown as { values: Tensor; inverse: Tensor; counts: Tensor };
  const firsts = firstPlaces(numbersOf(inverse), counts.size);
  if (call.attributes.flag("sorted", true))
    return new Results(values, int64(firsts), ops.reshape(inverse, [inverse.size]), counts);
  return inOrderOfPlaces(values, firsts, numbersOf(inverse), counts, dim ?? 0);
}

/** Where each value appears first. */
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
  const order = firsts.map((_, at) => at).sort((a, b) => firsts[a]! - firsts[b]!);
  const ranks = new Array<number>(order.length);
  for (const [rank, at] of order.entries()) ranks[at] = rank;
  const [chosen, sorted] = [int64(order), order.map((at) => firsts[at]!)];
  const renamed = int64(inverse.map((value) => ranks[value]!));
  return new Results(ops.indexSelect(values, dim, chosen), int64(sorted), renamed, ops.indexSelect(counts, 0, chosen));
}

function constantOfShape(call: Call): Tensor {
  const value = call.attributes.tensor("value");
  const shape = call.numbers(0);
  return value
    ? ops.expand(ops.reshape(value, new Array<number>(shape.length).fill(1)), shape).contiguous()
    : ops.zeros(shape);
}

function constant(call: Call): Tensor {
  const { attributes } = call;
  const value = attributes.tensor("value");
  if (value) return value;
  if (attributes.has("value_float")) return tensorOf(attributes.number("value_float"), { dtype: "float32" });
  if (attributes.has("value_int")) return int64([attributes.number("value_int")], []);
  const floats = attributes.numbers("value_floats");
  if (floats) return tensorOf([...floats], { dtype: "float32" });
  const ints = attributes.numbers("value_ints");
  if (ints) return int64(ints);
  throw new NodeProblem("a constant of strings or a sparse one is not supported");
}

function range(call: Call): Tensor {
  const start = call.tensor(0);
  const [from, to, step] = [0, 1, 2].map((at) => call.number(at)!) as [number, number, number];
  const count = Math.max(Math.ceil((to - from) / step), 0);
  const values = Array.from({ length: count }, (_, at) => from + at * step);
  return start.dtype === "int64" ? int64(values) : tensorOf(values, { dtype: start.dtype, shape: [count] });
}

export const shapes: Operators = {
  Cast: (call) => castTo(call.tensor(0), call.attributes.number("to")),
  CastLike: (call) => castSafely(call.tensor(0), call.tensor(1).dtype),
  CenterCropPad: centerCropPad,
  Compress: compress,
  Concat: concat,
  Constant: constant,
  ConstantOfShape: constantOfShape,
  CumProd: (call) => cumulative(call, ops.cumprod),
  CumSum: (call) => cumulative(call, ops.cumsum),
  DepthToSpace: depthToSpace,
  Expand: expand,
  EyeLike: eyeLike,
  Flatten: flatten,
  Gather: gather,
  GatherElements: gatherElements,
  GatherND: gatherNd,
  NonZero: (call) => ops.transpose(ops.nonzero(call.tensor(0)), 0, 1),
  OneHot: oneHot,
  Pad: pad,
  Range: range,
  Reshape: reshape,
  ReverseSequence: reverseSequence,
  Scatter: scatterElements,
  ScatterElements: scatterElements,
  ScatterND: scatterNd,
  Shape: shapeOf,
  Size: (call) => int64([call.tensor(0).size], []),
  Slice: slice,
  SpaceToDepth: spaceToDepth,
  Split: split,
  Squeeze: squeeze,
  Tile: (call) => ops.tile(call.tensor(0), call.numbers(1)),
  TopK: topK,
  Transpose: transpose,
  Trilu: trilu,
  Unique: unique,
  Unsqueeze: unsqueeze,
};
