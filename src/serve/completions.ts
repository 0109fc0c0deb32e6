/** `POST /v1/completions` */

import type { Format } from "./answer.ts";
import { ApiError } from "./api_error.ts";
import type { Part } from "./choice.ts";
import { completionChances } from "./log_probabilities.ts";
import { promptsOf } from "./prompts.ts";
import type { CompletionRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";
import type { Order } from "./work.ts";

/** OpenAI's default of this endpoint. */
const MAX_TOKENS = 16;

/** @throws {ApiError} 400 */
export function completionOrder(served: ServedModel, request: CompletionRequest): Order {
  const { prompt, max_tokens, logprobs, echo } = request;
  if (echo && logprobs !== undefined)
    throw new ApiError(400, "expected echo without logprobs: those of prompts are not computed", null, "logprobs");
  return {
    shared: request,
    prompts: promptsOf(served, prompt),
    maxTokens: max_tokens ?? MAX_TOKENS,
    logProbabilities: logprobs,
  };
}

/** How answers are written. */
export function completionFormat({ name, tokenizer }: ServedModel, request: CompletionRequest, order: Order): Format {
  const id = `cmpl-${crypto.randomUUID()}`;
  const common = { id, object: "text_completion", created: Math.floor(Date.now() / 1000), model: name };
  const copies = request.n ?? 1;
  const echoed = (choice: number): string => {
    if (!request.echo) return "";
    const decoder = tokenizer.decoder();
    const prompt = order.prompts[Math.floor(choice / copies)]!;
    return prompt.map((token) => decoder.push(token)).join("") + decoder.end();
  };
  const choiceOf = (index: number, text: string, parts: readonly Part[]) => ({
    index,
    text,
    logprobs: request.logprobs === undefined ? null : completionChances(tokenizer, parts),
    finish_reason: parts.at(-1)?.finishReason ?? null,
  });
  return {
    head: (index) => (request.echo ? { ...common, choices: [choiceOf(index, echoed(index), [])] } : undefined),
    part: (part) => ({ ...common, choices: [choiceOf(part.choice, part.text, [part])] }),
    usage: (usage) => ({ ...common, choices: [], usage }),
    whole: (choices, usage) => ({
      ...common,
      choices: choices.map((parts, index) =>
        choiceOf(index, echoed(index) + parts.map(({ text }) => text).join(""), parts),
      ),
      usage,
    }),
  };
}
