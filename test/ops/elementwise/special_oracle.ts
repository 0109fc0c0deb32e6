/**
 * Special functions in float64, by formulas that differ from the library's: series about 1 with values of the zeta
 * function as coefficients, explicit sums, and an integral.
 */
import { erf } from "./oracle.ts";

/**
 * The trapezoidal rule, which converges exponentially for a periodic function: erfc(x) = 2/π ∫ exp(−x²/sin² θ) dθ from
 * 0 to π/2.
 */
export function erfc(x: number): number {
  if (!(x >= 0.7)) return 1 - erf(x);
  const points = 200;
  let sum = 0.5 * Math.exp(-x * x);
  for (let point = points - 1; point > 0; point--)
    sum += Math.exp(-((x / Math.sin((Math.PI * point) / (2 * points))) ** 2));
  return sum / points;
}

/**
 * exp(x²) · erfc(x) = 2x/π ∫ exp(−t²)/(x² + t²) dt from 0 to ∞ for x > 0. The trapezoidal rule's error is about
 * exp(−2πx/step).
 */
export function erfcx(x: number): number {
  if (!(x >= 0.7)) return Math.exp(x * x) * erfc(x);
  if (x > 1e8) return 1 / (Math.sqrt(Math.PI) * x);
  const step = 0.1;
  let sum = 0.5 / (x * x);
  for (let point = 70; point > 0; point--) sum += Math.exp(-((point * step) ** 2)) / (x * x + (point * step) ** 2);
  return ((2 * x) / Math.PI) * sum * step;
}

/** ln Φ(x) */
export const logNdtr = (x: number): number =>
  x < -1 ? Math.log(erfcx(-x * Math.SQRT1_2) / 2) - (x / 2) * x : Math.log1p(-erfc(x * Math.SQRT1_2) / 2);

/** Φ⁻¹(p) by erfinv, and in the tails by Newton's method on ln Φ, which is concave: it converges from below. */
export function ndtri(p: number): number {
  if (Math.abs(p - 0.5) < 0.4) return Math.SQRT2 * erfinv(2 * p - 1);
  if (p > 0.5) return -ndtri(1 - p);
  if (!(p > 0)) return p === 0 ? Number.NEGATIVE_INFINITY : Number.NaN;
  let x = -Math.sqrt(-2 * Math.log(p));
  for (let step = 0; step < 8; step++)
    x += (Math.log(p) - logNdtr(x)) * Math.sqrt(Math.PI / 2) * erfcx(-x * Math.SQRT1_2);
  return x;
}

/**
 * e^−|x| I(x) = 1/π ∫ exp(|x| (cos t − 1)) cos nt dt from 0 to π, by the trapezoidal rule, which converges
 * exponentially.
 */
export function scaledBessel(n: 0 | 1, x: number): number {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? x : 0;
  const a = Math.abs(x);
  const points = 60 + Math.ceil(8 * Math.sqrt(a));
  let sum = (1 + (n === 1 ? -1 : 1) * Math.exp(-2 * a)) / 2;
  for (let point = points - 1; point > 0; point--) {
    const angle = (Math.PI * point) / points;
    sum += Math.exp(-2 * a * Math.sin(angle / 2) ** 2) * Math.cos(n * angle);
  }
  return (n === 1 ? Math.sign(x) : 1) * (sum / points);
}

// erfinv(x) = Σ cₖ/(2k + 1)·(√π/2·x)^(2k+1) with cₖ = Σ cₘ·cₖ₋₁₋ₘ/((m + 1)(2m + 1)): all terms have one sign.
const inverseCoefficients = [1];
for (let k = 1; k < 500; k++) {
  let sum = 0;
  for (let m = 0; m < k; m++)
    sum += (inverseCoefficients[m] * inverseCoefficients[k - 1 - m]) / ((m + 1) * (2 * m + 1));
  inverseCoefficients.push(sum);
}

/** Computes erfinv by its series, and by bisection of erfc if the series needs too many terms. */
export function erfinv(x: number): number {
  const magnitude = Math.abs(x);
  if (magnitude === 1) return x * Number.POSITIVE_INFINITY;
  if (!(magnitude < 1)) return Number.NaN;
  if (magnitude > 0.95) return Math.sign(x) * bisected(1 - magnitude);
  const scaled = (x * Math.sqrt(Math.PI)) / 2;
  let sum = 0;
  for (let k = inverseCoefficients.length - 1; k >= 0; k--)
    sum = sum * scaled * scaled + inverseCoefficients[k] / (2 * k + 1);
  return sum * scaled;
}

function bisected(complement: number): number {
  let [low, high] = [1, 7];
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (erfc(middle) > complement) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

const gamma = 0.5772156649015329;

/** ζ(s) for s ≥ 2: sixty terms, and the remainder by the Euler–Maclaurin formula. */
function zeta(s: number): number {
  const last = 60;
  let sum = last ** (1 - s) / (s - 1) + last ** -s / 2 + (s * last ** (-s - 1)) / 12;
  sum -= (s * (s + 1) * (s + 2) * last ** (-s - 3)) / 720;
  sum += (s * (s + 1) * (s + 2) * (s + 3) * (s + 4) * last ** (-s - 5)) / 30240;
  for (let term = last - 1; term >= 1; term--) sum += term ** -s;
  return sum;
}
const zetas = Array.from({ length: 60 }, (_, at) => (at < 2 ? Number.NaN : zeta(at)));

/** Σ f(k)·ζ(k)·(−t)^(k − less) over k ≥ 2, for |t| ≤ ½. */
function zetaSeries(t: number, less: number, f: (k: number) => number): number {
  let sum = 0;
  for (let k = zetas.length - 1; k >= 2; k--) sum += f(k) * zetas[k] * (-t) ** (k - less);
  return sum;
}

/** The remainder by the nearest whole number. */
const remainder = (x: number): number => x - Math.round(x);

export function lgamma(x: number): number {
  if (!Number.isFinite(x)) return Math.abs(x);
  if (x < 0) {
    if (Number.isInteger(x)) return Number.POSITIVE_INFINITY;
    return Math.log(Math.PI / Math.abs(Math.sin(Math.PI * remainder(x)))) - lgamma(1 - x);
  }
  if (x >= 20)
    return (
      x * (Math.log(x) - 1) - Math.log(x / (2 * Math.PI)) / 2 + (1 / 12 - (1 / 360 - 1 / (1260 * x * x)) / (x * x)) / x
    );
  if (x < 0.5) return lgamma(1 + x) - Math.log(x);
  if (x <= 1.5) return -gamma * (x - 1) + zetaSeries(x - 1, 0, (k) => 1 / k);
  return lgamma(x - 1) + (x < 2.5 ? Math.log1p(x - 2) : Math.log(x - 1));
}

export function digamma(x: number): number {
  if (Number.isNaN(x)) return x;
  if (x < 0) {
    if (Number.isInteger(x)) return Number.NaN;
    return digamma(1 - x) - (Math.PI * Math.cos(Math.PI * remainder(x))) / Math.sin(Math.PI * remainder(x));
  }
  if (x >= 20)
    return (
      Math.log(x) - 1 / (2 * x) - (1 / 12 - (1 / 120 - (1 / 252 - 1 / (240 * x * x)) / (x * x)) / (x * x)) / (x * x)
    );
  if (x < 0.5) return digamma(1 + x) - 1 / x;
  if (x <= 1.5) return -gamma - zetaSeries(x - 1, 1, () => 1);
  return digamma(x - 1) + 1 / (x - 1);
}

/** (−1)ⁿ⁺¹·n!·Σ (x + k)^(−n−1), term by term up to 60 and beyond that by the Euler–Maclaurin formula. */
export function polygamma(n: number, x: number): number {
  let factorial = 1;
  for (let k = 2; k <= n; k++) factorial *= k;
  const count = 60 + Math.max(0, Math.ceil(-x));
  const end = x + count;
  let sum = end ** -n / n + end ** (-n - 1) / 2 + ((n + 1) * end ** (-n - 2)) / 12;
  sum -= ((n + 1) * (n + 2) * (n + 3) * end ** (-n - 4)) / 720;
  sum += ((n + 1) * (n + 2) * (n + 3) * (n + 4) * (n + 5) * end ** (-n - 6)) / 30240;
  for (let k = count - 1; k >= 0; k--) sum += (x + k) ** (-n - 1);
  return (n % 2 === 0 ? -1 : 1) * factorial * sum;
}

/** Whole periods of the sine are removed, and angles beyond a quarter are mirrored. */
export function sinc(x: number): number {
  if (x === 0) return 1;
  let turn = x % 2;
  if (Math.abs(turn) > 1) turn -= 2 * Math.sign(turn);
  if (Math.abs(turn) > 0.5) turn = Math.sign(turn) - turn;
  return Math.sin(Math.PI * turn) / (Math.PI * x);
}
