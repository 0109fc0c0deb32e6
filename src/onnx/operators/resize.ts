/** Resizing, one axis after the other: each result is a weighted sum of a few elements. */
import { tensor } from "../../ops/creation/tensor.ts";
import * as ops from "../../ops/index.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Call, Operators } from "../call.ts";
import { NodeProblem } from "../errors.ts";
import { axisOf, listOf } from "./axes.ts";

interface Axis {
  readonly at: number;
  readonly input: number;
  readonly output: number;
  readonly scale: number;
  readonly roi: readonly [start: number, end: number];
}

/** The input elements of one result, and their weights. */
type Taps = readonly (readonly [place: number, weight: number])[];

function resize(call: Call): Tensor {
  const x = call.tensor(0);
  const mode = call.attributes.text("mode", "nearest");
  const axes = axesOf(call, x).filter(
    ({ input, output, scale }) => input !== output || scale !== 1 || isCropping(call),
  );
  const wide = isFloat(x.dtype) || mode === "nearest" ? x : x.to("float32");
  const result = axes.reduce((current: Tensor, axis) => resizeAxis(call, current, axis, mode), wide);
  if (result.dtype === x.dtype) return result;
  const limits: Readonly<Record<string, readonly [number, number]>> = { uint8: [0, 255], int8: [-128, 127] };
  const [min, max] = limits[x.dtype] ?? [-(2 ** 31), 2 ** 31 - 1];
  return ops.clamp(ops.trunc(result), { min, max }).to(x.dtype);
}

const isCropping = (call: Call): boolean =>
  call.attributes.text("coordinate_transformation_mode", "half_pixel") === "tf_crop_and_resize";

/** Sizes and scales of all axes, from `sizes` or `scales`. */
function axesOf(call: Call, x: Tensor): Axis[] {
  const [roiAt, scalesAt, sizesAt] = call.opset < 11 ? [-1, 1, -1] : [1, 2, 3];
  const dims = (call.attributes.numbers("axes") ?? x.shape.map((_, at) => at)).map((axis) => axisOf(axis, x.rank));
  const given = sizesAt >= 0 && call.optional(sizesAt)?.size ? call.numbers(sizesAt) : undefined;
  const factors = given
    ? undefined
    : call.optional(scalesAt)
      ? call.numbers(scalesAt)
      : call.attributes.numbers("scales");
  if (!given && !factors) throw new NodeProblem("expected scales or sizes");
  const roi = roiAt >= 0 && call.optional(roiAt)?.size ? call.numbers(roiAt) : [];
  const sizes =
    given &&
    keepingRatio(
      call,
      dims.map((at) => x.shape[at]),
      given,
    );
  return dims.map((at, index) => {
    const input = x.shape[at];
    const scale = sizes ? sizes.scales[index] : factors![index];
    const output = sizes ? sizes.sizes[index] : Math.floor(Math.fround(input * scale));
    return { at, input, output, scale, roi: [roi[index] ?? 0, roi[index + dims.length] ?? 1] };
  });
}

/** `keep_aspect_ratio_policy` sets all scales to the smallest or the largest of them. */
function keepingRatio(
  call: Call,
  inputs: readonly number[],
  target: readonly number[],
): { sizes: number[]; scales: number[] } {
  const policy = call.attributes.choice(
    "keep_aspect_ratio_policy",
    ["stretch", "not_larger", "not_smaller"],
    "stretch",
  );
  const scales = target.map((size, at) => size / inputs[at]);
  if (policy === "stretch") return { sizes: [...target], scales };
  const scale = policy === "not_larger" ? Math.min(...scales) : Math.max(...scales);
  const halfUp = (value: number) => Math.floor(value + 0.5);
  return { sizes: inputs.map((size) => halfUp(size * scale)), scales: inputs.map(() => scale) };
}

function resizeAxis(call: Call, x: Tensor, axis: Axis, mode: string): Tensor {
  const places = listOf(axis.output, (at) => sourceOf(call, axis, at));
  const taps = places.map((place) => (isOutside(call, axis, place) ? undefined : tapsOf(call, axis, place, mode)));
  const result = weightedSum(x, axis.at, taps);
  if (taps.every((each) => each !== undefined)) return result;
  const shape = x.shape.map((_, at) => (at === axis.at ? axis.output : 1));
  const inside = tensor(
    taps.map((each) => each !== undefined),
    { shape, dtype: "bool" },
  );
  return ops.where(inside, result, call.attributes.number("extrapolation_value", 0)).to(x.dtype);
}

const isOutside = (call: Call, { input }: Axis, place: number): boolean =>
  isCropping(call) && (place < 0 || place > input - 1);

/** Σ weight · element, over as many taps as the longest list has. */
function weightedSum(x: Tensor, dim: number, taps: readonly (Taps | undefined)[]): Tensor {
  const count = Math.max(...taps.map((each) => each?.length ?? 0), 1);
  const shape = x.shape.map((_, at) => (at === dim ? taps.length : 1));
  const parts = Array.from({ length: count }, (_, at) => {
    const places = taps.map((each) => BigInt(each?.[at]?.[0] ?? 0));
    const weights = taps.map((each) => each?.[at]?.[1] ?? 0);
    const chosen = ops.indexSelect(x, dim, tensor(places, { dtype: "int64", shape: [taps.length] }));
    if (weights.every((weight) => weight === 1)) return chosen;
    return ops.mul(chosen, tensor(weights, { dtype: isFloat(x.dtype) ? x.dtype : "float32", shape }));
  });
  return parts.reduce((a, b) => ops.add(a, b)).to(x.dtype);
}

/**
 * Returns the input coordinate of a result. It is computed in float32 as in other runtimes, because rounding depends on
 * it.
 */
const sourceOf = (call: Call, axis: Axis, at: number): number => Math.fround(exactSourceOf(call, axis, at));

/** The formulas of `coordinate_transformation_mode` in the standard. */
function exactSourceOf(call: Call, { input, output, scale, roi: [start, end] }: Axis, at: number): number {
  const mode = call.attributes.text("coordinate_transformation_mode", call.opset < 11 ? "asymmetric" : "half_pixel");
  const exact = input * scale;
  const center = Math.fround((at + 0.5) / scale);
  // The result has a whole number of elements. Only half_pixel_symmetric uses the product, which may be fractional.
  switch (mode) {
    case "half_pixel":
      return center - 0.5;
    case "half_pixel_symmetric": {
      const adjustment = output / exact;
      return (input / 2) * (1 - adjustment) + center - 0.5;
    }
    case "pytorch_half_pixel":
      return output > 1 ? center - 0.5 : 0;
    case "align_corners":
      return output === 1 ? 0 : (at * (input - 1)) / (output - 1);
    case "asymmetric":
      return at / scale;
    case "tf_half_pixel_for_nn":
      return center;
    case "tf_crop_and_resize":
      return output > 1
        ? start * (input - 1) + (at * (end - start) * (input - 1)) / (output - 1)
        : 0.5 * (start + end) * (input - 1);
    default:
      throw new NodeProblem(`attribute coordinate_transformation_mode: expected a mode of the standard, got ${mode}`);
  }
}

function tapsOf(call: Call, axis: Axis, place: number, mode: string): Taps {
  if (mode === "nearest") return [[nearest(call, place, axis), 1]];
  const stretch = call.attributes.flag("antialias") && axis.scale < 1 ? axis.scale : 1;
  if (mode === "linear") return kernelTaps(call, axis, place, (t) => Math.max(1 - Math.abs(t), 0), 1 / stretch, 1);
  if (mode === "cubic") {
    const a = call.attributes.number("cubic_coeff_a", -0.75);
    return kernelTaps(call, axis, place, (t) => cubic(Math.abs(t), a), 1 / stretch, 2);
  }
  throw new NodeProblem(`attribute mode: expected nearest, linear or cubic, got ${mode}`);
}

/** Up to version 10, onnxruntime rounds down when enlarging, and up when shrinking. */
function nearest(call: Call, place: number, { input: size, scale }: Axis): number {
  const early = scale < 1 ? "ceil" : "floor";
  const mode = call.attributes.text("nearest_mode", call.opset < 11 ? early : "round_prefer_floor");
  const rounded = {
    round_prefer_floor: Math.ceil(place - 0.5),
    round_prefer_ceil: Math.floor(place + 0.5),
    floor: Math.floor(place),
    ceil: Math.ceil(place),
  }[mode];
  if (rounded === undefined)
    throw new NodeProblem(
      `attribute nearest_mode: expected round_prefer_floor, round_prefer_ceil, floor or ceil, got ${mode}`,
    );
  return Math.min(Math.max(rounded, 0), size - 1);
}

/** Keys' cubic convolution (1981). */
function cubic(t: number, a: number): number {
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/** Returns the taps within the kernel's radius. Taps outside of the input repeat the edge, or are omitted. */
function kernelTaps(
  call: Call,
  { input }: Axis,
  place: number,
  kernel: (t: number) => number,
  width: number,
  radius: number,
): Taps {
  const reach = radius * width;
  const [first, last] = [Math.ceil(place - reach), Math.floor(place + reach)];
  const all = Array.from({ length: last - first + 1 }, (_, at) => {
    const from = first + at;
    return [from, kernel((place - from) / width)] as const;
  }).filter(([, weight]) => weight !== 0);
  const leavesOut = call.attributes.flag("exclude_outside");
  const used = leavesOut ? all.filter(([from]) => from >= 0 && from < input) : all;
  const total = leavesOut || width > 1 ? used.reduce((sum, [, weight]) => sum + weight, 0) : 1;
  return used.map(([from, weight]) => [Math.min(Math.max(from, 0), input - 1), weight / total] as const);
}

export const resizing: Operators = {
  Resize: resize,
  Upsample: resize,
};
