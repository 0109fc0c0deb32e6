/** Reads the prompts of a request: a text, tokens, or a list of either. */
import { encodeAtMost } from "../text/limited_encode.ts";
import { ApiError } from "./api_error.ts";
import type { CompletionRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";

type Prompts = CompletionRequest["prompt"];

/** Returns a request's prompts as a list. */
export const listOf = (prompt: Prompts): readonly (string | number[])[] =>
  typeof prompt === "string" || typeof prompt[0] === "number"
    ? [prompt as string | number[]]
    : (prompt as readonly (string | number[])[]);

/**
 * Encodes prompts.
 *
 * @param param the name of the request's parameter, for errors
 * @param most the maximum total number of tokens; prompts after the one that exceeds it are not encoded
 * @throws {ApiError} 400 if a prompt exceeds the context, or the total exceeds `most`
 */
export function promptsOf(served: ServedModel, prompt: Prompts, param = "prompt", most = Infinity): number[][] {
  let count = 0;
  return listOf(prompt).map((item) => {
    const tokens = typeof item === "string" ? encoded(served, item, param) : item;
    count += tokens.length;
    if (count > most) throw tooMany(most, param);
    return tokens;
  });
}

/** Returns the error for prompts with more tokens than a request may contain. */
export const tooMany = (most: number, param: string): ApiError =>
  new ApiError(400, `expected at most ${most} tokens in total, got more`, null, param);

/** Encodes a text. A text that is far too long is rejected without encoding all of it. @throws {ApiError} 400 */
export function encoded(
  { tokenizer, model }: ServedModel,
  text: string,
  param: string,
  options?: { readonly addSpecialTokens?: boolean },
): number[] {
  const tokens = encodeAtMost(tokenizer, text, model.contextLength, options);
  if (tokens) return tokens;
  const message = `expected a prompt of fewer than ${model.contextLength} tokens, the model's context, got many more`;
  throw new ApiError(400, message, "context_length_exceeded", param);
}
