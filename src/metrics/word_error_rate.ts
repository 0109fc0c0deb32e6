/** The word error rate of transcripts. */
import { lastElement } from "../core/collections.ts";
import { ArgumentError } from "../core/errors.ts";
import { either, listOf, text } from "../core/kinds.ts";
import { operand, parameters } from "../core/parameters.ts";

const someTexts = either(text, listOf(text, "a list of texts"));

const wordErrorRateParameters = parameters("wordErrorRate", {
  references: operand(someTexts),
  hypotheses: operand(someTexts),
});

/**
 * Returns the word error rate of transcripts: the least number of words to substitute, delete and insert to turn the
 * hypotheses into the references, divided by the number of words in the references. Words are separated by spaces.
 * Case and punctuation count, so normalize texts first. The rate exceeds 1 if there are more errors than words.
 *
 *     (substitutions + deletions + insertions) / words
 *
 * It equals `jiwer.wer`.
 *
 * @param references the correct text, or a list of texts
 * @param hypotheses the transcripts, as many as references
 *
 * @example
 * metrics.wordErrorRate("the cat sat on the mat", "the cat sit on mat"); // 2 / 6
 *
 * @throws {ArgumentError} `differentCounts` for lists of different lengths; `noWords` for references without words.
 */
export function wordErrorRate(references: string | readonly string[], hypotheses: string | readonly string[]): number;
export function wordErrorRate(...values: unknown[]): number {
  const { references, hypotheses } = wordErrorRateParameters(values);
  const [wanted, given] = [references, hypotheses].map((each) =>
    (typeof each === "string" ? [each] : each).map(wordsOf),
  );
  if (wanted.length !== given.length)
    throw new ArgumentError(
      "wordErrorRate",
      "differentCounts",
      `expected one hypothesis for each of ${wanted.length} references, got ${given.length}`,
    );
  const count = wanted.reduce((total, words) => total + words.length, 0);
  if (count === 0)
    throw new ArgumentError("wordErrorRate", "noWords", "expected references with at least one word, got none");
  return wanted.reduce((total, words, at) => total + distance(words, given[at]), 0) / count;
}

/** Splits a text as jiwer does: several white spaces count as one space. */
const wordsOf = (line: string): string[] => line.replace(/\s\s+/g, " ").trim().split(" ").filter(Boolean);

/** Levenshtein's distance of two lists of words. */
function distance(wanted: readonly string[], given: readonly string[]): number {
  // the distances of the first words of `wanted` to all prefixes of `given`
  let row = Array.from({ length: given.length + 1 }, (_, at) => at);
  for (const [index, word] of wanted.entries()) {
    const next = [index + 1];
    for (const [at, other] of given.entries())
      next.push(Math.min(row[at] + (word === other ? 0 : 1), row[at + 1] + 1, next[at] + 1));
    row = next;
  }
  return lastElement(row);
}
