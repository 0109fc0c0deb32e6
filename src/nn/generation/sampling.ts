/**
 * The choice of a token from logits l, in float64 and in this order:
 *
 *     l[t] = l[t] > 0 ? l[t] / penalty : l[t] · penalty       for tokens that have come; each once, however often they came
 *     l = l / temperature                                     at 0 the largest logit's token is taken, of equal ones the first
 *     the topK largest stay                                   of equal ones those with lower numbers
 *     the largest stay, as few as have Σ p ≥ topP             p = softmax of what stayed before
 *     t is drawn with the probability softmax(l)[t]           of what stayed
 *
 * Sources: N. S. Keskar et al., "CTRL: a conditional transformer language model for controllable generation", 2019, for the penalty;
 * A. Holtzman et al., "The curious case of neural text degeneration", 2020, for topP.
 */
import { ArgumentError } from "../../core/errors.ts";
import type { Generator } from "../../random/generator.ts";
import { philox } from "../../random/philox.ts";
import type { Sampling } from "./options.ts";

/** @internal Tokens that may be chosen, and weights in proportion to their probabilities. */
export interface Candidates {
  readonly tokens: ArrayLike<number>;
  readonly weights: ArrayLike<number>;
}

/** @internal The token that comes next. @throws {ArgumentError} for logits without a largest one. */
export function chooseToken(
  logits: ArrayLike<number>,
  come: Iterable<number>,
  sampling: Sampling,
  generator: Generator,
): number {
  const scores = penalised(logits, come, sampling.repetitionPenalty);
  if (sampling.temperature === 0) return largestOf(scores);
  return drawFrom(candidatesOf(scores, sampling), uniformOf(generator));
}

/** @internal Logits in float64, those of tokens that have come made smaller. */
export function penalised(logits: ArrayLike<number>, come: Iterable<number>, penalty: number): Float64Array {
  const scores = Float64Array.from(logits);
  if (penalty !== 1) for (const token of new Set(come)) scores[token]! *= scores[token]! > 0 ? 1 / penalty : penalty;
  return scores;
}

/** @internal What may be drawn, and how likely: from the largest on where only some may. */
export function candidatesOf(scores: Float64Array, { temperature, topK, topP }: Sampling): Candidates {
  const most = scores[largestOf(scores)]!;
  const weights = scores.map((score) => Math.exp((score - most) / temperature));
  if (topK >= weights.length && topP === 1) return { tokens: Uint32Array.from(weights.keys()), weights };
  const tokens = largestFirst(weights, Math.min(topK, weights.length));
  const kept = tokens.map((token) => weights[token]!);
  const wanted = topP === 1 ? Infinity : topP * sumOf(kept);
  let [count, sum] = [0, 0];
  while (count < kept.length && (count === 0 || sum < wanted)) sum += kept[count++]!;
  return { tokens: tokens.slice(0, count), weights: kept.slice(0, count) };
}

/** @internal The candidate at the share `u` in [0, 1) of all weights. */
export function drawFrom({ tokens, weights }: Candidates, u: number): number {
  let left = u * sumOf(weights);
  for (let at = 0; at < weights.length; at++) {
    left -= weights[at]!;
    if (left < 0) return tokens[at]!;
  }
  return tokens[weights.length - 1]!; // a rounding away from the end
}

/** 53 bits in [0, 1), one call of the generator. */
function uniformOf(generator: Generator): number {
  const [high, low] = philox([0, 0, 0, 0], generator.nextKey());
  return (high * 2 ** 21 + (low >>> 11)) * 2 ** -53;
}

function sumOf(weights: ArrayLike<number>): number {
  let sum = 0;
  for (let at = 0; at < weights.length; at++) sum += weights[at]!;
  return sum;
}

/** The index of the largest, the first of equal ones. */
function largestOf(scores: Float64Array): number {
  let best = 0;
  let hasNaN = false;
  for (let at = 0; at < scores.length; at++) {
    if (scores[at]! > scores[best]!) best = at;
    hasNaN ||= Number.isNaN(scores[at]!);
  }
  if (!hasNaN && Number.isFinite(scores[best]!)) return best;
  throw new ArgumentError(
    "generate",
    "notFinite",
    `logits must have a largest finite number, ${hasNaN ? "NaN" : String(scores[best])} is among them; is the model trained, and its loss finite?`,
  );
}

/** The indices of the so many largest, in descending order: a heap, of which no more is sorted than is taken. */
function largestFirst(values: Float64Array, count: number): number[] {
  const heap = Uint32Array.from(values.keys());
  const isBefore = (a: number, b: number) => values[a]! > values[b]! || (values[a] === values[b] && a < b);
  const sink = (from: number, size: number) => {
    const item = heap[from]!;
    let at = from;
    for (let child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, item)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = item;
  };
  for (let at = heap.length >> 1; at-- > 0; ) sink(at, heap.length);
  return Array.from({ length: count }, (_, taken) => {
    const largest = heap[0]!;
    heap[0] = heap[heap.length - taken - 1]!;
    sink(0, heap.length - taken - 1);
    return largest;
  });
}
