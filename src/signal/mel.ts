/** Filters of the mel scale, and spectrograms. */
import { underName } from "../backend/dispatch.ts";
import { ArgumentError } from "../core/errors.ts";
import { aNumber, choice, flag } from "../core/kinds.ts";
import { notNegative, positive } from "../core/options.ts";
import { type Given, named, operand, optional, parameters, required } from "../core/parameters.ts";
import { tupleOf } from "../core/tuples.ts";
import type { RealFrom } from "../fft/one.ts";
import { imag, real } from "../ops/complex/parts.ts";
import { type CreationOptions, checkFloat, creationOptions } from "../ops/creation/create.ts";
import { type TensorOptions, tensor } from "../ops/creation/tensor.ts";
import { add, mul } from "../ops/elementwise/arithmetic.ts";
import { pow } from "../ops/elementwise/power.ts";
import { reshape } from "../ops/view/reshape.ts";
import { accumulationDType, type DType, type FloatDType, realDType } from "../tensor/dtype.ts";
import { aTensor } from "../tensor/kinds.ts";
import { reserve } from "../tensor/reserve.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { aCount } from "./frames.ts";
import { padMode, type StftOptions, stft } from "./stft.ts";
import { hannWindow } from "./windows.ts";

/** Options of {@link melFilterbank}. */
export interface MelOptions<D extends FloatDType = FloatDType> extends CreationOptions<D> {
  /** The number of filters. Default 128. */
  nMels?: number | undefined;
  /** The lowest frequency in Hz. Default 0. */
  fMin?: number | undefined;
  /** The highest frequency in Hz. Default sampleRate / 2. */
  fMax?: number | undefined;
  /**
   * The scale: `"slaney"`, linear up to 1000 Hz and logarithmic above, or `"htk"`, 2595 log₁₀(1 + f / 700). Default
   * `"slaney"`.
   */
  scale?: "slaney" | "htk" | undefined;
  /** Whether each filter is divided by half of its width in Hz, so that all have the same area. Default true. */
  normalized?: boolean | undefined;
}

/**
 * Conversions between Hz and mels. Slaney's scale has 3 mels per 200 Hz up to 1000 Hz, then 27 mels per factor of 6.4.
 */
const scales = {
  slaney: {
    toMel: (f: number) => (f < 1000 ? (3 * f) / 200 : 15 + (27 * Math.log(f / 1000)) / Math.log(6.4)),
    toHz: (mel: number) => (mel < 15 ? (200 * mel) / 3 : 1000 * Math.exp((Math.log(6.4) * (mel - 15)) / 27)),
  },
  htk: {
    toMel: (f: number) => 2595 * Math.log10(1 + f / 700),
    toHz: (mel: number) => 700 * (10 ** (mel / 2595) - 1),
  },
} as const;

/**
 * Returns triangular filters that overlap by half, equally spaced on the mel scale. By default they match
 * `librosa.filters.mel`, which Whisper uses too.
 *
 * @param sampleRate samples per second
 * @param nFft the length of the frames' transform
 * @returns [nMels, nFft / 2 + 1]: multiply it by a spectrogram, [nFft / 2 + 1, frames]
 *
 * @example
 * signal.melFilterbank(16000, 400, { nMels: 80 }).shape; // [80, 201]
 *
 * @throws {ArgumentError} for lengths below 1, or unless 0 ≤ fMin < fMax. @throws {DTypeError} if the dtype is not a
 * float.
 */
export function melFilterbank<D extends FloatDType = "float32">(
  sampleRate: number,
  nFft: number,
  ...options: Given<MelOptions<D>, ["nMels", "fMin", "fMax"]>
): Tensor<D>;
export function melFilterbank(...values: unknown[]): Tensor {
  const {
    sampleRate,
    nFft,
    nMels,
    fMin,
    fMax = sampleRate / 2,
    scale,
    normalized,
    ...creation
  } = melParameters(values);
  const { dtype = "float32", ...options } = creation;
  checkFloat("melFilterbank", dtype);
  if (fMin >= fMax)
    throw new ArgumentError("melFilterbank", "invalidOption", `expected fMin below fMax ${fMax}, got ${fMin}`);
  const { toMel, toHz } = scales[scale];
  const [low, high] = [toMel(fMin), toMel(fMax)];
  const count = Math.floor(nFft / 2) + 1;
  reserve(8 * nMels * (count + 1));
  const corners = Array.from({ length: nMels + 2 }, (_, at) => toHz(low + ((high - low) * at) / (nMels + 1)));
  const filters = new Float64Array(nMels * count);
  for (let filter = 0; filter < nMels; filter++) {
    const [left, top, right] = tupleOf(corners.slice(filter, filter + 3), 3);
    const height = normalized ? 2 / (right - left) : 1;
    for (let k = 0; k < count; k++) {
      const f = (k * sampleRate) / nFft;
      filters[filter * count + k] =
        height * Math.max(0, Math.min((f - left) / (top - left), (right - f) / (right - top)));
    }
  }
  const given = { ...options, dtype, shape: [nMels, count] } as TensorOptions & { dtype: DType };
  return tensor(filters, given);
}
const melParameters = parameters("melFilterbank", {
  sampleRate: required(aNumber(positive)),
  nFft: required(aCount),
  nMels: optional(aCount, 128),
  fMin: optional(aNumber(notNegative), 0),
  fMax: optional(aNumber(positive)),
  scale: named(choice("slaney", "htk"), "slaney"),
  normalized: named(flag, true),
  ...creationOptions,
});

/** Options of {@link spectrogram}. */
export interface SpectrogramOptions extends Partial<StftOptions> {
  /** The exponent of magnitudes: 1 for magnitudes, 2 for powers. Default 2. */
  power?: number | undefined;
}

/**
 * Computes the magnitudes of the spectra of overlapping frames, raised to a power.
 *
 * @param x […, samples], real or complex
 * @param options those of `stft`. By default, nFft is 400, winLength is nFft, hopLength is winLength / 2, and the
 * window is a Hann window
 * @returns […, frequencies, frames], float32, or float64 for float64 and complex128
 *
 * @example
 * signal.spectrogram(zeros([800]), { nFft: 400 }).shape; // [201, 5]
 *
 * @throws {ShapeError} for a scalar, or a signal that is too short. @throws {ArgumentError} for invalid lengths.
 */
export function spectrogram<D extends DType>(x: Tensor<D>, options?: SpectrogramOptions): Tensor<RealFrom<D>>;
export function spectrogram(...values: unknown[]): Tensor {
  const { x, power, nFft, winLength = nFft, ...given } = spectrogramParameters(values);
  const { hopLength = Math.max(1, Math.floor(winLength / 2)), ...options } = given;
  return underName("spectrogram", () =>
    tidy(() => {
      const dtype = accumulationDType(realDType(x.dtype));
      const { window = hannWindow(winLength, { dtype }) } = given;
      const signals = reshape(x, [x.size / (x.shape.at(-1) || 1), x.shape.at(-1) ?? 1]);
      const spectra: Tensor = stft(signals, { ...options, nFft, winLength, hopLength, window });
      const [re, im] = [real(spectra), imag(spectra)];
      const squares = add(mul(re, re), mul(im, im));
      const result = power === 2 ? squares : pow(squares, power / 2);
      return reshape(result, [...x.shape.slice(0, -1), ...result.shape.slice(1)]);
    }),
  );
}
const spectrogramParameters = parameters("spectrogram", {
  x: operand(aTensor),
  nFft: named(aCount, 400),
  hopLength: named(aCount),
  winLength: named(aCount),
  window: named(aTensor),
  center: named(flag, true),
  padMode: named(padMode, "reflect"),
  normalized: named(flag, false),
  onesided: named(flag),
  power: named(aNumber(positive), 2),
});
