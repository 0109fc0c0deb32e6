import { aNumber, text as aText, either, listOf } from "../core/kinds.ts";
import { operand, parameters, required } from "../core/parameters.ts";
import { BpeTokenizer } from "./bpe_tokenizer.ts";
import { trainVocabulary } from "./bpe_trainer.ts";

/** Options of {@link trainBpe}. */
export interface TrainBpeOptions {
  /** The number of tokens: the 256 bytes, one that ends a text, and those that are merged from them. */
  readonly size: number;
}

const operation = "trainBpe";

/** The bytes, and the token that ends a text. */
const SMALLEST = 257;
const LARGEST = 2 ** 20;

const readArguments = parameters(operation, {
  text: operand(either(aText, listOf(aText, "a list of texts"))),
  size: required(
    aNumber({
      holds: (own) => Number.isInteger(own) && own >= SMALLEST && own <= LARGEST,
      expected: `a whole number from ${SMALLEST} to ${LARGEST}`,
    }),
  ),
});

/**
 * Trains a byte pair encoding: starting from bytes, the most frequent pair of adjacent tokens within words becomes a
 * token, until there are `size` (Sennrich et al., 2016, https://arxiv.org/abs/1508.07909). Words are GPT-2's. The same
 * text gives the same tokens and ids as Hugging Face's `BpeTrainer` with a byte-level alphabet, and as on any machine.
 *
 * @param text a text, or a list of texts
 * @param size the number of tokens, or `{ size }`
 * @returns the tokenizer; it has fewer tokens than `size` where the text has no further pairs
 * @example
 * const tokenizer = data.trainBpe(await Bun.file("book.txt").text(), { size: 1024 });
 * tokenizer.encode("Call me Ishmael."); // about a third as many tokens as bytes
 * await Bun.write("tokenizer.json", JSON.stringify(tokenizer));
 *
 * @throws {ArgumentError} for a text that is none, or a size below 257.
 */
export function trainBpe(text: string | readonly string[], size: number | TrainBpeOptions): BpeTokenizer;
export function trainBpe(...values: unknown[]): BpeTokenizer {
  const own = readArguments(values);
  return new BpeTokenizer(trainVocabulary(typeof own.text === "string" ? [own.text] : own.text, own.size));
}
