/**
 * erf(x) = 2/√π · ∫₀ˣ exp(−t²) dt in float64. Source: NIST Digital Library of Mathematical Functions, 7.6.2 and 7.9.3.
 */
export function erf(x: number): number {
  if (Number.isNaN(x)) return x;
  const magnitude = Math.abs(x);
  const value = magnitude < 1 ? bySeries(magnitude) : 1 - complementByFraction(magnitude);
  return Math.sign(x) * value;
}

/** 1 − erf(x), without the cancellation where erf(x) is near 1. */
export function erfc(x: number): number {
  return x < 1 ? 1 - erf(x) : complementByFraction(x);
}

/** 2/√π · exp(−x²) · x · (1 + 2x²/3 · (1 + 2x²/5 · (1 + …))): all terms are positive, so that nothing cancels. */
function bySeries(x: number): number {
  let sum = 1;
  for (let n = 40; n >= 1; n--) sum = 1 + ((2 * x * x) / (2 * n + 1)) * sum;
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * x * sum;
}

/** erfc(x) = exp(−x²)/√π · 1/(x + ½/(x + 1/(x + (3/2)/(x + …)))) */
function complementByFraction(x: number): number {
  let fraction = x;
  for (let n = 300; n >= 1; n--) fraction = x + n / 2 / fraction;
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * fraction);
}
