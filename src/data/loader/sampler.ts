/** Samplers for data loaders. */
import { lastElement } from "../../core/collections.ts";
import { ArgumentError } from "../../core/errors.ts";
import { aNumber, flag, listOf } from "../../core/kinds.ts";
import { count as whole } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { callKey, type PhiloxKey, philox, splitWords } from "../../random/philox.ts";

/** Options of {@link weightedRandomSampler}. */
export interface WeightedSamplerOptions {
  /** The number of indices per epoch. Default: the number of weights. */
  count?: number | undefined;
  /** Whether an index may be drawn more than once in an epoch. Default true. */
  replacement?: boolean | undefined;
}

const samplerParameters = parameters("weightedRandomSampler", {
  weights: operand(
    listOf(
      aNumber({ holds: (value) => value >= 0 && value < Infinity, expected: "a weight" }),
      "a list of weights: finite numbers of at least 0",
    ),
  ),
  count: named(aNumber(whole)),
  replacement: named(flag, true),
});

/**
 * Returns a `sampler` for {@link DataLoader} that draws indices with probabilities proportional to their weights, for
 * example to see rare classes as often as common ones. The indices depend only on the loader's seed and the epoch.
 *
 * Without replacement, each index is drawn from those that are left, in proportion to their weights.
 *
 * @param weights one per item
 *
 * @example
 * const weights = labels.map((label) => 1 / counts[label]);
 * const sampler = data.weightedRandomSampler(weights);
 * for await (const batch of new data.DataLoader(set, { batchSize: 32, sampler, seed: 1 })) train(batch);
 *
 * @throws {ArgumentError} `invalidOperand`; `noWeights` if none is above 0; `tooMany` for more indices without
 * replacement than weights above 0.
 */
export function weightedRandomSampler(
  weights: readonly number[] | NodeJS.TypedArray,
  options?: WeightedSamplerOptions,
): (epoch: number, seed: bigint) => Iterable<number>;
export function weightedRandomSampler(...values: unknown[]): (epoch: number, seed: bigint) => Iterable<number> {
  const { weights, count, replacement } = samplerParameters(values);
  const size = count ?? weights.length;
  const positive = weights.filter((weight) => weight > 0).length;
  if (positive === 0)
    throw new ArgumentError("weightedRandomSampler", "noWeights", "expected at least one weight above 0, got none");
  if (!replacement && size > positive)
    throw new ArgumentError(
      "weightedRandomSampler",
      "tooMany",
      `expected count to be at most ${positive}, the number of weights above 0, got ${size}; draw with replacement`,
    );
  const sums = sumsOf(weights);
  return (epoch, seed) => {
    const key = callKey(seed, BigInt(epoch));
    return replacement ? drawn(sums, size, key) : race(weights, size, key);
  };
}

/** Cumulative sums of the weights. All are divided by the largest weight, so that huge weights do not overflow. */
function sumsOf(weights: readonly number[]): Float64Array {
  const largest = weights.reduce((most, weight) => Math.max(most, weight), 0);
  const sums = new Float64Array(weights.length);
  let sum = 0;
  for (const [at, weight] of weights.entries()) {
    sum += weight / largest;
    sums[at] = sum;
  }
  return sums;
}

/** Draws by inversion: the first index whose cumulative sum is above a uniform number. */
function* drawn(sums: Float64Array, size: number, key: PhiloxKey): Generator<number, void, undefined> {
  const total = lastElement(sums);
  for (let at = 0; at < size; at++) {
    const sought = uniform(key, at) * total;
    let [low, high] = [0, sums.length - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sums[middle] > sought) high = middle;
      else low = middle + 1;
    }
    yield low;
  }
}

/**
 * Draws without replacement: takes the indices with the smallest exponential times, whose rates are the weights. That
 * is equivalent to drawing one by one (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006).
 */
function race(weights: readonly number[], size: number, key: PhiloxKey): number[] {
  const times = weights.map((weight, at) => -Math.log1p(-uniform(key, at)) / weight);
  const running = [...weights.keys()].filter((at) => weights[at] > 0);
  return running.sort((a, b) => times[a] - times[b] || a - b).slice(0, size);
}

/** A uniform number with 53 bits in [0, 1). */
function uniform(key: PhiloxKey, at: number): number {
  const [low, high] = splitWords(BigInt(at));
  const [first, second] = philox([low, high, 0, 2], key);
  return (first * 2 ** 21 + (second >>> 11)) * 2 ** -53;
}
