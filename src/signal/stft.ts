/** Short-time Fourier transforms and their inverse. */

import { underName } from "../backend/dispatch.ts";
import { lastElement } from "../core/collections.ts";
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { choice, flag } from "../core/kinds.ts";
import { type Needed, operand, optional, parameters, required } from "../core/parameters.ts";
import { tupleOf } from "../core/tuples.ts";
import { complexLine, realLine, spectrumLine } from "../fft/lines.ts";
import type { RealFrom } from "../fft/one.ts";
import type { ComplexFrom } from "../ops/complex/parts.ts";
import { fold } from "../ops/convolution/unfold.ts";
import { toDType } from "../ops/copy/cast.ts";
import { mul } from "../ops/elementwise/arithmetic.ts";
import { div } from "../ops/elementwise/division.ts";
import { pad } from "../ops/join/pad.ts";
import { min } from "../ops/reduction/extrema.ts";
import { expand } from "../ops/view/expand.ts";
import { transpose } from "../ops/view/permute.ts";
import { reshape } from "../ops/view/reshape.ts";
import { narrow } from "../ops/view/slice.ts";
import { squeeze, unsqueeze } from "../ops/view/squeeze.ts";
import { accumulationDType, type DType, isComplex, realDType } from "../tensor/dtype.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { aCount, type Frames, framed, framesOf } from "./frames.ts";

/** Options that {@link stft} and {@link istft} share. */
export interface ShortTimeOptions {
  /** The length of a frame's transform. */
  nFft: number;
  /** The distance between frames in samples. Default nFft / 4. */
  hopLength?: number | undefined;
  /** The length of the window, which is centered in a frame. Default: the length of `window`, else nFft. */
  winLength?: number | undefined;
  /** The window, [winLength]. Default: ones. */
  window?: Tensor | undefined;
  /**
   * Whether frame t is centered at sample t · hopLength: the signal is extended by nFft / 2 at both ends. Default true.
   */
  center?: boolean | undefined;
  /** Whether spectra are scaled by 1 / √nFft. Default false. */
  normalized?: boolean | undefined;
  /**
   * Whether spectra have only their first half, nFft / 2 + 1 elements. Default: for `stft`, if the signal is real; for
   * `istft`, unless there are nFft frequencies.
   */
  onesided?: boolean | undefined;
}

/** Options of {@link stft}. */
export interface StftOptions extends ShortTimeOptions {
  /** How `center` extends the signal. Default `"reflect"`. */
  padMode?: "reflect" | "constant" | "replicate" | "circular" | undefined;
}

/** Options of {@link istft}. */
export interface IstftOptions extends ShortTimeOptions {
  /**
   * The number of samples of the result, which is truncated, or padded with zeros. Default: all that the frames cover.
   */
  length?: number | undefined;
}

const shared = {
  nFft: required(aCount),
  hopLength: optional(aCount),
  winLength: optional(aCount),
  window: optional(aTensor),
  center: optional(flag, true),
} as const;

export const padMode = choice("reflect", "constant", "replicate", "circular");

/**
 * Computes the spectra of overlapping frames: X[k, t] = Σ window[j] x[t · hopLength + j] e^(−2πi jk / nFft).
 *
 * @param x [samples] or [batch, samples], real or complex
 * @returns [frequencies, frames] or [batch, frequencies, frames], complex64, or complex128 for float64 and complex128
 *
 * @example
 * signal.stft(tensor([1, 2, 3, 4]), 2, { hopLength: 2, center: false }); // complex64 [[3+0i, 7+0i], [-1+0i, -1+0i]]
 *
 * @throws {ShapeError} if x has another rank or fewer than nFft samples, or the window another length.
 * @throws {DTypeError} if `onesided` is true for a complex signal.
 * @throws {ArgumentError} for lengths below 1, or a winLength above nFft.
 */
export function stft<D extends DType>(
  x: Tensor<D>,
  ...options: Needed<
    StftOptions,
    "nFft",
    ["hopLength", "winLength", "window", "center", "padMode", "normalized", "onesided"]
  >
): Tensor<ComplexFrom<D>>;
export function stft(...values: unknown[]): Tensor {
  const { x, center, padMode: mode, normalized, ...given } = stftParameters(values);
  const isReal = !isComplex(x.dtype);
  const { onesided = isReal && !(given.window && isComplex(given.window.dtype)) } = given;
  checkSignal(x);
  if (onesided && !isReal)
    throw new DTypeError("stft", "notReal", `expected a real signal with onesided, got ${x.describe()}`);
  const dtype = isReal ? accumulationDType(x.dtype) : realDType(x.dtype);
  return underName("stft", () =>
    tidy(() => {
      const frames = framesOf("stft", given, dtype);
      const signals = reshape(isReal ? toDType(x, dtype) : x, x.rank === 1 ? [1, x.size] : x.shape);
      const half = Math.floor(given.nFft / 2);
      const whole = center ? pad(signals, [half, half], { mode }) : signals;
      const spectra = spectraOf(framed("stft", whole, frames), frames, { onesided, normalized });
      const result = transpose(spectra, -2, -1);
      return x.rank === 1 ? squeeze(result, { dim: 0 }) : result;
    }),
  );
}
const stftParameters = parameters("stft", {
  x: operand(aTensor),
  ...shared,
  padMode: optional(padMode, "reflect"),
  normalized: optional(flag, false),
  onesided: optional(flag),
});

function checkSignal(x: Tensor): void {
  if (x.rank !== 1 && x.rank !== 2)
    throw new ShapeError("stft", "wrongRank", `expected x to be [samples] or [batch, samples], got ${x.describe()}`);
}

function spectraOf(
  frames: Tensor,
  { nFft, window }: Frames,
  { onesided, normalized }: { readonly onesided: boolean; readonly normalized: boolean },
): Tensor {
  const scale = normalized ? 1 / Math.sqrt(nFft) : 1;
  const line = { operation: "stft", axis: 2, length: nFft, inverse: false, scale };
  const weighted = mul(frames, window);
  return onesided ? spectrumLine(weighted, line) : complexLine(weighted, line);
}

/**
 * Computes a signal from the spectra of its frames: the inverse of {@link stft}. Overlapping frames are added with the
 * window as weight, and divided by the sum of its squares.
 *
 * @param x [frequencies, frames] or [batch, frequencies, frames], complex
 * @returns [samples] or [batch, samples]: real
 *
 * @example
 * const spectra = signal.stft(tensor([1, 2, 3, 4]), 2, { hopLength: 1 });
 * signal.istft(spectra, 2, { hopLength: 1 }); // float32 [1, 2, 3, 4]
 *
 * @throws {ShapeError} for another rank or number of frequencies. @throws {DTypeError} if x is real.
 * @throws {ArgumentError} for lengths below 1, or if the windows leave a sample without weight.
 */
export function istft<D extends DType>(
  x: Tensor<D>,
  ...options: Needed<
    IstftOptions,
    "nFft",
    ["hopLength", "winLength", "window", "center", "normalized", "onesided", "length"]
  >
): Tensor<RealFrom<D>>;
export function istft(...values: unknown[]): Tensor {
  const { x, center, normalized, length, ...given } = istftParameters(values);
  const { onesided = x.shape.at(-2) !== given.nFft } = given;
  checkSpectra(x, given.nFft, onesided);
  return underName("istft", () =>
    tidy(() => {
      const frames = framesOf("istft", given, realDType(x.dtype));
      const spectra = transpose(x.rank === 2 ? unsqueeze(x, 0) : x, -2, -1);
      const scale = normalized ? 1 / Math.sqrt(given.nFft) : 1 / given.nFft;
      const line = { operation: "istft", axis: 2, length: given.nFft, inverse: true, scale };
      const signals = realLine(spectra, line); // as in PyTorch, the second half of a whole spectrum is not read
      const result = added(signals, frames, { center, length });
      return x.rank === 2 ? squeeze(result, { dim: 0 }) : result;
    }),
  );
}
const istftParameters = parameters("istft", {
  x: operand(aTensor),
  ...shared,
  normalized: optional(flag, false),
  onesided: optional(flag),
  length: optional(aCount),
});

function checkSpectra(x: Tensor, nFft: number, onesided: boolean): void {
  if (!isComplex(x.dtype)) throw new DTypeError("istft", "notComplex", `expected complex spectra, got ${x.describe()}`);
  const frequencies = onesided ? Math.floor(nFft / 2) + 1 : nFft;
  if ((x.rank === 2 || x.rank === 3) && x.shape.at(-2) === frequencies && lastElement(x.shape) > 0) return;
  throw new ShapeError(
    "istft",
    "shapesDiffer",
    `expected x to be [${frequencies}, frames] or [batch, ${frequencies}, frames], got ${x.describe()}`,
  );
}

/** Adds overlapping frames, [batch, frames, nFft], with the window's weights. */
function added(
  frames: Tensor,
  { nFft, hop, window }: Frames,
  { center, length }: { readonly center: boolean; readonly length: number | undefined },
): Tensor {
  const [batch, count] = tupleOf(frames.shape, 3);
  const total = nFft + hop * (count - 1);
  const joined = (each: Tensor, size: number) =>
    reshape(fold(transpose(each, -2, -1), [1, total], [1, nFft], { stride: [1, hop] }), [size, total]);
  const weights = joined(expand(reshape(mul(window, window), [1, 1, nFft]), [1, count, nFft]), 1);
  const start = center ? Math.floor(nFft / 2) : 0;
  const end = length === undefined ? total - start : Math.min(total, start + length);
  const weight = narrow(weights, 1, start, end - start);
  if (!(Number(min(weight).item()) > 1e-11))
    throw new ArgumentError(
      "istft",
      "zeroWeight",
      "the windows leave samples without weight; use a smaller hopLength, or a window without zeros",
    );
  const sums = narrow(joined(mul(frames, window), batch), 1, start, end - start);
  const result = div(sums, weight);
  return length !== undefined && length > end - start ? pad(result, [0, length - (end - start)]) : result;
}
