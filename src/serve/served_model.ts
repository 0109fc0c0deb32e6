/** What a server needs to know of a model. */
import type { LanguageModel } from "../nn/models/language_model.ts";
import type { ChatTemplate } from "../text/chat_template.ts";

/** What a server needs of a tokenizer. Those of `data` and `text` have it. */
export interface ServedTokenizer {
  readonly endOfText: number | null;
  encode(text: string, options?: { readonly addSpecialTokens?: boolean }): Iterable<number>;
  decoder(options?: { readonly isStart?: boolean }): { push(token: number): string; end(): string };
  bytesOf(token: number): Uint8Array;
  readonly vocabularySize: number;
  isSpecial?(token: number): boolean;
}

export interface ServedModel {
  /** What clients call it. */
  readonly name: string;
  readonly model: LanguageModel;
  readonly tokenizer: ServedTokenizer;
  /** How chats are written; without it there are no chats. */
  readonly template?: ChatTemplate | undefined;
  /** What holds where a request does not say otherwise. */
  readonly defaults?: SamplingDefaults | undefined;
  /** The tokens that end an answer, besides the tokenizer's `endOfText`. */
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
