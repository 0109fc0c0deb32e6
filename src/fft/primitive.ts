/** The primitives of discrete Fourier transforms. Complex numbers are pairs along the last axis. */
import { cpuCall } from "../backend/cpu/call.ts";
import { array, dtype, flag, real, whole, word } from "../backend/fields.ts";
import { struct } from "../backend/metal/struct.ts";
import { plainList } from "../tensor/frozen.ts";
import { MAX_RANK } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** X[k] = scale Σ x[j] e^(∓2πi jk / n): the exponent is negative unless `inverse`. */
export interface Direction {
  readonly inverse: boolean;
  readonly scale: number;
}

/** Transforms complex numbers, [..., 2], along an axis. */
export interface ComplexTransform extends Direction {
  readonly axis: number;
}

/** Transforms complex numbers, [..., 2], or real ones along several axes, whose lengths stay. */
export interface AxesTransform extends Direction {
  readonly axes: readonly number[];
  readonly isReal: boolean;
}

/** Transforms between real rows of this length and the first half of their spectra: [..., length / 2 + 1, 2]. */
export interface RealTransform extends Direction {
  readonly length: number;
  readonly toReal: boolean;
}

/** Returns the number of elements before, along and after an axis of complex numbers. */
export function partsOf(x: Tensor, axis: number): { outer: number; length: number; inner: number } {
  const sizes = plainList(x.shape);
  let [outer, inner] = [1, 1];
  for (let at = 0; at < axis; at++) outer *= sizes[at];
  for (let at = axis + 1; at < sizes.length - 1; at++) inner *= sizes[at];
  return { outer, length: sizes[axis], inner };
}

const direction = { inverse: flag, scale: real };

export const fftCall = cpuCall(
  "fft",
  {
    dtype,
    ...direction,
    isReal: flag,
    passes: whole,
    outer: array(whole, MAX_RANK),
    length: array(whole, MAX_RANK),
    inner: array(whole, MAX_RANK),
    offsets: array(whole, 2),
  },
  ["x", "out"],
);

export const realFftCall = cpuCall(
  "realFft",
  { dtype, toReal: flag, ...direction, rows: whole, length: whole, offsets: array(whole, 2) },
  ["x", "out"],
);

/** The maximum number of passes in a kernel's transform. */
const MAX_PASSES = 12;

/** The layout of lines of complex numbers: see the kernel. */
export const fftParameters = struct("Fft", {
  lines: whole,
  mid: whole,
  inner: whole,
  inRow: whole,
  outRow: whole,
  inMid: whole,
  inStep: whole,
  outMid: whole,
  outStep: whole,
  inLength: whole,
  outLength: whole,
  rowLength: whole,
  tableStart: whole,
  length: whole,
  twiddle: whole,
  group: whole,
  passes: whole,
  radices: array(whole, MAX_PASSES),
  flags: word,
  scale: real,
});
