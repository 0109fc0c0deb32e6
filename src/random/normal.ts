/**
 * The normal distribution by the Box-Muller transform: from two words, √(−2 ln u) · cos 2πv and √(−2 ln u) · sin 2πv.
 * The logarithm, the sine and the cosine are polynomials defined here, because the functions of different libraries
 * differ in the last bit. `kernels/random/normal.h` and `native/cpu/random/normal.h` have the same operations in the
 * same order.
 */
import { bitsOf, floatOf, fma } from "./float32.ts";

const { fround } = Math;

/** Evaluates a polynomial by Horner's rule, the highest coefficient first. */
function horner(x: number, coefficients: readonly number[]): number {
  let value = coefficients[0];
  for (let at = 1; at < coefficients.length; at++) value = fma(value, x, coefficients[at]);
  return value;
}

/** Cephes' logf (Moshier): ln(1 + x) = x − x²/2 + x³ P(x) for √½ − 1 ≤ x ≤ √2 − 1. */
export const LOG = [
  7.0376836292e-2, -1.151461031e-1, 1.167699874e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
  2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
].map(fround);
/** ln 2 in two parts; the upper one has few bits, so that its multiples are exact. */
export const LN2_HIGH = fround(0.693359375);
export const LN2_LOW = fround(-2.1219444e-4);
const SQRT_HALF_BITS = 0x3f3504f3;

/** Cephes' sinf and cosf for |x| ≤ π/4. */
export const SIN = [-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1].map(fround);
export const COS = [2.443315711809948e-5, -0.001388731625493765, 0.04166664568298827].map(fround);
/** 2π / 2²⁶ */
export const RADIANS = fround((2 * Math.PI) / 2 ** 26);

/** ln(1 + x) + exponent · ln 2. */
function logarithm(x: number, exponent: number): number {
  const square = fround(x * x);
  let tail = fround(fround(x * square) * horner(x, LOG));
  tail = fma(exponent, LN2_LOW, tail);
  tail = fma(-0.5, square, tail);
  return fma(exponent, LN2_HIGH, fround(x + tail));
}

/** ln(value · 2^scale) for a normal float32 above 0. */
function logarithmOf(value: number, scale: number): number {
  const bits = bitsOf(value);
  const exponent = (bits - SQRT_HALF_BITS) >> 23;
  return logarithm(fround(floatOf(bits - (exponent << 23)) - 1), exponent + scale);
}

/**
 * Computes −ln u, where u is w · 2⁻³², truncated to its upper 24 bits if it is at least 2⁻⁸. The result is in (0,
 * 22.2]; large results are finely spaced.
 */
export function negativeLog(word: number): number {
  const isLarge = word >= 2 ** 24;
  return -logarithmOf(isLarge ? word >>> 8 : Math.max(word, 1), isLarge ? -24 : -32);
}

/** Computes −ln(1 − u) for the same u: an exponentially distributed number, finely spaced where it is small. */
export function exponential(word: number): number {
  const isLarge = word >= 2 ** 24;
  const u = isLarge ? (word >>> 8) * 2 ** -24 : Math.max(word, 1) * 2 ** -32;
  return u < 0.25 ? -logarithm(-u, 0) : -logarithmOf(fround(1 - u), 0);
}

/** Computes cosine and sine of 2π · w · 2⁻³², truncated to 26 bits. The nearest quarter turn is subtracted exactly. */
export function cosineAndSine(word: number): [number, number] {
  const quarter = ((word + 2 ** 29) >>> 30) & 3;
  const remainder = (word - (quarter << 30)) >> 6;
  const x = fround(remainder * RADIANS);
  const square = fround(x * x);
  const sine = fma(fround(x * square), horner(square, SIN), x);
  const cosine = fma(fround(square * square), horner(square, COS), fma(-0.5, square, 1));
  return turn(quarter, cosine, sine);
}

/** Rotates a point of the circle by quarter turns. */
function turn(quarter: number, cosine: number, sine: number): [number, number] {
  const isOdd = (quarter & 1) === 1;
  const x = isOdd ? sine : cosine;
  const y = isOdd ? cosine : sine;
  return [quarter === 1 || quarter === 2 ? -x : x, quarter >= 2 ? -y : y];
}

/** Returns two independent float32 numbers of mean 0 and variance 1. */
export function normalPair(first: number, second: number): [number, number] {
  const radius = fround(Math.sqrt(fround(2 * negativeLog(first))));
  const [cosine, sine] = cosineAndSine(second);
  return [fround(radius * cosine), fround(radius * sine)];
}

// float64: fdlibm's polynomials (Sun, 1993), with separate products and sums, since JavaScript has no fma.

const LOG64 = [
  0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149784, 0.1818357216161805,
  0.15313837699209373, 0.14798198605116586,
] as const;
const LN2_HIGH64 = 0.6931471803691238;
const LN2_LOW64 = 1.9082149292705877e-10;
const SIN64 = [
  -0.16666666666666632, 0.00833333333332249, -0.0001984126982985795, 2.7557313707070068e-6, -2.5050760253406863e-8,
  1.58969099521155e-10,
] as const;
const COS64 = [
  0.0416666666666666, -0.001388888888887411, 2.480158728947673e-5, -2.7557314351390663e-7, 2.087572321298175e-9,
  -1.1359647557788195e-11,
] as const;

const wide = new Float64Array(1);
const halves = new Int32Array(wide.buffer);

/** ln for a normal float64 above 0. */
function logarithm64(value: number): number {
  wide[0] = value;
  const exponent = (halves[1] - 0x3fe6a09e) >> 20;
  halves[1] = halves[1] - (exponent << 20);
  const f = wide[0] - 1;
  const halfSquare = 0.5 * f * f;
  const s = f / (2 + f);
  const z = s * s;
  const w = z * z;
  const even = w * (LOG64[1] + w * (LOG64[3] + w * LOG64[5]));
  const odd = z * (LOG64[0] + w * (LOG64[2] + w * (LOG64[4] + w * LOG64[6])));
  const correction = s * (halfSquare + (odd + even)) + exponent * LN2_LOW64;
  return exponent * LN2_HIGH64 - (halfSquare - correction - f);
}

function cosineAndSine64(word: number, low: number): [number, number] {
  const quarter = ((word + 2 ** 29) >>> 30) & 3;
  const remainder = ((word - (quarter << 30)) | 0) + (low >>> 11) * 2 ** -21;
  const x = remainder * ((2 * Math.PI) / 2 ** 32);
  const z = x * x;
  const [s1, s2, s3, s4, s5, s6] = SIN64;
  const [c1, c2, c3, c4, c5, c6] = COS64;
  const sine = x + x * z * (s1 + z * (s2 + z * (s3 + z * (s4 + z * (s5 + z * s6)))));
  const cosine = 1 - (0.5 * z - z * z * (c1 + z * (c2 + z * (c3 + z * (c4 + z * (c5 + z * c6))))));
  return turn(quarter, cosine, sine);
}

/** Returns 53 bits in [0, 1) from an upper and a lower word. */
export const uniform64 = (word: number, low: number): number => (word * 2 ** 21 + (low >>> 11)) * 2 ** -53;

/** Returns two independent float64 numbers of mean 0 and variance 1, from two words and their lower words. */
export function normalPair64(first: readonly [number, number], second: readonly [number, number]): [number, number] {
  const u = Math.max(uniform64(...first), 2 ** -53);
  const radius = Math.sqrt(-2 * logarithm64(u));
  const [cosine, sine] = cosineAndSine64(...second);
  return [radius * cosine, radius * sine];
}
