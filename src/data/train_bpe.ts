import { aNumber, text as aText, either, listOf } from "../core/kinds.ts";
import { operand, parameters, required } from "../core/parameters.ts";
import { BpeTokenizer } from "./bpe_tokenizer.ts";
import { trainVocabulary } from "./bpe_trainer.ts";

/** Options of {@link trainBpe}. */
export interface TrainBpeOptions {
  /** The number of tokens: the 256 bytes, the end-of-text token, and the merged tokens. */
  readonly size: number;
}

const operation = "trainBpe";

/** The bytes and the end-of-text token. */
const SMALLEST = 257;
const LARGEST = 2 ** 20;

const readArguments = parameters(operation, {
  text: operand(either(aText, listOf(aText, "a list of strings"))),
  size: required(
    aNumber({
      holds: (size) => Number.isInteger(size) && size >= SMALLEST && size <= LARGEST,
      expected: `a whole number from ${SMALLEST} to ${LARGEST}`,
    }),
  ),
});

/**
 * Trains a byte pair encoding. Starting from bytes, the most frequent pair of adjacent tokens within words becomes a
 * new token, until there are `size` tokens (Sennrich et al., 2016, https://arxiv.org/abs/1508.07909). Text is split
 * into words as in GPT-2. The same text gives the same tokens and ids as Hugging Face's `BpeTrainer` with a byte-level
 * alphabet, on any machine.
 *
 * @param text a text, or a list of texts
 * @param size the number of tokens, or `{ size }`
 * @returns the tokenizer; it has fewer tokens than `size` if the text has no more pairs
 * @example
 * const tokenizer = data.trainBpe(await Bun.file("book.txt").text(), { size: 1024 });
 * tokenizer.encode("Call me Ishmael."); // about a third as many tokens as bytes
 * await Bun.write("tokenizer.json", JSON.stringify(tokenizer));
 *
 * @throws {ArgumentError} if the text is not a string or a list of strings, or for a size below 257 or above 2²⁰.
 */
export function trainBpe(text: string | readonly string[], size: number | TrainBpeOptions): BpeTokenizer;
export function trainBpe(...values: unknown[]): BpeTokenizer {
  const given = readArguments(values);
  return new BpeTokenizer(trainVocabulary(typeof given.text === "string" ? [given.text] : given.text, given.size));
}
