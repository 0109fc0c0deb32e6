/**
 * Computes erf(x) = 2/√π · ∫₀ˣ exp(−t²) dt in float64. Source: NIST Digital Library of Mathematical Functions, 7.6.2
 * and 7.9.3.
 */
export function erf(x: number): number {
  if (Number.isNaN(x)) return x;
  const magnitude = Math.abs(x);
  const value = magnitude < 1 ? bySeries(magnitude) : 1 - complementByFraction(magnitude);
  return Math.sign(x) * value;
}

/** Computes 1 − erf(x) without cancellation if erf(x) is near 1. */
export function erfc(x: number): number {
  return !(x >= 1) ? 1 - erf(x) : complementByFraction(x);
}

/** Computes exp(x²) · erfc(x). */
export function erfcx(x: number): number {
  return !(x >= 1) ? Math.exp(x * x) * (1 - erf(x)) : 1 / (Math.sqrt(Math.PI) * fractionOf(x));
}

/** Computes ln Φ(x), the logarithm of the normal distribution function: erfc(−x/√2)/2 or its complement. */
export function logNdtr(x: number): number {
  const a = Math.abs(x) * Math.SQRT1_2;
  return x < -1 ? Math.log(erfcx(a) / 2) - (x * x) / 2 : Math.log1p(-erfc(x * Math.SQRT1_2) / 2);
}

/** Number of Newton steps on ln Φ(x) = ln p. The function is concave, so the steps converge from below. */
const NEWTON_STEPS = 7;

/** Computes Φ⁻¹(p): by erfinv in the middle, and in the tails by Newton's method. */
export function ndtri(p: number): number {
  if (!(p >= 0 && p <= 1)) return Number.NaN;
  if (p > 0.5) return -ndtri(1 - p);
  if (p > 0.1) return -Math.SQRT2 * erfinv(1 - 2 * p);
  if (p === 0) return Number.NEGATIVE_INFINITY;
  let x = -Math.sqrt(-2 * Math.log(p));
  for (let step = 0; step < NEWTON_STEPS; step++)
    x += (Math.log(p) - logNdtr(x)) * erfcx(-x * Math.SQRT1_2) * Math.sqrt(Math.PI / 2);
  return x;
}

/** Computes erf(x) as 2/√π · exp(−x²) · x · (1 + 2x²/3 · (1 + 2x²/5 · (1 + …))), whose terms are all positive. */
function bySeries(x: number): number {
  let sum = 1;
  for (let n = 40; n >= 1; n--) sum = 1 + ((2 * x * x) / (2 * n + 1)) * sum;
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * x * sum;
}

/** Computes erfc(x) = exp(−x²)/√π · 1/(x + ½/(x + 1/(x + (3/2)/(x + …)))). */
const complementByFraction = (x: number): number => Math.exp(-x * x) / (Math.sqrt(Math.PI) * fractionOf(x));

function fractionOf(x: number): number {
  let fraction = x;
  for (let n = 300; n >= 1; n--) fraction = x + n / 2 / fraction;
  return fraction;
}

/**
 * Computes the y whose erf is x, by Halley's method from a start within 0.3 %. Above ½ it uses erfc, to avoid
 * cancellation.
 *
 * Source of the start: S. Winitzki, "A handy approximation for the error function and its inverse", 2008.
 */
export function erfinv(x: number): number {
  const a = Math.abs(x);
  if (!(a < 1)) return a === 1 ? x * Number.POSITIVE_INFINITY : Number.NaN;
  if (a === 0) return x;
  const bend = 0.147;
  const logarithm = Math.log1p(-a * a);
  const middle = 2 / (Math.PI * bend) + logarithm / 2;
  let y = a < 0.1 ? (a * Math.sqrt(Math.PI)) / 2 : Math.sqrt(Math.sqrt(middle * middle - logarithm / bend) - middle);
  for (let step = 0; step < 3; step++) {
    const difference = a < 0.5 ? erf(y) - a : 1 - a - erfc(y);
    const newton = ((difference * Math.sqrt(Math.PI)) / 2) * Math.exp(y * y);
    y -= newton / (1 + y * newton);
  }
  return x < 0 ? -y : y;
}
