/** `POST /v1/chat/completions` */

import type { Format } from "./answer.ts";
import { ApiError } from "./api_error.ts";
import type { Part } from "./choice.ts";
import { chatChances } from "./log_probabilities.ts";
import type { ChatRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";
import type { Order } from "./work.ts";

/** @throws {ApiError} 400 for a model without a template, and a chat that it refuses. */
export function chatOrder(served: ServedModel, request: ChatRequest): Order {
  const { max_completion_tokens, max_tokens, logprobs, top_logprobs } = request;
  if (top_logprobs !== undefined && !logprobs)
    throw new ApiError(400, "expected logprobs: true beside top_logprobs", null, "top_logprobs");
  return {
    shared: request,
    prompts: [[...served.tokenizer.encode(chatText(served, request), { addSpecialTokens: false })]],
    maxTokens: max_completion_tokens ?? max_tokens,
    logProbabilities: logprobs ? (top_logprobs ?? 0) : undefined,
  };
}

function chatText({ template, name }: ServedModel, { messages, tools, tool_choice }: ChatRequest): string {
  if (!template)
    throw new ApiError(400, `${name} has no chat template; use /v1/completions`, "no_chat_template", "messages");
  if (tools?.length && !template.takesTools)
    throw new ApiError(400, `the chat template of ${name} has no place for tools`, "no_tools", "tools");
  const used = tool_choice === "none" ? undefined : tools;
  return template.render(
    messages.map((message) => ({ ...message, role: message.role === "developer" ? "system" : message.role })),
    used?.length ? { tools: used } : {},
  );
}

/** How answers are written. */
export function chatFormat({ name, tokenizer }: ServedModel, withChances: boolean): Format {
  const common = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1000), model: name };
  const chunk = (choices: readonly object[], more: object = {}) => ({
    ...common,
    object: "chat.completion.chunk",
    choices,
    ...more,
  });
  const chances = (parts: readonly Part[]) =>
    withChances
      ? {
          logprobs: chatChances(
            tokenizer,
            parts.flatMap(({ tokens }) => tokens),
          ),
        }
      : { logprobs: null };
  return {
    head: (index) => chunk([{ index, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }]),
    part: (part) => {
      const delta = part.text === "" ? {} : { content: part.text };
      return chunk([{ index: part.choice, delta, ...chances([part]), finish_reason: part.finishReason ?? null }]);
    },
    usage: (usage) => chunk([], { usage }),
    whole: (choices, usage) => ({
      ...common,
      object: "chat.completion",
      choices: choices.map((parts, index) => ({
        index,
        message: { role: "assistant", content: parts.map(({ text }) => text).join(""), refusal: null },
        ...chances(parts),
        finish_reason: parts.at(-1)?.finishReason ?? "stop",
      })),
      usage,
    }),
  };
}
