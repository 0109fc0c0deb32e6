import { text } from "../../core/kinds.ts";
import { type Kind, operand, parameters } from "../../core/parameters.ts";
import type { LanguageModel } from "../language_model.ts";
import { generate } from "./generate.ts";
import { type GenerateOptions, generateParameters } from "./options.ts";
import { aModel } from "./prompt.ts";

/** What {@link generateText} needs of a tokenizer. The tokenizers of `data` implement it. */
export interface TextCodec {
  /** The token that ends a text, if there is one. */
  readonly endOfText?: number | null;
  /** The tokens of a text. */
  encode(text: string): ArrayLike<number>;
  /** Decodes tokens one by one. Incomplete characters are held back until they are complete. */
  decoder(): { push(token: number): string; end(): string };
}

/**
 * Generates the text that follows a prompt, and yields it in pieces. A character whose bytes are spread over several
 * tokens is yielded when it is complete.
 *
 * @param prompt at least one token long; it is not part of what is yielded
 * @param options those of {@link generate}; the default of `stopTokens` is the tokenizer's `endOfText`
 *
 * @example
 * const options = { maxTokens: 200, temperature: 0.8 };
 * for await (const piece of generateText(model, tokenizer, "export ", options)) process.stdout.write(piece);
 *
 * @throws {ArgumentError} as {@link generate}.
 */
export function generateText(
  model: LanguageModel,
  tokenizer: TextCodec,
  prompt: string,
  options?: GenerateOptions,
): AsyncGenerator<string, void, undefined>;
export function generateText(...values: unknown[]): AsyncGenerator<string, void, undefined> {
  const { model, tokenizer, prompt, ...options } = readCall(values);
  const stopTokens = options.stopTokens ?? [tokenizer.endOfText ?? []].flat();
  return pieces(generate(model, tokenizer.encode(prompt), { ...options, stopTokens }), tokenizer.decoder());
}

const codec: Kind<TextCodec> = {
  expected: "a tokenizer",
  parse(value) {
    const own = value as Partial<TextCodec> | null | undefined;
    return typeof own?.encode === "function" && typeof own.decoder === "function" ? (value as TextCodec) : undefined;
  },
};

const readCall = parameters("generateText", {
  model: operand(aModel),
  tokenizer: operand(codec),
  prompt: operand(text),
  ...generateParameters,
});

async function* pieces(
  tokens: AsyncIterable<number>,
  stream: ReturnType<TextCodec["decoder"]>,
): AsyncGenerator<string, void, undefined> {
  for await (const token of tokens) {
    const piece = stream.push(token);
    if (piece) yield piece;
  }
  const tail = stream.end();
  if (tail) yield tail;
}
