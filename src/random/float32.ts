/**
 * The float32 arithmetic of all backends: single operations, each rounded once. Products and quotients are
 * `Math.fround(a * b)` and `Math.fround(a / b)`; a float64 result of two float32 operands rounds to the same float32 as
 * the exact one (Figueroa, "When is double rounding innocuous?", 1995).
 */

const wide = new Float64Array(1);
const halves = new Uint32Array(wide.buffer);
const narrow = new Float32Array(1);
const word = new Uint32Array(narrow.buffer);

/**
 * Computes a · b + c, rounded once. The product is exact in float64. The sum is rounded to odd, so that the second
 * rounding to float32 is correct.
 */
export function fma(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  const shifted = sum - product;
  const error = product - (sum - shifted) + (c - shifted);
  return Math.fround(error === 0 || Number.isNaN(error) ? sum : toOdd(sum, error));
}

/** Rounds sum + error to odd. `sum` is the nearer of the two float64 neighbors; the result is the odd one. */
function toOdd(sum: number, error: number): number {
  wide[0] = sum;
  if (halves[0] & 1) return sum;
  if (error > 0 === sum > 0) {
    halves[0] = halves[0] + 1;
  } else {
    if (halves[0] === 0) halves[1] = halves[1] - 1;
    halves[0] = halves[0] - 1;
  }
  return wide[0];
}

export function bitsOf(value: number): number {
  narrow[0] = value;
  return word[0];
}

export function floatOf(bits: number): number {
  word[0] = bits;
  return narrow[0];
}
