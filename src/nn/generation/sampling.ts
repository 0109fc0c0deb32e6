/**
 * Samples a token from logits l, in float64 and in this order:
 *
 *     l[t] = l[t] > 0 ? l[t] / penalty : l[t] · penalty     for each distinct previous token t
 *     l[t] = l[t] − presence − frequency · count[t]         for each token t that was generated count[t] times
 *     l[t] = l[t] + bias[t]
 *     l[t] = −∞                                             for each token that a constraint forbids
 *     l = l / temperature                                   at 0, take the argmax instead (the first of ties)
 *     keep the topK largest                                 among ties, the lowest token ids
 *     keep the fewest largest with Σ p ≥ topP               p = softmax of the logits kept by topK
 *     keep those with p ≥ minP · max p
 *     sample t with probability softmax(l)[t]               of the logits kept
 *
 * Sources: N. S. Keskar et al., "CTRL: a conditional transformer language model for controllable generation", 2019, for
 * the first penalty; A. Holtzman et al., "The curious case of neural text degeneration", 2020, for topP; N. N. Minh et
 * al., "Turning up the heat: min-p sampling for creative and coherent LLM outputs", 2024, for minP.
 */
import { ArgumentError } from "../../core/errors.ts";
import type { Generator } from "../../random/generator.ts";
import { philox } from "../../random/philox.ts";
import type { Sampling } from "./options.ts";

/** @internal The tokens to sample from, with unnormalized probabilities. */
export interface Candidates {
  readonly tokens: ArrayLike<number>;
  readonly weights: ArrayLike<number>;
}

/** @internal Previous tokens, for the penalties. */
export interface History {
  /** The tokens of the prompt and the generated tokens. */
  readonly seen: Iterable<number>;
  /** How often each token was generated. */
  readonly counts?: ReadonlyMap<number, number>;
}

/**
 * @internal Samples the next token.
 *
 * @param forbid sets the logits of excluded tokens to −∞
 *
 * @throws {ArgumentError} for logits without a finite maximum.
 */
export function chooseToken(
  logits: ArrayLike<number>,
  history: History,
  sampling: Sampling,
  generator: Generator,
  forbid?: (scores: Float64Array) => void,
): number {
  const scores = scoresOf(logits, history, sampling);
  forbid?.(scores);
  if (sampling.temperature === 0) return largestOf(scores);
  return drawFrom(candidatesOf(scores, sampling), uniformOf(generator));
}

/** @internal Returns the logits in float64, with penalties and biases applied. */
export function scoresOf(logits: ArrayLike<number>, { seen, counts }: History, sampling: Sampling): Float64Array {
  const scores = penalizeRepetition(logits, seen, sampling.repetitionPenalty);
  const { presencePenalty, frequencyPenalty, logitBias } = sampling;
  if (presencePenalty !== 0 || frequencyPenalty !== 0)
    for (const [token, count] of counts ?? []) scores[token] -= presencePenalty + frequencyPenalty * count;
  for (const [token, bias] of logitBias) if (token in scores) scores[token] += bias;
  return scores;
}

/** @internal Returns the logits in float64, with the repetition penalty applied to previous tokens. */
export function penalizeRepetition(logits: ArrayLike<number>, seen: Iterable<number>, penalty: number): Float64Array {
  const scores = Float64Array.from(logits);
  if (penalty !== 1) for (const token of new Set(seen)) scores[token] *= scores[token] > 0 ? 1 / penalty : penalty;
  return scores;
}

/** @internal Returns the tokens that temperature, topK, topP and minP keep; in descending order if any was removed. */
export function candidatesOf(scores: Float64Array, { temperature, topK, topP, minP }: Sampling): Candidates {
  const weights = weightsOf(scores, temperature);
  if (topK >= weights.length && topP === 1 && minP === 0) return { tokens: indicesOf(weights.length), weights };
  const tokens = topK < weights.length ? largestFirst(weights, topK) : likelyFirst(weights, topP, minP);
  const kept = tokens.map((token) => weights[token]);
  const threshold = topP === 1 ? Infinity : topP * sumOf(topK < weights.length ? kept : weights);
  let [count, sum] = [0, 0];
  const least = minP * kept[0];
  while (count < kept.length && (count === 0 || (sum < threshold && kept[count] >= least))) sum += kept[count++];
  return { tokens: tokens.slice(0, count), weights: kept.slice(0, count) };
}

/** Returns exp((score − max) / temperature): the top token has weight 1. */
function weightsOf(scores: Float64Array, temperature: number): Float64Array {
  const max = scores[largestOf(scores)];
  const weights = new Float64Array(scores.length);
  for (let token = 0; token < weights.length; token++) weights[token] = Math.exp((scores[token] - max) / temperature);
  return weights;
}

/**
 * Returns the tokens that topP and minP can keep, in descending order. Tokens with a weight below (1 − topP) · Σ w / n
 * are dropped first: even all n of them together would be less than topP leaves out. This avoids sorting the whole
 * vocabulary.
 */
function likelyFirst(weights: Float64Array, topP: number, minP: number): number[] {
  const spared = ((1 - topP) * sumOf(weights)) / weights.length;
  const least = Math.min(1, Math.max(spared, minP)) * (1 - 2 ** -30); // a margin for the rounding of sums
  const tokens: number[] = [];
  for (let token = 0; token < weights.length; token++) if (weights[token] >= least) tokens.push(token);
  return tokens.sort((a, b) => weights[b] - weights[a] || a - b);
}

/**
 * @internal Draws a candidate by inverse transform sampling: the one whose cumulative weight exceeds the fraction `u`
 * in [0, 1).
 */
export function drawFrom({ tokens, weights }: Candidates, u: number): number {
  let remaining = u * sumOf(weights);
  for (let index = 0; index < weights.length; index++) {
    remaining -= weights[index];
    if (remaining < 0) return tokens[index];
  }
  return tokens[weights.length - 1]; // rounding can make the cumulative sum fall short of u
}

/** @internal Returns a uniform float64 in [0, 1) of 53 random bits, from one call of the generator. */
export function uniformOf(generator: Generator): number {
  const [high, low] = philox([0, 0, 0, 0], generator.nextKey());
  return (high * 2 ** 21 + (low >>> 11)) * 2 ** -53;
}

function sumOf(weights: ArrayLike<number>): number {
  let sum = 0;
  for (let index = 0; index < weights.length; index++) sum += weights[index];
  return sum;
}

/** @internal Returns the index of the largest score; the first of ties. */
export function largestOf(scores: Float64Array): number {
  let best = 0;
  let hasNaN = false;
  for (let index = 0; index < scores.length; index++) {
    if (scores[index] > scores[best]) best = index;
    hasNaN ||= Number.isNaN(scores[index]);
  }
  if (!hasNaN && Number.isFinite(scores[best])) return best;
  throw new ArgumentError(
    "generate",
    "notFinite",
    `expected logits with a finite maximum, got ${hasNaN ? "NaN" : scores[best]}; are the model's weights finite?`,
  );
}

/** @internal Returns the indices of the `count` largest values in descending order; the first of ties. */
export function largestFirst(values: Float64Array, count: number): number[] {
  const isAfter = (a: number, b: number) => values[a] < values[b] || (values[a] === values[b] && a > b);
  const heap = indicesOf(count); // a min-heap: the smallest kept value is at the root
  const siftDown = (root: number) => {
    const item = heap[root];
    let parent = root;
    for (let child = 2 * parent + 1; child < count; child = 2 * parent + 1) {
      if (child + 1 < count && isAfter(heap[child + 1], heap[child])) child++;
      if (!isAfter(heap[child], item)) break;
      heap[parent] = heap[child];
      parent = child;
    }
    heap[parent] = item;
  };
  for (let root = count >> 1; root-- > 0; ) siftDown(root);
  for (let at = count; at < values.length; at++) {
    if (!(values[at] > values[heap[0]])) continue;
    heap[0] = at;
    siftDown(0);
  }
  return Array.from(heap).sort((a, b) => values[b] - values[a] || a - b);
}

/** Returns 0, 1, …, count − 1. */
function indicesOf(count: number): Uint32Array {
  const indices = new Uint32Array(count);
  for (let at = 0; at < count; at++) indices[at] = at;
  return indices;
}
