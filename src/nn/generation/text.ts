import type { LanguageModel } from "../language_model.ts";
import { generate } from "./generate.ts";
import type { GenerateOptions } from "./options.ts";

/** What {@link generateText} asks of a tokenizer. */
export interface TextCodec {
  /** The tokens of a text. */
  encode(text: string): ArrayLike<number>;
  /** The text of tokens; U+FFFD stands for bytes that are no UTF-8. */
  decode(tokens: readonly number[]): string;
}

/**
 * The text that follows another, in pieces as they are computed. A character whose bytes are in several tokens comes as one piece, when
 * its last byte is there.
 *
 * @param prompt at least one token long; it is no part of what is given out
 * @param options as {@link generate}'s
 *
 * @example
 * for await (const piece of generateText(model, tokenizer, "export ", { maxTokens: 200, temperature: 0.8 })) process.stdout.write(piece);
 *
 * @throws {ArgumentError} as {@link generate}.
 */
export function generateText(
  model: LanguageModel,
  tokenizer: TextCodec,
  prompt: string,
  options: GenerateOptions = {},
): AsyncGenerator<string, void, undefined> {
  return pieces(generate(model, tokenizer.encode(prompt), options), tokenizer);
}

async function* pieces(tokens: AsyncIterable<number>, tokenizer: TextCodec): AsyncGenerator<string, void, undefined> {
  const stream = new TextStream(tokenizer);
  for await (const token of tokens) {
    const piece = stream.add(token);
    if (piece) yield piece;
  }
  const rest = stream.end();
  if (rest) yield rest;
}

const REPLACEMENT = "\uFFFD";

/** @internal Text of tokens one by one. What ends in the middle of a character decodes to U+FFFD there, and is held back. */
export class TextStream {
  private readonly tokenizer: TextCodec;
  private held: number[] = [];
  /** How much of the held tokens' text was given out. */
  private given = 0;

  constructor(tokenizer: TextCodec) {
    this.tokenizer = tokenizer;
  }

  /** The text that a token completes; may be empty. */
  add(token: number): string {
    this.held.push(token);
    const text = this.tokenizer.decode(this.held);
    const isComplete = !text.endsWith(REPLACEMENT);
    const piece = isComplete ? text.slice(this.given) : text.slice(this.given, -1);
    this.given += piece.length;
    if (isComplete) this.forget();
    return piece;
  }

  /** What is held back and will not be completed. */
  end(): string {
    const rest = this.tokenizer.decode(this.held).slice(this.given);
    this.forget();
    return rest;
  }

  private forget(): void {
    this.held = [];
    this.given = 0;
  }
}
