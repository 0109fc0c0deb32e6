/**
 * Changes scores of the next token, in the order of `transformers`: the repetition penalty, repeated n-grams, sequences
 * that are excluded, the minimum length, and forced tokens.
 */
import { lastElement } from "../../../core/collections.ts";
import type { BatchSettings } from "./options.ts";

/** @internal A text so far. */
export interface TextSoFar {
  /** All tokens: the prompt, or the start token, and the generated ones. */
  readonly tokens: readonly number[];
  /** The number of generated tokens. */
  readonly count: number;
}

/** @internal Changes the scores of the next token of a text in place. */
export function applyRules(scores: Float32Array, { tokens, count }: TextSoFar, settings: BatchSettings): void {
  const { repetitionPenalty, noRepeatNgramSize, badWords, minTokens, maxTokens, stopTokens } = settings;
  if (repetitionPenalty !== 1)
    for (const token of new Set(tokens))
      scores[token] = scores[token] < 0 ? scores[token] * repetitionPenalty : scores[token] / repetitionPenalty;
  if (noRepeatNgramSize > 0) excludeNgrams(scores, tokens, noRepeatNgramSize);
  for (const word of badWords) {
    const before = word.slice(0, -1);
    const isEnd = word.length === 1 && stopTokens.has(word[0]);
    if (!isEnd && endsWith(tokens, before)) scores[lastElement(word)] = -Infinity;
  }
  if (count < minTokens) for (const token of stopTokens) scores[token] = -Infinity;
  if (count === 0 && settings.forcedBeginToken !== undefined) only(scores, settings.forcedBeginToken);
  if (count === maxTokens - 1 && settings.forcedEndToken !== undefined) only(scores, settings.forcedEndToken);
}

const endsWith = (tokens: readonly number[], end: readonly number[]): boolean =>
  end.length <= tokens.length && end.every((token, at) => token === tokens[tokens.length - end.length + at]);

function only(scores: Float32Array, token: number): void {
  scores.fill(-Infinity);
  scores[token] = 0;
}

/** Excludes tokens that would end a sequence of `size` tokens that has occurred. */
function excludeNgrams(scores: Float32Array, tokens: readonly number[], size: number): void {
  const last = tokens.slice(tokens.length - size + 1);
  if (last.length < size - 1) return;
  for (let at = 0; at + size <= tokens.length; at++)
    if (last.every((token, index) => token === tokens[at + index])) scores[tokens[at + size - 1]] = -Infinity;
}
