/** Activations in float64 from their definitions, by integration where the library uses fractions and polynomials. */

// Points and weights of the Gauss–Legendre rule with five points on (-1, 1).
const [near, far] = [Math.sqrt(5 - 2 * Math.sqrt(10 / 7)) / 3, Math.sqrt(5 + 2 * Math.sqrt(10 / 7)) / 3];
const [nearWeight, farWeight] = [(322 + 13 * Math.sqrt(70)) / 900, (322 - 13 * Math.sqrt(70)) / 900];
const rule = [
  [0, 128 / 225],
  [near, nearWeight],
  [-near, nearWeight],
  [far, farWeight],
  [-far, farWeight],
] as const;

const density = (x: number): number => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);

/**
 * Φ(−a) = φ(a)·∫₀^∞ exp(−a·t − t²/2) dt for a ≥ 0: the rule on each of `parts` parts up to where the exponent is −40.
 */
function normalTail(a: number, parts: number): number {
  if (a > 40) return 0;
  const half = (Math.sqrt(a * a + 80) - a) / (2 * parts);
  let sum = 0;
  let lost = 0; // Kahan summation: the rounding error of each addition is added to the next term
  for (let part = parts - 1; part >= 0; part--)
    for (const [point, weight] of rule) {
      const t = half * (2 * part + 1 + point);
      const term = weight * Math.exp(-t * (a + t / 2)) - lost;
      const next = sum + term;
      lost = next - sum - term;
      sum = next;
    }
  return density(a) * sum * half;
}

/** x·S(x) and its derivative, where S(−a) is a `tail` and S′ is even. Computed on the side where nothing cancels. */
const activation = (tail: (a: number) => number, slope: (a: number) => number) => ({
  value(x: number): number {
    if (x === Number.NEGATIVE_INFINITY) return 0;
    return x < 0 ? x * tail(-x) : x * (1 - tail(x));
  },
  derivative(x: number): number {
    const a = Math.abs(x);
    const below = a === Number.POSITIVE_INFINITY ? 0 : tail(a) - a * slope(a);
    return x < 0 ? below : 1 - below;
  },
  /** The sum of the magnitudes of the derivative's terms, which cancel near its zero. */
  magnitude: (x: number): number => tail(Math.abs(x)) + Math.min(Math.abs(x), 1e3) * slope(Math.abs(x)),
});

/** Integrates with this many parts: 80 are as accurate as float64. */
export const geluBy = (parts: number) => activation((a) => normalTail(a, parts), density);
export const gelu = geluBy(80);

const logisticTail = (v: number): number => Math.exp(-v) / (1 + Math.exp(-v));
const logisticSlope = (v: number): number => Math.exp(-v) / (1 + Math.exp(-v)) ** 2;
export const silu = activation(logisticTail, logisticSlope);

const scale = Math.sqrt(8 / Math.PI);
const twice = (a: number): number => scale * (a + 0.044715 * a ** 3);
export const geluTanh = activation(
  (a) => logisticTail(twice(a)),
  (a) => (a > 30 ? 0 : logisticSlope(twice(a)) * scale * (1 + 0.134145 * a * a)),
);

/**
 * x − tanh x = (x·cosh x − sinh x)/cosh x, whose numerator is a series of positive terms, 2k·x²ᵏ⁺¹/(2k + 1)!, up to 2.
 */
export function tanhshrinkBySeries(x: number): number {
  if (!(Math.abs(x) <= 2)) return x - Math.tanh(x);
  let sum = 0;
  let power = x; // x²ᵏ⁺¹/(2k + 1)!
  for (let k = 1; k < 25; k++) {
    power *= (x * x) / (2 * k * (2 * k + 1));
    sum += 2 * k * power;
  }
  return sum / Math.cosh(x);
}
