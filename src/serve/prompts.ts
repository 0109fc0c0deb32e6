/** Prompts as clients may write them: a text, tokens, or a list of either. */
import type { CompletionRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";

export function promptsOf({ tokenizer }: ServedModel, prompt: CompletionRequest["prompt"]): number[][] {
  if (typeof prompt === "string") return [[...tokenizer.encode(prompt)]];
  if (typeof prompt[0] === "number") return [prompt as number[]];
  return (prompt as readonly (string | number[])[]).map((own) =>
    typeof own === "string" ? [...tokenizer.encode(own)] : own,
  );
}
