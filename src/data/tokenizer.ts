/** Numbers of tokens in order. */
export type Tokens = Iterable<number> & ArrayLike<number>;

/** Text as numbers, and back. `decode(encode(text))` is the text. */
export interface Tokenizer {
  /** Stands for all that `encode` depends on: two tokenizers of one name give the same numbers. */
  readonly name: string;
  /** Numbers are below it. */
  readonly vocabularySize: number;
  /** The number that ends a text; null where there is none. No text encodes to it. */
  readonly endOfText: number | null;
  /** What stands between two documents of a data set. */
  readonly separator: number;
  encode(text: string): Tokens;
  /** The text of some tokens. Bytes that are no UTF-8 become U+FFFD. @throws {ArgumentError} for a number that is no token. */
  decode(tokens: Iterable<number>): string;
  /** The bytes that a token stands for. @throws {ArgumentError} for a number that is no token. */
  bytesOf(token: number): Uint8Array;
  /** For tokens that come one after the other. */
  decoder(): TextStream;
}

/**
 * Makes text of tokens as they come. A character whose bytes are spread over several tokens is held back until it is whole.
 *
 * @example
 * const stream = tokenizer.decoder();
 * for await (const token of generate(model, prompt)) process.stdout.write(stream.push(token));
 * process.stdout.write(stream.end());
 */
export class TextStream {
  private readonly text = new TextDecoder("utf-8", { ignoreBOM: true });

  /** @param bytesOf of the tokenizer */
  constructor(private readonly bytesOf: (token: number) => Uint8Array) {}

  /** What is certain after this token; empty while a character is incomplete. */
  push(token: number): string {
    return this.text.decode(this.bytesOf(token), { stream: true });
  }

  /** What was held back: U+FFFD, where a character stayed incomplete. */
  end(): string {
    return this.text.decode();
  }
}

/** @internal The text of tokens all at once. */
export function decodeAll(stream: TextStream, tokens: Iterable<number>): string {
  let text = "";
  for (const token of tokens) text += stream.push(token);
  return text + stream.end();
}
