/** Statistics of samples, and their probabilities, by textbook formulas without any code of the library. */

export interface Moments {
  readonly mean: number;
  readonly variance: number;
  readonly skewness: number;
  readonly kurtosis: number;
}

export function momentsOf(values: readonly number[]): Moments {
  const mean = average(values);
  const central = (power: number) => average(values.map((value) => (value - mean) ** power));
  const variance = central(2);
  return { mean, variance, skewness: central(3) / variance ** 1.5, kurtosis: central(4) / variance ** 2 };
}

const average = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The correlation of two samples. */
export function correlation(a: readonly number[], b: readonly number[]): number {
  const [of, by] = [momentsOf(a), momentsOf(b)];
  const products = a.map((value, i) => (value - of.mean) * (b[i] - by.mean));
  return average(products) / Math.sqrt(of.variance * by.variance);
}

/** Kolmogorov and Smirnov: √n times the largest distance from the distribution; above 1.95 once in a thousand. */
export function kolmogorovSmirnov(values: readonly number[], distribution: (x: number) => number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const distances = sorted.map((value, i) => {
    const at = distribution(value);
    return Math.max(at - i / sorted.length, (i + 1) / sorted.length - at);
  });
  return Math.sqrt(sorted.length) * Math.max(...distances);
}

/** Pearson's χ², as a standard normal number by Wilson and Hilferty: above 3.1 once in a thousand. */
export function chiSquare(observed: readonly number[], expected: readonly number[]): number {
  const sum = observed.reduce((total, count, i) => total + (count - expected[i]) ** 2 / expected[i], 0);
  const freedom = observed.length - 1;
  const spread = 2 / (9 * freedom);
  return (Math.cbrt(sum / freedom) - (1 - spread)) / Math.sqrt(spread);
}

/** How often each of 0 … size − 1 occurs. */
export function countsOf(values: Iterable<number>, size: number): number[] {
  const counts = new Array<number>(size).fill(0);
  for (const value of values) counts[value] += 1;
  return counts;
}

/** The normal distribution function: Φ(x) = ½ + φ(x) Σ x^(2k+1) / (1·3·…·(2k+1)). */
export function normalDistribution(x: number): number {
  let term = x;
  let sum = x;
  for (let odd = 3; Math.abs(term) > 1e-17; odd += 2) {
    term *= (x * x) / odd;
    sum += term;
  }
  return 0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI);
}
