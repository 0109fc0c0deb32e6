/** Operators that move windows over the axes after batch and channels: convolutions and poolings. */

import { getBackend } from "../../backend/policy.ts";
import { tupleOf } from "../../core/tuples.ts";
import { convolutionWithPads } from "../../ops/convolution/convolution.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, type Operator, type Operators, Results } from "../call.ts";
import { NodeProblem } from "../errors.ts";

/** The layout of the windows over the input, by axis. */
interface Windows {
  readonly kernel: readonly number[];
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  readonly before: readonly number[];
  readonly after: readonly number[];
  /** The number of windows. */
  readonly counts: readonly number[];
}

const filled = (length: number, value: number): number[] => new Array<number>(length).fill(value);

/** Reads the attributes that convolutions and poolings share. */
function windowsOf(call: Call, sizes: readonly number[], kernel: readonly number[]): Windows {
  const { attributes } = call;
  const rank = sizes.length;
  if (kernel.length !== rank) throw new NodeProblem(`expected a kernel of ${rank} axes, got [${kernel}]`);
  const stride = attributes.numbers("strides") ?? filled(rank, 1);
  const dilation = attributes.numbers("dilations") ?? filled(rank, 1);
  const spans = kernel.map((size, at) => (size - 1) * dilation[at] + 1);
  const [before, after] = padsOf(call, sizes, spans, stride);
  checkGrowth(sizes, before, after);
  const isCeil = attributes.flag("ceil_mode");
  const counts = sizes.map((size, at) => {
    const room = size + before[at] + after[at] - spans[at];
    const count = (isCeil ? Math.ceil(room / stride[at]) : Math.floor(room / stride[at])) + 1;
    // A window must begin inside of the input or its padding at the start.
    return isCeil && (count - 1) * stride[at] >= size + before[at] ? count - 1 : count;
  });
  const ends = sizes.map((size, at) =>
    Math.max((counts[at] - 1) * stride[at] + spans[at] - size - before[at], isCeil ? after[at] : 0),
  );
  return { kernel, stride, dilation, before, after: isCeil ? ends : after, counts };
}

/** The values of `auto_pad`. */
const autoPads = ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"] as const;

/** A padded image may have up to the larger of this number of elements, and this many times the image's elements. */
const [MOST_ADDED, MOST_TIMES] = [1 << 24, 16];

/** Limits padding, because a damaged file could otherwise exhaust memory. */
function checkGrowth(sizes: readonly number[], before: readonly number[], after: readonly number[]): void {
  const sizesAfter = sizes.map((size, at) => Math.max(size + before[at] + after[at], 0));
  const most = Math.max(MOST_ADDED, MOST_TIMES * elementCount(sizes));
  if (elementCount(sizesAfter) <= most) return;
  throw new NodeProblem(`padding [${before}] and [${after}] is too large for [${sizes}]; at most ${most} elements`);
}

/** Padding before and after each axis: as given, or computed so that there is a window for each step. */
function padsOf(
  call: Call,
  sizes: readonly number[],
  spans: readonly number[],
  stride: readonly number[],
): [before: number[], after: number[]] {
  const rank = sizes.length;
  const auto = call.attributes.choice("auto_pad", autoPads, "NOTSET");
  if (auto === "NOTSET") {
    const pads = call.attributes.numbers("pads") ?? filled(2 * rank, 0);
    return [pads.slice(0, rank), pads.slice(rank)];
  }
  if (auto === "VALID") return [filled(rank, 0), filled(rank, 0)];
  const totals = sizes.map((size, at) =>
    Math.max((Math.ceil(size / stride[at]) - 1) * stride[at] + spans[at] - size, 0),
  );
  const small = totals.map((total) => Math.floor(total / 2));
  const large = totals.map((total) => Math.ceil(total / 2));
  return auto === "SAME_UPPER" ? [small, large] : [large, small];
}

/** Pads the axes after batch and channels. */
function padded(x: Tensor, before: readonly number[], after: readonly number[], value: number): Tensor {
  if ([...before, ...after].every((amount) => amount === 0)) return x;
  const list = before.toReversed().flatMap((amount, at) => [amount, after.at(-1 - at)!]);
  return ops.pad(x, list, { value });
}

const spatial = (x: Tensor): readonly number[] => x.shape.slice(2);

const transposed = [ops.convTranspose1d, ops.convTranspose2d, ops.convTranspose3d];

/** Returns the function for this many axes. */
function byRank<F>(list: readonly F[], rank: number): F {
  const found = list[rank - 1];
  if (!found) throw new NodeProblem(`expected 1 to ${list.length} axes besides batch and channels, got ${rank}`);
  return found;
}

/** Convolves along one to three axes. */
export function convolve(call: Call, x: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  const plan = windowsOf(call, spatial(x), call.attributes.numbers("kernel_shape") ?? spatial(weight));
  const rank = plan.kernel.length;
  if (rank < 1 || rank > 3) throw new NodeProblem(`expected 1 to 3 axes besides batch and channels, got ${rank}`);
  const { stride, dilation, before, after } = plan;
  const padding = before.map((amount, at) => [amount, after[at]] as const);
  // Negative padding crops the input, which the convolution kernels do not support.
  const isCut = [...before, ...after].some((amount) => amount < 0);
  return convolutionWithPads({
    x: isCut ? padded(x, before, after, 0) : x,
    weight,
    bias,
    stride: [...stride],
    dilation: [...dilation],
    padding: isCut ? before.map(() => [0, 0]) : padding,
    groups: call.attributes.number("group", 1),
  });
}

/**
 * Up to this many positions, a product of gathered windows is faster than a convolution, which first packs the weight.
 */
const MOST_FEW_POSITIONS = 8;
/** Smaller weights take little time to pack. */
const LEAST_FEW_WEIGHTS = 1024;

/**
 * Convolves as a product of the windows, a row each, with the weight. Returns undefined if there are too many windows
 * or several groups or batches.
 */
export function convolveFew(call: Call, x: Tensor, weight: Tensor): Tensor | undefined {
  const plan = windowsOf(call, spatial(x), call.attributes.numbers("kernel_shape") ?? spatial(weight));
  const positions = elementCount(plan.counts);
  const isFew = positions > 0 && positions <= MOST_FEW_POSITIONS && weight.size >= LEAST_FEW_WEIGHTS;
  if (!isFew || getBackend() !== "cpu" || x.shape[0] !== 1 || call.attributes.number("group", 1) !== 1)
    return undefined;
  const { kernel, stride, dilation, before, after, counts } = plan;
  const source = ops.contiguous(padded(x, before, after, 0));
  const steps = source.strides.slice(2);
  const windows = ops.asStrided(
    source,
    [...counts, source.shape[1], ...kernel],
    [...steps.map((step, at) => step * stride[at]), source.strides[1], ...steps.map((s, at) => s * dilation[at])],
    source.offset,
  );
  const outputs = weight.shape[0];
  const rows = ops.linear(ops.reshape(windows, [positions, -1]), ops.reshape(weight, [outputs, -1]));
  return ops.reshape(ops.transpose(rows, 0, 1), [1, outputs, ...counts]);
}

/** Padding crops the result. If `output_shape` is given, the padding follows from it. */
function convolveTransposed(call: Call): Tensor {
  const [x, weight, bias] = [call.tensor(0), call.tensor(1), call.optional(2)];
  const { attributes } = call;
  const rank = x.rank - 2;
  const list = (name: string, value: number) => attributes.numbers(name) ?? filled(rank, value);
  const [stride, dilation, more] = [list("strides", 1), list("dilations", 1), list("output_padding", 0)];
  const whole = spatial(x).map(
    (size, at) => stride[at] * (size - 1) + (spatial(weight)[at] - 1) * dilation[at] + 1 + more[at],
  );
  const [before, after] = transposedPads(call, spatial(x), whole, stride);
  // The kernel's result ends before the additional elements, to which no element of x contributes.
  const full = byRank(transposed, rank)(x, weight, { stride, dilation, groups: attributes.number("group", 1) });
  const ends = more.map((amount, at) => amount + Math.max(-after[at], 0));
  const extended = padded(
    full,
    before.map((amount) => Math.max(-amount, 0)),
    ends,
    0,
  );
  const cut = whole.reduce(
    (result: Tensor, size, at) => ops.narrow(result, at + 2, Math.max(before[at], 0), size - before[at] - after[at]),
    extended,
  );
  return bias ? ops.add(cut, ops.reshape(bias, [1, bias.size, ...filled(rank, 1)])) : cut;
}

function transposedPads(
  call: Call,
  sizes: readonly number[],
  whole: readonly number[],
  stride: readonly number[],
): [before: number[], after: number[]] {
  const rank = sizes.length;
  const auto = call.attributes.choice("auto_pad", autoPads, "NOTSET");
  const given = call.attributes.numbers("output_shape")?.slice(-rank);
  const isSame = auto === "SAME_UPPER" || auto === "SAME_LOWER";
  const target = given ?? (isSame ? sizes.map((size, at) => size * stride[at]) : undefined);
  if (!target) {
    const pads = auto === "VALID" ? filled(2 * rank, 0) : (call.attributes.numbers("pads") ?? filled(2 * rank, 0));
    return [pads.slice(0, rank), pads.slice(rank)];
  }
  const totals = target.map((size, at) => whole[at] - size);
  // A result that ends after the last product gets all its zeros at the end.
  const small = totals.map((total) =>
    auto !== "SAME_UPPER" && total < 0 ? total : Math.max(Math.floor(total / 2), 0),
  );
  const rest = totals.map((total, at) => total - small[at]);
  return auto === "SAME_UPPER" ? [small, rest] : [rest, small];
}

const kernelOf = (call: Call): readonly number[] => {
  const kernel = call.attributes.numbers("kernel_shape");
  if (!kernel) throw new NodeProblem("attribute kernel_shape is missing");
  return kernel;
};

const maxPools = [ops.maxPool1d, ops.maxPool2d, ops.maxPool3d];

/** Indices of the largest elements count through the whole tensor, in column-major order if `storage_order` is 1. */
function maxPool(call: Call): Results {
  const x = call.tensor(0);
  const plan = windowsOf(call, spatial(x), kernelOf(call));
  // Integers have 8 bits, so float32 represents them exactly, and −∞ is below all of them for the padding.
  const wide = padded(isFloat(x.dtype) ? x : x.to("float32"), plan.before, plan.after, Number.NEGATIVE_INFINITY);
  const options = { stride: plan.stride, dilation: plan.dilation };
  const pool = byRank(maxPools, plan.kernel.length);
  if (call.results < 2) return new Results(cutTo(pool(wide, plan.kernel, options), plan.counts).to(x.dtype));
  const { values, indices } = pool(wide, plan.kernel, { ...options, returnIndices: true });
  const places = wholePlaces(call, x, wide, cutTo(indices, plan.counts), plan.before);
  return new Results(cutTo(values, plan.counts).to(x.dtype), places);
}

/** Removes windows at the end that begin outside the input. */
const cutTo = <T extends Tensor>(x: T, counts: readonly number[]): T =>
  counts.reduce((result: Tensor, count, at) => ops.narrow(result, at + 2, 0, count), x) as T;

/** Converts indices in a padded plane to indices in the whole tensor. */
function wholePlaces(call: Call, x: Tensor, wide: Tensor, indices: Tensor<"int64">, before: readonly number[]): Tensor {
  const sizes = spatial(x);
  const isByColumns = call.attributes.number("storage_order", 0) === 1;
  let rest: Tensor = indices;
  const coordinates = spatial(wide)
    .map((size, at) => [size, at] as const)
    .toReversed()
    .map(([size, at]) => {
      const coordinate = ops.sub(ops.remainder(rest, size), before[at]);
      rest = ops.floorDivide(rest, size);
      return coordinate;
    })
    .reverse();
  const order = isByColumns ? sizes.map((_, at) => at).reverse() : sizes.map((_, at) => at);
  const inPlane = order.reduce(
    (place: Tensor | undefined, at) => (place ? ops.add(ops.mul(place, sizes[at]), coordinates[at]) : coordinates[at]),
    undefined,
  )!;
  const plane = sizes.reduce((product, size) => product * size, 1);
  const planes = ops.reshape(ops.arange(x.shape[0] * x.shape[1]), [...x.shape.slice(0, 2), ...filled(sizes.length, 1)]);
  return ops.add(inPlane, ops.mul(planes.to("int64"), plane)).to("int64");
}

/** Sums over windows. */
function windowSums(x: Tensor, plan: Windows): Tensor {
  const wide = padded(x, plan.before, plan.after, 0);
  const rank = plan.kernel.length;
  const windows = plan.kernel.reduce((result: Tensor, size, at) => {
    const span = (size - 1) * plan.dilation[at] + 1;
    const all = ops.slidingWindows(result, at + 2, span, plan.stride[at]);
    return ops.slice(all, { dim: -1, step: plan.dilation[at] });
  }, wide);
  const last = Array.from({ length: rank }, (_, at) => -1 - at);
  return cutTo(ops.sum(windows, { dim: last, dtype: x.dtype }), plan.counts);
}

/** Padding counts as elements only with `count_include_pad`; the elements that `ceil_mode` adds never count. */
export function averagePool(call: Call): Tensor {
  const x = call.tensor(0);
  const plan = windowsOf(call, spatial(x), kernelOf(call));
  const includes = call.attributes.flag("count_include_pad");
  const rank = plan.kernel.length;
  const isGiven = call.attributes.choice("auto_pad", autoPads, "NOTSET") === "NOTSET";
  const ends = isGiven ? (call.attributes.numbers("pads")?.slice(rank) ?? filled(rank, 0)) : plan.after;
  const counts = plan.kernel.map((kernel, axis) => {
    const size = spatial(x)[axis];
    const [low, high] = includes ? [-plan.before[axis], size + ends[axis]] : [0, size];
    return Array.from({ length: plan.counts[axis] }, (_, window) => {
      const first = window * plan.stride[axis] - plan.before[axis];
      return Array.from({ length: kernel }, (_, at) => first + at * plan.dilation[axis]).filter(
        (place) => place >= low && place < high,
      ).length;
    });
  });
  const divisor = counts
    .map((list, axis) =>
      ops.reshape(tensor(list, { dtype: "float32" }), [
        1,
        1,
        ...counts.map((_, at) => (at === axis ? list.length : 1)),
      ]),
    )
    .reduce((a, b) => ops.mul(a, b));
  return ops.div(windowSums(x, plan), divisor.to(x.dtype));
}

function lpPool(call: Call): Tensor {
  const x = call.tensor(0);
  const p = call.attributes.number("p", 2);
  const plan = windowsOf(call, spatial(x), kernelOf(call));
  return ops.pow(windowSums(ops.pow(ops.abs(x), p), plan), 1 / p);
}

const over = (x: Tensor): number[] => spatial(x).map((_, at) => at + 2);

/** Puts values back at the indices that max pooling returned. */
function maxUnpool(call: Call): Tensor {
  const [x, indices] = [call.tensor(0), call.tensor(1)];
  const kernel = kernelOf(call);
  const stride = call.attributes.numbers("strides") ?? filled(kernel.length, 1);
  const pads = call.attributes.numbers("pads") ?? filled(2 * kernel.length, 0);
  const sizes = spatial(x).map(
    (size, at) => (size - 1) * stride[at] + kernel[at] - pads[at] - pads[at + kernel.length],
  );
  const natural = [...x.shape.slice(0, 2), ...sizes];
  const shape = call.optional(2) ? call.numbers(2) : natural;
  const result = ops.scatter(
    ops.zeros([natural.reduce((product, size) => product * size, 1)], { dtype: x.dtype }),
    ...([0, ops.reshape(indices, [indices.size]) as Tensor<"int64">, ops.reshape(x, [x.size])] as const),
  );
  const placed = ops.reshape(result, natural);
  return padded(
    placed,
    filled(kernel.length, 0),
    natural.slice(2).map((size, at) => shape[at + 2] - size),
    0,
  );
}

/** Adds columns of patches to an image: the adjoint of taking patches. */
function columnsToImage(call: Call): Tensor {
  const x = call.tensor(0);
  const [image, block] = [call.numbers(1), call.numbers(2)];
  const rank = image.length;
  const list = (name: string, value: number) => call.attributes.numbers(name) ?? filled(rank, value);
  const [stride, dilation] = [list("strides", 1), list("dilations", 1)];
  const pads = call.attributes.numbers("pads") ?? filled(2 * rank, 0);
  const counts = image.map((size, at) => {
    const span = (block[at] - 1) * dilation[at] + 1;
    return Math.floor((size + pads[at] + pads[at + rank] - span) / stride[at]) + 1;
  });
  const [batch, rows] = tupleOf(x.shape, 2);
  const cells = block.reduce((product, size) => product * size, 1);
  const channels = rows / cells;
  const grid = ops.reshape(x, [batch, channels, cells, counts.reduce((product, size) => product * size, 1)]);
  const sizes = image.map((size, at) => size + pads[at] + pads[at + rank]);
  const places = placesOfPatches(sizes, block, counts, stride, dilation);
  const flat = ops.indexAdd(
    ops.zeros([batch, channels, sizes.reduce((product, size) => product * size, 1)], { dtype: x.dtype }),
    2,
    tensor(places.map(BigInt), { dtype: "int64", shape: [places.length] }),
    ops.reshape(grid, [batch, channels, places.length]),
  );
  const wide = ops.reshape(flat, [batch, channels, ...sizes]);
  return image.reduce((result: Tensor, size, at) => ops.narrow(result, at + 2, pads[at], size), wide);
}

/**
 * The position of each element of each patch: the outer axis is the elements of a patch, the inner axis the patches.
 */
function placesOfPatches(
  sizes: readonly number[],
  block: readonly number[],
  counts: readonly number[],
  stride: readonly number[],
  dilation: readonly number[],
): number[] {
  let [offsets, starts] = [[0], [0]];
  for (const [at, size] of sizes.entries()) {
    const cells = Array.from({ length: block[at] }, (_, cell) => cell * dilation[at]);
    const firsts = Array.from({ length: counts[at] }, (_, patch) => patch * stride[at]);
    offsets = offsets.flatMap((offset) => cells.map((cell) => offset * size + cell));
    starts = starts.flatMap((start) => firsts.map((first) => start * size + first));
  }
  return offsets.flatMap((offset) => starts.map((start) => offset + start));
}

const global =
  (reduce: (x: Tensor, axes: { dim: number[]; keepdim: true }) => Tensor): Operator =>
  (call) => {
    const x = call.tensor(0);
    return reduce(x, { dim: over(x), keepdim: true });
  };

export const windows: Operators = {
  AveragePool: averagePool,
  Col2Im: columnsToImage,
  Conv: (call) => convolve(call, call.tensor(0), call.tensor(1), call.optional(2)),
  ConvTranspose: convolveTransposed,
  GlobalAveragePool: global((x, axes) => ops.mean(x, axes)),
  GlobalLpPool: (call) => {
    const x = call.tensor(0);
    const p = call.attributes.number("p", 2);
    return ops.pow(ops.sum(ops.pow(ops.abs(x), p), { dim: over(x), keepdim: true }), 1 / p).to(x.dtype);
  },
  GlobalMaxPool: global((x, axes) => ops.amax(x, axes)),
  LpPool: lpPool,
  MaxPool: maxPool,
  MaxUnpool: maxUnpool,
};
