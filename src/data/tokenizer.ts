import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { reading } from "../core/parameters.ts";
import { printedCount } from "../core/printing.ts";

/** Token ids in order. */
export type Tokens = Iterable<number> & ArrayLike<number>;

/** Options for special tokens. Tokenizers of pretrained models use them; those of data sets ignore them. */
export interface SpecialTokens {
  readonly addSpecialTokens?: boolean | undefined;
  readonly skipSpecialTokens?: boolean | undefined;
  readonly isStart?: boolean | undefined;
}

/** Encodes text as token ids, and decodes them. `decode(encode(text))` is the text. */
export interface Tokenizer {
  /** Identifies the encoding: two tokenizers with the same name encode alike. */
  readonly name: string;
  /** The number of token ids; every id is below it. */
  readonly vocabularySize: number;
  /** The end-of-text token; null if there is none. No text encodes to it. */
  readonly endOfText: number | null;
  /** The token between two documents of a dataset. */
  readonly separator: number;
  encode(text: string): Tokens;
  /** Decodes tokens to text. Invalid UTF-8 becomes U+FFFD. @throws {ArgumentError} for an unknown token. */
  decode(tokens: Iterable<number>): string;
  /** Returns the bytes of a token. @throws {ArgumentError} for an unknown token. */
  bytesOf(token: number): Uint8Array;
  /** Returns a decoder for a stream of tokens. */
  decoder(): TextStream;
}

/**
 * Decodes a stream of tokens. A character that spans several tokens is held back until it is complete.
 *
 * @example
 * const stream = tokenizer.decoder();
 * for await (const token of generate(model, prompt)) process.stdout.write(stream.push(token));
 * process.stdout.write(stream.end());
 */
export class TextStream {
  private readonly text = new TextDecoder("utf-8", { ignoreBOM: true });

  /** @param bytesOf the tokenizer's `bytesOf` */
  constructor(private readonly bytesOf: (token: number) => Uint8Array) {}

  /** Returns the characters that this token completes; empty if there are none. */
  push(token: number): string {
    return this.text.decode(this.bytesOf(token), { stream: true });
  }

  /** Returns the text that was held back: U+FFFD for an incomplete character. */
  end(): string {
    return this.text.decode();
  }
}

/** @internal A tokenizer that prints its name and sizes. */
export abstract class PrintedTokenizer {
  abstract readonly name: string;
  abstract readonly vocabularySize: number;
  abstract readonly endOfText: number | null;
  abstract readonly separator: number;

  /** Returns a text such as `Gpt2Tokenizer "gpt2": 50,257 tokens, end of text 50256, separator 50256`. */
  toString(): string {
    const { name, vocabularySize, endOfText, separator } = this;
    const end = endOfText === null ? "no end of text" : `end of text ${endOfText}`;
    const tokens = printedCount(vocabularySize, "token");
    return `${this.constructor.name} "${name}": ${tokens}, ${end}, separator ${separator}`;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

/** @internal Decodes a whole sequence of tokens. @throws {ArgumentError} if it is not iterable. */
export function decodeAll(tokenizer: string, stream: TextStream, tokens: Iterable<number>): string {
  const isSequence = typeof tokens === "object" && tokens !== null;
  if (!isSequence || !reading(tokenizer, () => Symbol.iterator in tokens))
    throw new ArgumentError(tokenizer, "invalidOperand", `expected a list of tokens, got ${describeValue(tokens)}`);
  let text = "";
  reading(tokenizer, () => {
    for (const token of tokens) text += stream.push(token);
  });
  return text + stream.end();
}

/** @internal Checks a text. @throws {ArgumentError} if the text is not a string. */
export function checkText(tokenizer: string, text: unknown): string {
  if (typeof text === "string") return text;
  throw new ArgumentError(tokenizer, "invalidOperand", `expected text to be a string, got ${describeValue(text)}`);
}
