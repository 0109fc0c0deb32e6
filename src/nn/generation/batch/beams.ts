/**
 * Beam search of one text. It gives the results of `transformers` 5.23, whose sums are in float32, as here.
 *
 * Of all continuations of the running beams, the best K = (stop tokens + 1) · beams are considered, at least 2 · beams.
 * A continuation that ends becomes a result if it is among the best `beams` of the K. The best `beams` of the others
 * stay in the search.
 */
import { lastElement } from "../../../core/collections.ts";
import { ArgumentError } from "../../../core/errors.ts";
import { largestFirst } from "../sampling.ts";
import type { BatchSettings } from "./options.ts";
import { applyRules } from "./rules.ts";

/** Stands for −∞ in scores that are compared after further additions, as in `transformers`. */
const WORST = -1e9;

interface Beam {
  /** The prompt and the generated tokens. */
  readonly tokens: readonly number[];
  /** Σ ln p of the generated tokens. */
  readonly score: number;
  /** The index of the beam that this one continues. */
  readonly from: number;
}

interface Result extends Beam {
  readonly isFinished: boolean;
}

/** @internal A result of beam search. */
export interface BeamResult {
  /** The generated tokens, with the stop token. */
  readonly tokens: readonly number[];
  readonly score: number;
}

/** @internal */
export class BeamSearch {
  private running: readonly Beam[];
  private finished: readonly Result[];
  private canImprove = true;
  private allEnded = false;
  private readonly promptLength: number;
  private readonly settings: BatchSettings;
  private readonly kept: number;

  /** @param prompt the prompt, or the start token */
  constructor(prompt: readonly number[], settings: BatchSettings) {
    const { numBeams, stopTokens } = settings;
    this.settings = settings;
    this.promptLength = prompt.length;
    this.kept = Math.max(2, 1 + stopTokens.size) * numBeams;
    // all beams are equal at first, so only continuations of the first one are considered
    this.running = Array.from({ length: numBeams }, (_, from) => ({
      tokens: prompt,
      from,
      score: from === 0 ? 0 : WORST,
    }));
    this.finished = this.running.map((beam) => ({ ...beam, score: WORST, isFinished: false }));
  }

  get isDone(): boolean {
    const isFull = this.finished.every(({ isFinished }) => isFinished) && this.settings.earlyStopping === true;
    return !this.canImprove || isFull || this.allEnded;
  }

  /** The last token of each beam. */
  get lastTokens(): number[] {
    return this.running.map(({ tokens }) => lastElement(tokens));
  }

  /** The beam that each beam continues. */
  get origins(): number[] {
    return this.running.map(({ from }) => from);
  }

  /** The best results first. */
  results(): BeamResult[] {
    return this.finished.map(({ tokens, score }) => ({ tokens: tokens.slice(this.promptLength), score }));
  }

  /** Continues the beams. @param rows for each beam ln p of the next token; they are changed */
  advance(rows: readonly Float32Array[]): void {
    const { numBeams, lengthPenalty, stopTokens, maxTokens } = this.settings;
    const count = this.running[0].tokens.length - this.promptLength;
    const candidates = this.candidates(rows, count);
    const isFull = this.finished.every(({ isFinished }) => isFinished) && this.settings.earlyStopping === true;
    const divisor = Math.fround((count + 1) ** lengthPenalty);
    const merged: Result[] = [...this.finished];
    const next: Beam[] = [];
    this.allEnded = true;
    for (const [at, beam] of candidates.entries()) {
      const ends = count + 1 >= maxTokens || stopTokens.has(lastElement(beam.tokens));
      this.allEnded &&= ends;
      next.push({ ...beam, score: Math.fround(beam.score + (ends ? WORST : 0)) });
      const isFinished = ends && at < numBeams;
      let score = Math.fround(beam.score / divisor);
      for (const excluded of [isFull, !this.canImprove, !isFinished]) if (excluded) score = Math.fround(score + WORST);
      merged.push({ ...beam, score, isFinished });
    }
    this.running = best(next, numBeams);
    this.finished = best(merged, numBeams);
    this.canImprove &&= this.mayImprove(count + 1);
  }

  /** Returns the best continuations of all beams. */
  private candidates(rows: readonly Float32Array[], count: number): Beam[] {
    const found: Beam[] = [];
    for (const [from, { tokens, score }] of this.running.entries()) {
      const row = rows[from];
      applyRules(row, { tokens, count }, this.settings);
      for (const [token, sum] of topOf(row, score, this.kept))
        found.push({ tokens: [...tokens, token], score: sum, from });
    }
    return best(found, this.kept);
  }

  /** Whether a running beam can still beat the worst result. */
  private mayImprove(count: number): boolean {
    const { earlyStopping, lengthPenalty, maxTokens } = this.settings;
    const length = earlyStopping === "never" && lengthPenalty > 0 ? maxTokens : count;
    const possible = Math.fround(this.running[0].score / Math.fround(length ** lengthPenalty));
    const worst = Math.min(...this.finished.map(({ score }) => score));
    return this.finished.some(({ isFinished }) => possible > (isFinished ? worst : WORST));
  }
}

/**
 * Returns the tokens with the largest sums ln p + score, and the sums, in descending order; the first of ties. A single
 * pass keeps the best values so far sorted. Few values of a large vocabulary reach this list, so it is rarely updated.
 *
 * @throws {ArgumentError} for NaN
 */
function topOf(row: Float32Array, score: number, count: number): (readonly [token: number, sum: number])[] {
  const top: (readonly [token: number, sum: number])[] = [];
  let worst = -Infinity;
  for (let token = 0; token < row.length; token++) {
    const sum = Math.fround(row[token] + score);
    if (sum <= worst && top.length === count) continue;
    if (Number.isNaN(sum))
      throw new ArgumentError("generateBatch", "notFinite", "expected logits without NaN; are the weights finite?");
    let at = top.length;
    while (at > 0 && top[at - 1][1] < sum) at--;
    top.splice(at, 0, [token, sum]);
    if (top.length > count) top.pop();
    worst = lastElement(top)[1];
  }
  return top;
}

/** Returns the items with the largest scores in descending order; the first of ties. */
const best = <T extends { readonly score: number }>(items: readonly T[], count: number): T[] =>
  largestFirst(
    Float64Array.from(items, ({ score }) => score),
    Math.min(count, items.length),
  ).map((at) => items[at]);
