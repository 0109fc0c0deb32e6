/** Operators that change shapes, join and split. */
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Call, type Operators, Results } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { axesOf, axisOf, int64 } from "./axes.ts";
import { padAxis } from "./padding.ts";

/** A 0 keeps the input's size unless `allowzero`, and −1 is computed. */
function reshape(call: Call): Tensor {
  const x = call.tensor(0);
  const target = call.numbersOr(1, "shape");
  if (!target) throw new NodeProblem("the shape is missing");
  const keepsZero = call.attributes.flag("allowzero");
  const sizes = target.map((size, at) => (size === 0 && !keepsZero ? (x.shape[at] ?? 0) : size));
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
  return new Results(...ops.split(x, splitSizes(call, x.shape[axis]), { dim: axis }));
}

/** Returns the sizes of the parts. By default, parts are equal, except that the last may be shorter. */
function splitSizes(call: Call, size: number): number[] {
  const given = call.numbersOr(1, "split");
  if (given) return [...given];
  const parts = call.attributes.has("num_outputs") ? call.attributes.number("num_outputs") : call.results;
  const each = Math.ceil(size / parts);
  return Array.from({ length: parts }, (_, at) => Math.max(Math.min(each, size - at * each), 0));
}

/** Both shapes are broadcast: a requested size of 1 keeps the input's size. */
function expand(call: Call): Tensor {
  const x = call.tensor(0);
  const target = call.numbers(1);
  const rank = Math.max(target.length, x.rank);
  const shape = Array.from({ length: rank }, (_, at) => {
    const [given, size] = [x.shape[at - (rank - x.rank)] ?? 1, target[at - (rank - target.length)] ?? 1];
    return size === 1 ? given : size;
  });
  return ops.expand(x, shape);
}

function trilu(call: Call): Tensor {
  const diagonal = call.number(1) ?? 0;
  const x = call.tensor(0);
  return call.attributes.flag("upper", true) ? ops.triu(x, { diagonal }) : ops.tril(x, { diagonal });
}

/** Moves channels into blocks of pixels. In mode DCR, the block's axes come before the depth; in CRD, after it. */
function depthToSpace(call: Call): Tensor {
  const x = call.tensor(0);
  const block = call.attributes.number("blocksize");
  const [batch, channels, height, width] = x.sizes(4);
  const depth = channels / block ** 2;
  const isColumn = call.attributes.choice("mode", ["DCR", "CRD"], "DCR") === "CRD";
  const parts = isColumn ? [depth, block, block] : [block, block, depth];
  const split = ops.reshape(x, [batch, ...parts, height, width]);
  const order = isColumn ? [0, 1, 4, 2, 5, 3] : [0, 3, 4, 1, 5, 2];
  return ops.reshape(ops.permute(split, order), [batch, depth, height * block, width * block]);
}

function spaceToDepth(call: Call): Tensor {
  const x = call.tensor(0);
  const block = call.attributes.number("blocksize");
  const [batch, channels, height, width] = x.sizes(4);
  const split = ops.reshape(x, [batch, channels, height / block, block, width / block, block]);
  const isColumn = call.attributes.choice("mode", ["DCR", "CRD"], "DCR") === "CRD";
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
    const places = Array.from({ length: x.shape[time] }, (_, place) => (place < length ? length - 1 - place : place));
    return ops.indexSelect(row, axis, int64(places));
  });
  return ops.stack(rows, { dim: batch });
}

function cumulative(call: Call, compute: typeof ops.cumsum): Tensor {
  const x = call.tensor(0);
  const dim = axisOf(call.number(1)!, x.rank);
  const isReversed = call.attributes.flag("reverse");
  const ordered = isReversed ? ops.flip(x, [dim]) : x;
  const sums = compute(ordered, { dim }).to(x.dtype);
  const result = call.attributes.flag("exclusive") ? shifted(sums, dim, compute === ops.cumsum ? 0 : 1) : sums;
  return isReversed ? ops.flip(result, [dim]) : result;
}

/** Shifts elements by one position; the first becomes a constant. */
const shifted = (x: Tensor, dim: number, first: number): Tensor =>
  padAxis(ops.narrow(x, dim, 0, Math.max(x.shape[dim] - 1, 0)), dim, 1, 0, "constant", first);

export const shapes: Operators = {
  Concat: concat,
  CumProd: (call) => cumulative(call, ops.cumprod),
  CumSum: (call) => cumulative(call, ops.cumsum),
  DepthToSpace: depthToSpace,
  Expand: expand,
  Flatten: flatten,
  Reshape: reshape,
  ReverseSequence: reverseSequence,
  Shape: shapeOf,
  Size: (call) => int64([call.tensor(0).size], []),
  SpaceToDepth: spaceToDepth,
  Split: split,
  Squeeze: squeeze,
  Tile: (call) => ops.tile(call.tensor(0), call.numbers(1)),
  Transpose: transpose,
  Trilu: trilu,
  Unsqueeze: unsqueeze,
};
