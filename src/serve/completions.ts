/** `POST /v1/completions` */

import type { GeneratedToken } from "../nn/generation/sequence.ts";
import type { Format } from "./answer.ts";
import type { Part } from "./choice.ts";
import { completionChances } from "./log_probabilities.ts";
import { promptChances } from "./prompt_chances.ts";
import { listOf, promptsOf } from "./prompts.ts";
import type { CompletionRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";
import { checkChoices, checkOrder, type Engine, type Order } from "./work.ts";

/** OpenAI's default for this endpoint. */
const MAX_TOKENS = 16;

/** A request to the endpoint for plain text. */
export interface CompletionOrder extends Order {
  /** The tokens of each prompt with their probabilities, if the answer echoes the prompt. */
  readonly chances: readonly (readonly GeneratedToken[])[];
}

/** Prepares a completion. @throws {ApiError} 400 */
export async function completionOrder(
  { served, limits, batcher }: Engine,
  request: CompletionRequest,
  signal: AbortSignal,
): Promise<CompletionOrder> {
  const { prompt, max_tokens, logprobs, echo } = request;
  checkChoices(limits, request, listOf(prompt).length);
  const prompts = promptsOf(served, prompt);
  const order = { shared: request, prompts, maxTokens: max_tokens ?? MAX_TOKENS, logProbabilities: logprobs };
  if (!echo || logprobs === undefined) return { ...order, chances: [] };
  checkOrder({ served, limits, batcher }, order);
  const chances: GeneratedToken[][] = [];
  for (const prompt of prompts) chances.push(await promptChances(served.model, prompt, logprobs, signal));
  return { ...order, chances };
}

/** Returns the format of answers. */
export function completionFormat(
  { name, tokenizer }: ServedModel,
  request: CompletionRequest,
  order: CompletionOrder,
): Format {
  const id = `cmpl-${crypto.randomUUID()}`;
  const common = { id, object: "text_completion", created: Math.floor(Date.now() / 1000), model: name };
  const promptOf = (choice: number): number => Math.floor(choice / (request.n ?? 1));
  const echoed = (choice: number): string => {
    if (!request.echo) return "";
    const decoder = tokenizer.decoder();
    return order.prompts[promptOf(choice)].map((token) => decoder.push(token)).join("") + decoder.end();
  };
  const written = new Map<number, number>();
  const choiceOf = (index: number, text: string, { tokens, finishReason }: Omit<Part, "choice" | "text">) => {
    const start = written.get(index) ?? 0;
    const logprobs = request.logprobs === undefined ? null : completionChances(tokenizer, tokens, start);
    written.set(index, start + (logprobs?.tokens.join("").length ?? 0));
    return { index, text, logprobs, finish_reason: finishReason ?? null };
  };
  const prefix = (index: number) => ({ tokens: order.chances[promptOf(index)] ?? [] });
  return {
    head: (index) =>
      request.echo ? { ...common, choices: [choiceOf(index, echoed(index), prefix(index))] } : undefined,
    part: (part) => ({ ...common, choices: [choiceOf(part.choice, part.text, part)] }),
    usage: (usage) => ({ ...common, choices: [], usage }),
    whole: (choices, usage) => ({
      ...common,
      choices: choices.map((parts, index) => {
        const tokens = [...prefix(index).tokens, ...parts.flatMap((part) => part.tokens)];
        const text = echoed(index) + parts.map((part) => part.text).join("");
        return choiceOf(index, text, { ...parts.at(-1), tokens });
      }),
      usage,
    }),
  };
}
