/** Reads the prompts of a request: a text, tokens, or a list of either. */
import { encodeAtMost } from "../text/limited_encode.ts";
import { ApiError } from "./api_error.ts";
import type { CompletionRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";

/**
 *  Returns the tokens of prompts. @param param the parameter's name @throws {ApiError} 400 if one exceeds the context
 */
export function promptsOf(served: ServedModel, prompt: CompletionRequest["prompt"], param = "prompt"): number[][] {
  if (typeof prompt === "string") return [encoded(served, prompt, param)];
  if (typeof prompt[0] === "number") return [prompt as number[]];
  return (prompt as readonly (string | number[])[]).map((tokens) =>
    typeof tokens === "string" ? encoded(served, tokens, param) : tokens,
  );
}

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
