import { either, listOf, text } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters } from "../../core/parameters.ts";
import type { LanguageModel } from "../models/language_model.ts";
import type { ImagePrompt } from "../models/vision_language/images.ts";
import { aModel, promptOrImages, type Tokens } from "../tasks/prompt.ts";
import { generate } from "./generate.ts";
import { type GenerateOptions, generateParameters } from "./options.ts";
import { StopFinder } from "./stop.ts";

/** The part of a tokenizer that {@link generateText} requires. The tokenizers of `data` implement it. */
export interface TextCodec {
  /** The end-of-text token, if there is one. */
  readonly endOfText?: number | null;
  /** Encodes a text. */
  encode(text: string): ArrayLike<number>;
  /** Returns a streaming decoder. It holds back incomplete characters until they are complete. */
  decoder(): { push(token: number): string; end(): string };
}

/** Options of {@link generateText}. */
export interface GenerateTextOptions extends GenerateOptions {
  /** Texts that end generation. The result ends before the first of them. Default: none. */
  readonly stop?: string | readonly string[] | undefined;
}

/**
 * Generates the text that follows a prompt, and yields it in pieces. A character whose bytes span several tokens is
 * yielded once it is complete.
 *
 * @param prompt a text, or its tokens, or a prompt with images; at least one token. It is not part of the yielded text
 * @param options those of {@link generate}, and `stop`; the default of `stopTokens` is the tokenizer's `endOfText`
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
  prompt: string | Tokens | ImagePrompt,
  options?: GenerateTextOptions,
): AsyncGenerator<string, void, undefined>;
export function generateText(...values: unknown[]): AsyncGenerator<string, void, undefined> {
  const { model, tokenizer, prompt, stop = [], ...options } = readCall(values);
  const stopTokens = options.stopTokens ?? [tokenizer.endOfText ?? []].flat();
  const tokens = typeof prompt === "string" ? tokenizer.encode(prompt) : (prompt as Tokens | ImagePrompt);
  return pieces(generate(model, tokens, { ...options, stopTokens }), tokenizer.decoder(), new StopFinder(stop));
}

const codec: Kind<TextCodec> = {
  expected: "a tokenizer",
  parse(value) {
    const given = value as Partial<TextCodec> | null | undefined;
    return typeof given?.encode === "function" && typeof given.decoder === "function"
      ? (value as TextCodec)
      : undefined;
  },
};

/** One or several nonempty texts. */
const stops: Kind<readonly string[]> = {
  expected: "a nonempty text, or a list of nonempty texts",
  parse(value, operation, name) {
    const texts = typeof value === "string" ? [value] : listOf(text, "a list of texts").parse(value, operation, name);
    return texts?.every((stop) => stop !== "") ? texts : undefined;
  },
};

const readCall = parameters("generateText", {
  model: operand(aModel),
  tokenizer: operand(codec),
  prompt: operand(either(text, promptOrImages)),
  ...generateParameters,
  stop: named(stops),
});

async function* pieces(
  tokens: AsyncIterable<number>,
  stream: ReturnType<TextCodec["decoder"]>,
  finder: StopFinder,
): AsyncGenerator<string, void, undefined> {
  for await (const token of tokens) {
    const { text, found } = finder.push(stream.push(token));
    if (text) yield text;
    if (found) return;
  }
  const { text, found } = finder.push(stream.end());
  const tail = found ? text : text + finder.end();
  if (tail) yield tail;
}
