/** Operators that pad and crop. */
import * as ops from "../../ops/index.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Call, Operators } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { axisOf, int64, listOf } from "./axes.ts";

const padModes = { constant: "constant", reflect: "reflect", edge: "replicate", wrap: "circular" } as const;

/** Padding amounts: the starts of all axes, then the ends. Negative amounts crop. */
function pad(call: Call): Tensor {
  const x = call.tensor(0);
  const amounts = call.numbersOr(1, "pads") ?? call.attributes.numbers("paddings") ?? [];
  const axes = call.optional(3) ? call.numbers(3).map((axis) => axisOf(axis, x.rank)) : x.shape.map((_, at) => at);
  const mode = call.attributes.text("mode", "constant");
  const value = call.optional(2) ? call.number(2)! : call.attributes.number("value", 0);
  if (!Object.hasOwn(padModes, mode))
    throw new NodeProblem(`attribute mode: expected constant, reflect, edge or wrap, got ${mode}`);
  return axes.reduce((result: Tensor, axis, at) => {
    const [before, after] = [amounts[at], amounts[at + axes.length]];
    return padAxis(result, axis, before, after, mode as keyof typeof padModes, value);
  }, x);
}

/** Pads one axis; negative amounts crop. */
export function padAxis(
  x: Tensor,
  axis: number,
  before: number,
  after: number,
  mode: keyof typeof padModes,
  value: number,
): Tensor {
  if (before === 0 && after === 0) return x;
  const size = x.shape[axis];
  if (mode === "constant")
    return ops.pad(x, listFor(x, axis, before, after), { value: x.dtype === "bool" ? value !== 0 : value });
  if (size === 0) throw new NodeProblem(`an axis of size 0 can't be padded by mode ${mode}`);
  const other = padModes[mode];
  const most = mode === "reflect" ? size - 1 : mode === "wrap" ? size : Infinity;
  if (Math.min(before, after) >= 0 && Math.max(before, after) <= most)
    return ops.pad(x, listFor(x, axis, before, after), { mode: other });
  const places = listOf(size + before + after, (at) => sourceOf(at - before, size, mode));
  return ops.indexSelect(x, axis, int64(places));
}

/** The amounts for one axis, in the order of `pad`: the last axis first. */
function listFor(x: Tensor, axis: number, before: number, after: number): number[] {
  const list = new Array<number>(2 * x.rank).fill(0);
  list.splice(2 * (x.rank - 1 - axis), 2, before, after);
  return list;
}

/** Returns the index of the element that fills a position outside of an axis. */
function sourceOf(at: number, size: number, mode: keyof typeof padModes): number {
  if (mode === "edge") return Math.min(Math.max(at, 0), size - 1);
  if (mode === "wrap") return ((at % size) + size) % size;
  const period = Math.max(2 * (size - 1), 1);
  const place = ((at % period) + period) % period;
  return size === 1 ? 0 : Math.min(place, period - place);
}

/** Crops or pads to given sizes, evenly on both sides. */
function centerCropPad(call: Call): Tensor {
  const x = call.tensor(0);
  const sizes = call.numbers(1);
  const axes = (call.attributes.numbers("axes") ?? x.shape.map((_, at) => at)).map((axis) => axisOf(axis, x.rank));
  return axes.reduce((result: Tensor, axis, at) => {
    const difference = sizes[at] - x.shape[axis];
    if (difference < 0) return ops.narrow(result, axis, Math.floor(-difference / 2), sizes[at]);
    const before = Math.floor(difference / 2);
    return padAxis(result, axis, before, difference - before, "constant", 0);
  }, x);
}

export const padding: Operators = {
  CenterCropPad: centerCropPad,
  Pad: pad,
};
