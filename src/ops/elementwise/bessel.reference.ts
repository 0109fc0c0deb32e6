/**
 * The modified Bessel functions of the first kind in float64: the power series up to 20, whose terms have the same
 * sign, and Hankel's asymptotic series above. Source: NIST Digital Library of Mathematical Functions, 10.25.2 and
 * 10.40.1.
 */
const FAR = 20;
const NEAR_TERMS = 36;
const FAR_TERMS = 30;

/** Computes the function of order 0 or 1 at x. */
export function bessel(order: 0 | 1, x: number): number {
  const magnitude = Math.abs(x);
  const value = magnitude <= FAR ? nearby(order, magnitude) : faraway(order, magnitude);
  return order === 1 && x < 0 ? -value : value;
}

/** Computes e^−|x| times the function of order 0 or 1 at x, which does not overflow. */
export function scaledBessel(order: 0 | 1, x: number): number {
  const magnitude = Math.abs(x);
  const isNear = magnitude <= FAR;
  const value = isNear ? Math.exp(-magnitude) * nearby(order, magnitude) : scaledFaraway(order, magnitude);
  return order === 1 && x < 0 ? -value : value;
}

function nearby(order: 0 | 1, x: number): number {
  let sum = 1;
  for (let k = NEAR_TERMS; k >= 1; k--) sum = 1 + (sum * (x / 2) ** 2) / (k * (k + order));
  return order === 0 ? sum : (x / 2) * sum;
}

function faraway(order: 0 | 1, x: number): number {
  if (x === Number.POSITIVE_INFINITY) return x;
  const root = Math.exp(x / 2); // multiplied twice, since exp(x) overflows before the function does
  return root * scaledFaraway(order, x) * root;
}

function scaledFaraway(order: 0 | 1, x: number): number {
  let sum = 1;
  for (let k = FAR_TERMS; k >= 1; k--) sum = 1 + (sum * ((2 * k - 1) ** 2 - 4 * order)) / (8 * k * x);
  return sum / Math.sqrt(2 * Math.PI) / Math.sqrt(x);
}
