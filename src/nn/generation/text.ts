import type { LanguageModel } from "../language_model.ts";
import { generate } from "./generate.ts";
import type { GenerateOptions } from "./options.ts";

/** What {@link generateText} asks of a tokenizer: those of `data` have it. */
export interface TextCodec {
  /** The token that ends a text; null or none where there is none. */
  readonly endOfText?: number | null;
  /** The tokens of a text. */
  encode(text: string): ArrayLike<number>;
  /** Makes text of tokens one by one. What ends in the middle of a character is held back until that is whole. */
  decoder(): { push(token: number): string; end(): string };
}

/**
 * The text that follows another, in pieces as they are computed. A character whose bytes are in several tokens comes as one piece, when
 * its last byte is there.
 *
 * @param prompt at least one token long; it is no part of what is given out
 * @param options as {@link generate}'s; `stopTokens` has the tokenizer's `endOfText` by default
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
  const stopTokens = options.stopTokens ?? [tokenizer.endOfText ?? []].flat();
  return pieces(generate(model, tokenizer.encode(prompt), { ...options, stopTokens }), tokenizer.decoder());
}

async function* pieces(
  tokens: AsyncIterable<number>,
  stream: ReturnType<TextCodec["decoder"]>,
): AsyncGenerator<string, void, undefined> {
  for await (const token of tokens) {
    const piece = stream.push(token);
    if (piece) yield piece;
  }
  const rest = stream.end();
  if (rest) yield rest;
}
