/** A model that a server uses. */
import type { LanguageModel } from "../nn/models/language_model.ts";
import type { ChatProcessor } from "../nn/models/vision_language/chat_processor.ts";
import type { ChatTemplate } from "../text/chat_template.ts";

/** The methods of a tokenizer that a server needs. The tokenizers of `data` and `text` have them. */
export interface ServedTokenizer {
  readonly endOfText: number | null;
  encode(text: string, options?: { readonly addSpecialTokens?: boolean }): Iterable<number>;
  decoder(options?: { readonly isStart?: boolean }): { push(token: number): string; end(): string };
  bytesOf(token: number): Uint8Array;
  readonly vocabularySize: number;
  isSpecial?(token: number): boolean;
}

export interface ServedModel {
  /** The model's name in the API. */
  readonly name: string;
  readonly model: LanguageModel;
  readonly tokenizer: ServedTokenizer;
  /** The chat template. Without it, chats are not supported. */
  readonly template?: ChatTemplate | undefined;
  /** Converts chats with images to prompts. Without it, images are not supported. */
  readonly processor?: Pick<ChatProcessor, "prompt" | "render"> | undefined;
  /** Sampling defaults for parameters that a request omits. */
  readonly defaults?: SamplingDefaults | undefined;
  /** Tokens that end an answer, in addition to the tokenizer's `endOfText`. */
  readonly stopTokens?: readonly number[] | undefined;
}

export interface SamplingDefaults {
  readonly temperature?: number | undefined;
  readonly topK?: number | undefined;
  readonly topP?: number | undefined;
  readonly minP?: number | undefined;
  readonly repetitionPenalty?: number | undefined;
}

export const stopTokensOf = ({ tokenizer, stopTokens = [] }: ServedModel): ReadonlySet<number> =>
  new Set([...stopTokens, ...(typeof tokenizer.endOfText === "number" ? [tokenizer.endOfText] : [])]);
