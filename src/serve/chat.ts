/** `POST /v1/chat/completions` */

import type { Format } from "./answer.ts";
import { ApiError } from "./api_error.ts";
import type { Part } from "./choice.ts";
import { reportingImages, withImages } from "./images.ts";
import type { Limits } from "./limits.ts";
import { chatChances } from "./log_probabilities.ts";
import { encoded } from "./prompts.ts";
import { constraintOf } from "./response_format.ts";
import type { ChatRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";
import { CallSplitter } from "./tool_calls.ts";
import { callConstraint, callsOf } from "./tool_choice.ts";
import type { Order } from "./work.ts";

/** Prepares a chat completion. @throws {ApiError} 400 for a model without a template, or a chat that it rejects. */
export async function chatOrder(
  served: ServedModel,
  request: ChatRequest,
  limits: Limits,
  signal: AbortSignal,
): Promise<Order> {
  const { max_completion_tokens, max_tokens, logprobs, top_logprobs } = request;
  if (top_logprobs !== undefined && !logprobs)
    throw new ApiError(400, "top_logprobs requires logprobs: true", null, "top_logprobs");
  return {
    shared: request,
    ...(await promptOf(served, request, limits, signal)),
    maxTokens: max_completion_tokens ?? max_tokens,
    logProbabilities: logprobs ? (top_logprobs ?? 0) : undefined,
    constraint: (await callConstraint(served, request)) ?? (await constraintOf(served, request.response_format)),
  };
}

/** A chat with images is converted by the model's processor. */
async function promptOf(
  served: ServedModel,
  request: ChatRequest,
  limits: Limits,
  signal: AbortSignal,
): Promise<Pick<Order, "prompts" | "images">> {
  const { processor, name } = served;
  const { messages, options, template } = chatParts(served, request);
  const hasImages = messages.some(({ content }) => Array.isArray(content));
  if (hasImages && !processor)
    throw new ApiError(400, `the model ${name} does not read images`, "no_images", "messages");
  const read = hasImages ? await withImages(messages, limits, signal) : messages;
  // this also rejects texts that are far too long
  const text = (processor ?? template).render(read, options);
  const prompt = encoded(served, text, "messages", { addSpecialTokens: false });
  if (!hasImages) return { prompts: [prompt] };
  const { tokens, images } = await reportingImages(() => processor!.prompt(read, options));
  return { prompts: [tokens], images };
}

function chatParts({ template, name }: ServedModel, request: ChatRequest) {
  const { messages } = request;
  const { tools } = callsOf(request);
  if (!template)
    throw new ApiError(400, `${name} has no chat template; use /v1/completions`, "no_chat_template", "messages");
  if (tools.length > 0 && !template.takesTools)
    throw new ApiError(400, `the chat template of ${name} does not support tools`, "no_tools", "tools");
  return { template, messages: messages.map(messageOf), options: tools.length > 0 ? { tools } : {} };
}

/** Converts a message for templates, which expect arguments of calls as objects. */
function messageOf({ role, content, tool_calls, ...message }: ChatRequest["messages"][number]) {
  const calls = tool_calls?.map((call) => ({
    ...call,
    function: { ...call.function, arguments: argumentsOf(call.function.arguments) },
  }));
  return {
    ...message,
    role: role === "developer" ? "system" : role,
    content: content ?? "",
    ...(calls && { tool_calls: calls }),
  };
}

function argumentsOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(400, "expected arguments of tool calls in JSON", "invalid_value", "messages");
  }
}

/** Returns the format of answers. */
export function chatFormat({ name, tokenizer }: ServedModel, request: ChatRequest): Format {
  const common = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1000), model: name };
  const chunk = (choices: readonly object[], more: object = {}) => ({
    ...common,
    object: "chat.completion.chunk",
    choices,
    ...more,
  });
  const chances = (parts: readonly Part[]) => ({
    logprobs: request.logprobs
      ? chatChances(
          tokenizer,
          parts.flatMap(({ tokens }) => tokens),
        )
      : null,
  });
  const splitter = new CallSplitter(new Set(callsOf(request).tools.map((tool) => tool.function.name)));
  return {
    head: (index) => chunk([{ index, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }]),
    part(part) {
      const { text, calls, reason = null } = splitter.split(part);
      const tool_calls = calls.map((call, index) => ({ index, ...call }));
      const delta = { ...(text !== "" && { content: text }), ...(calls.length > 0 && { tool_calls }) };
      return chunk([{ index: part.choice, delta, ...chances([part]), finish_reason: reason }]);
    },
    usage: (usage) => chunk([], { usage }),
    whole: (choices, usage) => ({
      ...common,
      object: "chat.completion",
      choices: choices.map((parts, index) => {
        const found = parts.map((part) => splitter.split(part));
        const [content, calls] = [found.map(({ text }) => text).join(""), found.flatMap((item) => item.calls)];
        const called = calls.length > 0;
        const message = { role: "assistant", content: called && content === "" ? null : content, refusal: null };
        return {
          index,
          message: { ...message, ...(called && { tool_calls: calls }) },
          ...chances(parts),
          finish_reason: found.at(-1)?.reason ?? "stop",
        };
      }),
      usage,
    }),
  };
}
