/**
 * Fits scales, minima and levels to minimize the squared error. It alternates between the nearest levels for a scale
 * and the least-squares scale for the levels (Lloyd's algorithm), from several starting scales.
 */

/** Rounds a ratio value / scale to a level of a format. */
export type ToLevel = (ratio: number) => number;

/** Rounds to integer levels from `least` to `most`. */
export const wholeLevels =
  (least: number, most: number): ToLevel =>
  (ratio) =>
    Math.min(Math.max(Math.round(ratio), least), most);

/** The starting scales, relative to the scale that represents the extreme value exactly. */
const STARTS = [1, 0.8, 0.86, 0.92, 0.96, 1.04, 1.08, 1.14];
/** The maximum number of alternations between fitting the scale and the levels. */
const ROUNDS = 4;

/**
 * Fits W ≈ scale · level. The first starting scale gives the value of largest magnitude the level `edge`.
 *
 * @param levels receives the levels
 * @returns the scale, which may be negative
 */
export function fitScale(values: Float32Array, levels: Int8Array, toLevel: ToLevel, edge: number): number {
  let extreme = 0;
  for (const value of values) if (Math.abs(value) > Math.abs(extreme)) extreme = value;
  if (extreme === 0) return levelsFor(values, levels, toLevel, 0);
  let [best, most] = [0, -1];
  for (const start of STARTS) {
    let scale = (extreme * start) / edge;
    for (let round = 0; round < ROUNDS; round++) {
      const { products, squares } = sumsFor(values, toLevel, scale);
      if (squares === 0) break;
      // The error of the least-squares scale is Σ x² − (Σ l x)² / Σ l².
      const gain = (products * products) / squares;
      if (!(gain > most)) break;
      [scale, most] = [products / squares, gain];
      best = scale;
    }
  }
  return levelsFor(values, levels, toLevel, best);
}

function sumsFor(values: Float32Array, toLevel: ToLevel, scale: number) {
  let [products, squares] = [0, 0];
  for (const value of values) {
    const level = toLevel(value / scale);
    products += level * value;
    squares += level * level;
  }
  return { products, squares };
}

/** Sets the nearest levels for a scale, and returns the scale. */
export function levelsFor(values: Float32Array, levels: Int8Array, toLevel: ToLevel, scale: number): number {
  for (let i = 0; i < values.length; i++) levels[i] = toLevel(scale === 0 ? 0 : values[i] / scale);
  return scale;
}

/** A scale and a minimum of at least 0: W ≈ scale · level − minimum. */
export interface Raised {
  readonly scale: number;
  readonly minimum: number;
}

/** Fits W ≈ scale · level − minimum with levels from 0 to `most`; neither scale nor minimum is negative. */
export function fitRaised(values: Float32Array, most: number): Raised {
  let [low, high] = [0, 0];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low === high) return { scale: 0, minimum: 0 };
  let best: Raised = { scale: (high - low) / most, minimum: -low };
  let least = errorOf(values, most, best);
  for (const start of STARTS) {
    let candidate: Raised = { scale: ((high - low) * start) / most, minimum: -low };
    for (let round = 0; round < ROUNDS; round++) {
      const next = raisedFor(values, most, candidate);
      if (next === undefined) break;
      candidate = next;
      const error = errorOf(values, most, candidate);
      if (!(error < least)) break;
      [best, least] = [candidate, error];
    }
  }
  return best;
}

/** Returns the nearest level of a value. */
export const raisedLevel = (value: number, most: number, { scale, minimum }: Raised): number =>
  scale === 0 ? 0 : Math.min(Math.max(Math.round((value + minimum) / scale), 0), most);

function errorOf(values: Float32Array, most: number, fit: Raised): number {
  let error = 0;
  for (const value of values) error += (value - (fit.scale * raisedLevel(value, most, fit) - fit.minimum)) ** 2;
  return error;
}

/**
 * Returns the least-squares scale and minimum for the levels of another pair; undefined if the levels do not determine
 * them.
 */
function raisedFor(values: Float32Array, most: number, before: Raised): Raised | undefined {
  let [sum, squares, products, total] = [0, 0, 0, 0];
  for (const value of values) {
    const level = raisedLevel(value, most, before);
    sum += level;
    squares += level * level;
    products += level * value;
    total += value;
  }
  const count = values.length;
  const spread = count * squares - sum * sum;
  if (spread <= 0) return undefined;
  const scale = (count * products - sum * total) / spread;
  const minimum = (scale * sum - total) / count;
  if (minimum >= 0) return scale > 0 ? { scale, minimum } : undefined;
  const alone = products / squares; // the minimum must not be negative
  return alone > 0 ? { scale: alone, minimum: 0 } : undefined;
}
