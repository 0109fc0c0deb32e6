/** Windows: weights of the samples of a frame, computed in float64 and rounded once. */
import { aNumber, flag } from "../core/kinds.ts";
import { finite } from "../core/options.ts";
import { type Given, optional, parameters, required } from "../core/parameters.ts";
import { type CreationOptions, checkFloat, creationOptions } from "../ops/creation/create.ts";
import { tensor } from "../ops/creation/tensor.ts";
import type { FloatDType } from "../tensor/dtype.ts";
import { reserve } from "../tensor/reserve.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** Options of windows. */
export interface WindowOptions<D extends FloatDType = FloatDType> extends CreationOptions<D> {
  /**
   * Whether the window is one period of a periodic window, which spectra require, instead of symmetric. Default true.
   */
  periodic?: boolean | undefined;
}

/** Options of {@link hammingWindow}. */
export interface HammingOptions<D extends FloatDType = FloatDType> extends WindowOptions<D> {
  /** The mean of the window. Default 0.54. */
  alpha?: number | undefined;
  /** The size of its cosine. Default 0.46. */
  beta?: number | undefined;
}

/** Options of {@link kaiserWindow}. */
export interface KaiserOptions<D extends FloatDType = FloatDType> extends WindowOptions<D> {
  /** The shape: larger values are narrower. Default 12. */
  beta?: number | undefined;
}

const base = {
  windowLength: required(
    aNumber({ holds: (n) => Number.isSafeInteger(n) && n >= 0, expected: "a whole number of at least 0" }),
  ),
  periodic: optional(flag, true),
} as const;

interface Common {
  readonly windowLength: number;
  readonly periodic: boolean;
  readonly dtype?: unknown;
}

/** Returns weight(k, last) for each k, where `last` is the position of the last sample of the symmetric window. */
function windowOf(
  operation: string,
  { windowLength, periodic, dtype = "float32", ...options }: Common & CreationOptions,
  weight: (k: number, last: number) => number,
): Tensor {
  checkFloat(operation, dtype);
  reserve(8 * windowLength);
  const last = periodic ? windowLength : windowLength - 1;
  const values = Float64Array.from({ length: windowLength }, (_, k) => (windowLength === 1 ? 1 : weight(k, last)));
  return tensor(values, { ...options, dtype } as { dtype: FloatDType });
}

const wave = (k: number, last: number): number => Math.cos((2 * Math.PI * k) / last);

/**
 * Returns a Hann window: (1 − cos(2πk / n)) / 2.
 *
 * @returns [windowLength]
 *
 * @example
 * signal.hannWindow(4); // float32 [0, 0.5, 1, 0.5]
 *
 * @throws {ArgumentError} for a negative length. @throws {DTypeError} if the dtype is not a float.
 */
export function hannWindow<D extends FloatDType = "float32">(
  windowLength: number,
  ...options: Given<WindowOptions<D>, ["periodic"]>
): Tensor<D>;
export function hannWindow(...values: unknown[]): Tensor {
  return windowOf("hannWindow", hannParameters(values), (k, last) => 0.5 - 0.5 * wave(k, last));
}
const hannParameters = parameters("hannWindow", { ...base, ...creationOptions });

/**
 * Returns a Hamming window: alpha − beta cos(2πk / n).
 *
 * @returns [windowLength]
 *
 * @example
 * signal.hammingWindow(4); // float32 [0.08, 0.54, 1, 0.54]
 *
 * @throws {ArgumentError} for a negative length. @throws {DTypeError} if the dtype is not a float.
 */
export function hammingWindow<D extends FloatDType = "float32">(
  windowLength: number,
  ...options: Given<HammingOptions<D>, ["periodic", "alpha", "beta"]>
): Tensor<D>;
export function hammingWindow(...values: unknown[]): Tensor {
  const { alpha, beta, ...given } = hammingParameters(values);
  return windowOf("hammingWindow", given, (k, last) => alpha - beta * wave(k, last));
}
const hammingParameters = parameters("hammingWindow", {
  ...base,
  alpha: optional(aNumber(finite), 0.54),
  beta: optional(aNumber(finite), 0.46),
  ...creationOptions,
});

/**
 * Returns a Blackman window: 0.42 − 0.5 cos(2πk / n) + 0.08 cos(4πk / n).
 *
 * @returns [windowLength]
 *
 * @example
 * signal.blackmanWindow(4); // float32 [0, 0.34, 1, 0.34]
 *
 * @throws {ArgumentError} for a negative length. @throws {DTypeError} if the dtype is not a float.
 */
export function blackmanWindow<D extends FloatDType = "float32">(
  windowLength: number,
  ...options: Given<WindowOptions<D>, ["periodic"]>
): Tensor<D>;
export function blackmanWindow(...values: unknown[]): Tensor {
  const weight = (k: number, last: number) => Math.max(0, 0.42 - 0.5 * wave(k, last) + 0.08 * wave(2 * k, last));
  return windowOf("blackmanWindow", blackmanParameters(values), weight);
}
const blackmanParameters = parameters("blackmanWindow", { ...base, ...creationOptions });

/**
 * Returns a Bartlett window, a triangle: 1 − |2k / n − 1|.
 *
 * @returns [windowLength]
 *
 * @example
 * signal.bartlettWindow(4); // float32 [0, 0.5, 1, 0.5]
 *
 * @throws {ArgumentError} for a negative length. @throws {DTypeError} if the dtype is not a float.
 */
export function bartlettWindow<D extends FloatDType = "float32">(
  windowLength: number,
  ...options: Given<WindowOptions<D>, ["periodic"]>
): Tensor<D>;
export function bartlettWindow(...values: unknown[]): Tensor {
  return windowOf("bartlettWindow", bartlettParameters(values), (k, last) => 1 - Math.abs((2 * k) / last - 1));
}
const bartlettParameters = parameters("bartlettWindow", { ...base, ...creationOptions });

/**
 * Returns a Kaiser window: I₀(beta √(1 − (2k / n − 1)²)) / I₀(beta), with the modified Bessel function I₀.
 *
 * @returns [windowLength]
 *
 * @example
 * signal.kaiserWindow(4, { beta: 0 }); // float32 [1, 1, 1, 1]
 *
 * @throws {ArgumentError} for a negative length, or a beta outside of [0, 700].
 * @throws {DTypeError} if the dtype is not a float.
 */
export function kaiserWindow<D extends FloatDType = "float32">(
  windowLength: number,
  ...options: Given<KaiserOptions<D>, ["periodic", "beta"]>
): Tensor<D>;
export function kaiserWindow(...values: unknown[]): Tensor {
  const { beta, ...given } = kaiserParameters(values);
  const weight = (k: number, last: number) =>
    bessel(beta * Math.sqrt(Math.max(0, 1 - ((2 * k) / last - 1) ** 2))) / bessel(beta);
  return windowOf("kaiserWindow", given, weight);
}
const kaiserParameters = parameters("kaiserWindow", {
  ...base,
  beta: optional(aNumber({ holds: (beta) => beta >= 0 && beta <= 700, expected: "a number from 0 to 700" }), 12),
  ...creationOptions,
});

/** Computes I₀(x) = Σ ((x / 2)ᵏ / k!)², all of whose terms are positive. */
function bessel(x: number): number {
  let [sum, term] = [0, 1];
  for (let k = 1; term > sum * 2 ** -54; k++) {
    sum += term;
    term *= (x / 2 / k) ** 2;
  }
  return sum;
}
