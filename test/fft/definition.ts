/** Discrete Fourier transforms by their definition, in float64. */

/** Complex numbers as pairs. */
export type Pairs = Float64Array;

/** X[k] = Σ x[j] e^(sign 2πi jk / n) for the indices k in `which`. Numbers are pairs of parts. */
export function transformOf(x: Pairs, sign: 1 | -1, which?: readonly number[]): Pairs {
  const n = x.length / 2;
  const [cosines, sines] = [Math.cos, Math.sin].map((wave) =>
    Float64Array.from({ length: n }, (_, turns) => wave((2 * Math.PI * turns) / n)),
  ) as [Float64Array, Float64Array];
  const wanted = which ?? Array.from({ length: n }, (_, k) => k);
  const result = new Float64Array(2 * wanted.length);
  for (const [at, k] of wanted.entries()) {
    let [re, im, turns] = [0, 0, 0];
    for (let j = 0; j < n; j++) {
      const [c, s] = [cosines[turns], sign * sines[turns]];
      re += x[2 * j] * c - x[2 * j + 1] * s;
      im += x[2 * j] * s + x[2 * j + 1] * c;
      turns += k;
      if (turns >= n) turns -= n;
    }
    result[2 * at] = re;
    result[2 * at + 1] = im;
  }
  return result;
}

/** Completes a spectrum from its first half. The imaginary part of an element that is its own conjugate counts as 0. */
export function wholeSpectrum(half: Pairs, n: number): Pairs {
  const result = new Float64Array(2 * n);
  for (let k = 0; 2 * k <= n; k++) {
    const isAlone = k === 0 || 2 * k === n;
    const [re, im] = [half[2 * k], isAlone ? 0 : half[2 * k + 1]];
    result.set([re, im], 2 * k);
    if (!isAlone) result.set([re, -im], 2 * (n - k));
  }
  return result;
}

/** ‖got − expected‖ / ‖expected‖. */
export function distance(got: ArrayLike<number>, expected: ArrayLike<number>): number {
  let [error, size] = [0, 0];
  for (let at = 0; at < expected.length; at++) {
    error += (got[at] - expected[at]) ** 2;
    size += expected[at] ** 2;
  }
  return Math.sqrt(error / (size || 1));
}
