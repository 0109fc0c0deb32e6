/**
 * The elements and weights from which a resized axis is computed, with the coordinates, clamps and filters of PyTorch's
 * `interpolate`.
 */

import type { AxisMap } from "../pooling/resample.ts";

/** The interpolation along one axis. */
export type Resampling = "nearest" | "nearest-exact" | "linear" | "cubic" | FilterName;

/** For each element of the result, the input elements and their weights. */
export interface Taps {
  /** For each tap, the input positions of all elements of the result. */
  readonly places: readonly BigInt64Array[];
  /** For each tap, the weights of all elements of the result. Undefined if there is one tap of weight 1. */
  readonly weights: readonly Float64Array[] | undefined;
}

/** An axis to resize. */
export interface Axis {
  readonly size: number;
  readonly output: number;
  /** The scale factor, if the caller passed one. */
  readonly factor: number | undefined;
  readonly alignCorners: boolean;
}

const maps = new Map<string, AxisMap>();
const MOST_MAPS = 64;

/** Returns the taps of an axis as a map. Maps are cached, since a model resizes to the same sizes again and again. */
export function mapOf(resampling: Resampling, axis: Axis, antialias: boolean): AxisMap {
  const key = `${resampling} ${axis.size} ${axis.output} ${axis.factor} ${axis.alignCorners} ${antialias}`;
  const known = maps.get(key);
  if (known) return known;
  const map = mapOfTaps(axis, tapsOf(resampling, axis, antialias));
  if (maps.size >= MOST_MAPS) maps.delete(maps.keys().next().value!);
  maps.set(key, map);
  return map;
}

/** Taps of the same element are merged. */
function mapOfTaps({ size, output }: Axis, taps: Taps | undefined): AxisMap {
  if (!taps) return { input: size, starts: Array.from({ length: output }, (_, at) => at), lengths: fill(output, 1) };
  const places = taps.places.map((list) => Array.from(list, Number));
  const starts = fill(output, 0).map((_, at) => Math.min(...places.map((list) => list[at])));
  const lengths = starts.map((start, at) => Math.max(...places.map((list) => list[at])) - start + 1);
  const weights = starts.flatMap((start, at) => {
    const window = fill(lengths[at], 0);
    for (const [tap, list] of places.entries()) window[list[at] - start] += taps.weights?.[tap]?.[at] ?? 1;
    return window;
  });
  return { input: size, starts, lengths, weights: taps.weights && weights };
}

const fill = (length: number, value: number): number[] => new Array<number>(length).fill(value);

/** Returns the taps of an axis, or undefined if the axis does not change. */
export function tapsOf(resampling: Resampling, axis: Axis, antialias: boolean): Taps | undefined {
  if (resampling === "nearest" || resampling === "nearest-exact")
    return nearest(axis, resampling === "nearest" ? 0 : 0.5);
  const step = stepOf(axis);
  if (antialias) return filtered(axis, step, resampling);
  const start = axis.alignCorners ? 0 : 0.5;
  const at = (index: number): number => step * (index + start) - start;
  if (resampling === "cubic") return cubic(axis, at);
  if (axis.size === axis.output && step === 1) return undefined;
  return linear(axis, (index) => Math.max(at(index), 0));
}

/** Returns the distance between adjacent result elements, in input elements. */
function stepOf({ size, output, factor, alignCorners }: Axis): number {
  if (alignCorners) return output > 1 ? (size - 1) / (output - 1) : 0;
  return factor ? 1 / factor : size / output;
}

/** Computes nearest positions in float32, as PyTorch does for every dtype. */
function nearest({ size, output, factor }: Axis, shift: number): Taps | undefined {
  if (size === output && (factor === undefined || factor === 1)) return undefined;
  const step = Math.fround(factor ? 1 / factor : Math.fround(size) / output);
  const place = (index: number): number =>
    Math.min(Math.floor(Math.fround(Math.fround(index + shift) * step)), size - 1);
  return { places: [BigInt64Array.from({ length: output }, (_, index) => BigInt(place(index)))], weights: undefined };
}

function linear({ size, output }: Axis, at: (index: number) => number): Taps {
  const first = Array.from({ length: output }, (_, index) => Math.min(Math.floor(at(index)), size - 1));
  const after = first.map((place) => Math.min(place + 1, size - 1));
  const part = Float64Array.from(first, (place, index) => at(index) - place);
  return {
    places: [first, after].map((list) => BigInt64Array.from(list, BigInt)),
    weights: [part.map((fraction) => 1 - fraction), part],
  };
}

/**
 * Computes the weights of four taps at distance t. Source: R. Keys, "Cubic Convolution Interpolation for Digital Image
 * Processing", 1981, with a = −3/4.
 */
export function cubicWeights(t: number): [number, number, number, number] {
  return [keys(t + 1, -0.75), keys(t, -0.75), keys(1 - t, -0.75), keys(2 - t, -0.75)];
}

function keys(distance: number, a: number): number {
  const x = Math.abs(distance);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

function cubic({ size, output }: Axis, at: (index: number) => number): Taps {
  const first = Array.from({ length: output }, (_, index) => Math.floor(at(index)));
  const weights = first.map((place, index) => cubicWeights(at(index) - place));
  const clamped = (place: number): bigint => BigInt(Math.min(Math.max(place, 0), size - 1));
  return {
    places: [-1, 0, 1, 2].map((shift) => BigInt64Array.from(first, (place) => clamped(place + shift))),
    weights: [0, 1, 2, 3].map((tap) => Float64Array.from(weights, (each) => each[tap])),
  };
}

/** The filters of antialiased resizing. */
export type FilterName = "linear" | "cubic" | "lanczos" | "box" | "hamming";

/** sin(πx) / (πx) */
const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

/** The weight at a distance, which is 0 from the distance `support` on. Source: Pillow's `Resample.c`. */
const filters: Readonly<Record<FilterName, { support: number; weight: (distance: number) => number }>> = {
  box: { support: 0.5, weight: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) },
  linear: { support: 1, weight: (x) => Math.max(1 - Math.abs(x), 0) },
  hamming: { support: 1, weight: (x) => (Math.abs(x) < 1 ? sinc(x) * (0.54 + 0.46 * Math.cos(Math.PI * x)) : 0) },
  cubic: { support: 2, weight: (x) => keys(x, -0.5) },
  lanczos: { support: 3, weight: (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0) },
};

/**
 * Computes antialiased taps as Pillow does: the filter is scaled by the distance of result elements, and its weights
 * are normalized to a sum of 1.
 */
function filtered({ size, output }: Axis, step: number, resampling: Resampling): Taps {
  const wide = Math.max(step, 1);
  const { support, weight: filter } = filters[resampling as FilterName];
  const reach = support * wide;
  const windows = Array.from({ length: output }, (_, index) => {
    const center = step * (index + 0.5);
    const start = Math.max(Math.trunc(center - reach + 0.5), 0);
    const end = Math.min(Math.trunc(center + reach + 0.5), size);
    const raw = Array.from({ length: Math.max(end - start, 0) }, (_, at) => filter((at + start - center + 0.5) / wide));
    const total = raw.reduce((sum, weight) => sum + weight, 0);
    return { start, weights: raw.map((weight) => (total === 0 ? 0 : weight / total)) };
  });
  const count = Math.max(...windows.map(({ weights }) => weights.length), 1);
  const taps = Array.from({ length: count }, (_, tap) => tap);
  return {
    places: taps.map((tap) => BigInt64Array.from(windows, ({ start }) => BigInt(Math.min(start + tap, size - 1)))),
    weights: taps.map((tap) => Float64Array.from(windows, ({ weights }) => weights[tap] ?? 0)),
  };
}
