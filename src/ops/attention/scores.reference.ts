/** Attention one query at a time, in float64, for both passes of the reference backend. Letters as in `problem.ts`. */
import { bfloat16ToNumber } from "../../tensor/bfloat16.ts";
import { keptRow } from "./dropout_mask.reference.ts";
import {
  type AttentionProblem,
  keysInBand,
  type Operand,
  type PlacedSequence,
  sequencesOf,
  shiftOf,
} from "./problem.ts";

type Read = (batch: number, head: number, row: number, column: number) => number;

/** Returns a function that reads an operand's elements. */
export function readerOf({ tensor, batch, head, row, column }: Operand): Read {
  const stored = tensor.storage.array(tensor.dtype) as ArrayLike<number>;
  const decode = tensor.dtype === "bfloat16" ? bfloat16ToNumber : Number;
  return (b, h, r, c) => decode(stored[tensor.offset + b * batch + h * head + r * row + c * column]);
}

/** Returns `count` rows of one head of an operand. */
export function rowsOf(operand: Operand, batch: number, head: number, start: number, count: number): Float64Array[] {
  const read = readerOf(operand);
  const length = operand.tensor.shape[3];
  return Array.from({ length: count }, (_, index) =>
    Float64Array.from({ length }, (_, column) => read(batch, head, start + index, column)),
  );
}

export function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += a[at] * b[at];
  return sum;
}

/** Computes target += factor · row. */
export function addScaled(target: Float64Array, factor: number, row: Float64Array): void {
  for (let at = 0; at < target.length; at++) target[at] += factor * row[at];
}

/** One head of one sequence. */
export interface Head {
  readonly sequence: PlacedSequence;
  readonly head: number;
  readonly kvHead: number;
  readonly q: readonly Float64Array[];
  readonly k: readonly Float64Array[];
  readonly v: readonly Float64Array[];
}

/** Iterates over the heads of all sequences. */
export function* headsOf(problem: AttentionProblem): Generator<Head> {
  const { q, k, v } = problem.inputs;
  for (const sequence of sequencesOf(problem))
    for (let head = 0; head < problem.heads; head++) {
      const { batch, queryStart, queries, keyStart, keys } = sequence;
      const kvHead = Math.floor(head / problem.group);
      yield {
        sequence,
        head,
        kvHead,
        q: rowsOf(q, batch, head, queryStart, queries),
        k: rowsOf(k, batch, kvHead, keyStart, keys),
        v: rowsOf(v, batch, kvHead, keyStart, keys),
      };
    }
}

/** A key that a query attends to. */
export interface Pair {
  /** The key's index within the sequence. */
  readonly j: number;
  /** The score after (4). */
  readonly score: number;
  /** The softcap's derivative at the score: 1 − (s₂ / softcap)². */
  readonly capSlope: number;
  /** Dropout's factor of the probability: 0 or keepScale; 1 without dropout. */
  readonly keep: number;
}

/** Returns a function that gives query i's attended pairs, in ascending order of keys. */
export function pairsOf(problem: AttentionProblem): (rows: Head, i: number) => Pair[] {
  const { scale, softcap, dropout, inputs } = problem;
  const isAllowed = inputs.mask && readerOf(inputs.mask);
  const offsetOf = offsetReader(problem);
  return ({ sequence, head, q, k }, i) => {
    const { batch, queryStart, keyStart } = sequence;
    const kept = dropout && keptRow(dropout, sequence, head, i);
    const { first, end } = keysInBand(problem, sequence, i);
    const pairs: Pair[] = [];
    for (let j = first; j < end; j++) {
      if (isAllowed?.(batch, head, queryStart + i, keyStart + j) === 0) continue;
      const offset = offsetOf(sequence, head, i, j);
      if (offset === -Infinity) continue; // excluded, even if the product is NaN or ∞
      const product = scale * dot(q[i], k[j]);
      const bounded = softcap === undefined ? product : Math.tanh(product / softcap);
      const score = (softcap ?? 1) * bounded + offset;
      const capSlope = softcap === undefined ? 1 : 1 - bounded ** 2;
      const keep = kept ? kept[j] * dropout.keepScale : 1;
      if (score !== -Infinity) pairs.push({ j, score, capSlope, keep });
    }
    return pairs;
  };
}

/** Returns a function that computes what bias and slopes add to a score: (3) and (4). */
function offsetReader(problem: AttentionProblem) {
  const { bias, slopes } = problem.inputs;
  const biasAt = bias && readerOf(bias);
  const slopeAt = slopes && readerOf(slopes);
  return (sequence: PlacedSequence, head: number, i: number, j: number): number => {
    const { index, batch, queryStart, keyStart } = sequence;
    const added = biasAt?.(batch, head, queryStart + i, keyStart + j) ?? 0;
    return slopeAt ? added - slopeAt(index, head, 0, 0) * Math.abs(j - i - shiftOf(problem, sequence)) : added;
  };
}

/** A logarithm as the sum of two numbers, the second smaller, since one number would lose precision. */
export interface LogSumExp {
  readonly high: number;
  readonly low: number;
}

/** Computes ln Σ exp without overflow; −∞ for an empty list, NaN if a score is NaN or +∞. */
export function logSumExpOf(scores: readonly number[]): LogSumExp {
  const most = scores.reduce((largest, score) => Math.max(largest, score), -Infinity);
  if (most === -Infinity) return { high: -Infinity, low: 0 };
  return { high: most, low: Math.log(scores.reduce((sum, score) => sum + Math.exp(score - most), 0)) };
}

/** Computes exp(score − L). */
export const probabilityOf = (score: number, { high, low }: LogSumExp): number => Math.exp(score - high - low);
