/** The definition of the transform in float64. */
import { tupleOf } from "../core/tuples.ts";

/** Complex numbers in float64: real and imaginary parts. */
export interface Row {
  readonly re: Float64Array;
  readonly im: Float64Array;
}

export const rowOf = (length: number): Row => ({ re: new Float64Array(length), im: new Float64Array(length) });

/** Divides by the smallest prime factor p: X[k] = Σ over r < p of e^(sign 2πi rk / n) Y_r[k mod n / p]. */
export function transformed(x: Row, sign: 1 | -1): Row {
  const n = x.re.length;
  const prime = smallestFactor(n);
  const size = prime === n ? 1 : n / prime;
  const part = (r: number): Row => ({ re: strided(x.re, r, n / size), im: strided(x.im, r, n / size) });
  const parts = Array.from({ length: n / size }, (_, r) => (size === 1 ? part(r) : transformed(part(r), sign)));
  const [cosines, sines] = tupleOf(
    [Math.cos, Math.sin].map((wave) => Float64Array.from({ length: n }, (_, turns) => wave((2 * Math.PI * turns) / n))),
    2,
  );
  const result = rowOf(n);
  for (let k = 0; k < n; k++)
    for (const [r, { re, im }] of parts.entries()) {
      const [a, b] = [re[k % size], im[k % size]];
      const [c, s] = [cosines[(r * k) % n], sign * sines[(r * k) % n]];
      result.re[k] += a * c - b * s;
      result.im[k] += a * s + b * c;
    }
  return result;
}

const strided = (x: Float64Array, first: number, step: number): Float64Array =>
  Float64Array.from({ length: x.length / step }, (_, at) => x[first + at * step]);

function smallestFactor(n: number): number {
  for (let factor = 2; factor * factor <= n; factor++) if (n % factor === 0) return factor;
  return n;
}
