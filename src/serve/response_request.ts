/** Requests of OpenAI's Responses API, as far as a local model can answer them, and their conversion to chats. */
import type { infer as Infer } from "zod";
import { ApiError, apiErrorOf } from "./api_error.ts";
import {
  anything,
  type ChatRequest,
  chatRequest,
  tool as chatTool,
  contentOf,
  ignored,
  MOST_PARTS,
  optional,
} from "./schemas.ts";
import { z } from "./zod.ts";

const text = z.object({ type: z.enum(["input_text", "output_text", "text", "refusal"]), text: z.string().optional() });
const image = z.object({ type: z.literal("input_image"), image_url: z.string() });
const texts = z.union([
  z.string(),
  z
    .array(text)
    .max(MOST_PARTS)
    .transform((parts) => parts.map((part) => part.text ?? "").join("")),
]);
const content = z.union([
  z.string(),
  z
    .array(z.discriminatedUnion("type", [text, image]))
    .max(MOST_PARTS)
    .transform((parts) =>
      contentOf(parts.map((part) => (part.type === "input_image" ? { type: "image_url", url: part.image_url } : part))),
    ),
]);

const message = z.object({
  type: z.literal("message").optional(),
  role: z.enum(["system", "developer", "user", "assistant"]),
  content,
});
const call = z.object({
  type: z.literal("function_call"),
  call_id: z.string(),
  name: z.string(),
  arguments: z.string(),
});
const output = z.object({ type: z.literal("function_call_output"), call_id: z.string(), output: texts });
const item = z.union(
  [call, output, message],
  "expected a message of texts and images, a function_call or a function_call_output",
);

const format = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json_object") }),
  z.strictObject({
    type: z.literal("json_schema"),
    name: z.string().optional(),
    description: optional(z.string()),
    schema: z.record(z.string(), z.unknown()),
    strict: optional(z.boolean()), // without effect: schemas are always strict
  }),
]);

const { name, description, parameters, strict } = chatTool.shape.function.shape;
const tool = z.strictObject({ type: z.literal("function"), name, description, parameters, strict });
const named = z.object({ type: z.literal("function"), name: z.string() });
const toolChoice = z.union(
  [
    z.enum(["none", "auto", "required"]),
    named,
    z.object({
      type: z.literal("allowed_tools"),
      mode: z.enum(["auto", "required"]),
      tools: z.array(named).min(1).max(128),
    }),
  ],
  'expected "none", "auto", "required", a function or allowed_tools',
);

const { temperature, top_p, top_logprobs, parallel_tool_calls, stream } = chatRequest.shape;
const includable = z.enum(["message.output_text.logprobs", "reasoning.encrypted_content"]);

export const responseRequest = z.strictObject({
  model: z.string(),
  temperature,
  top_p,
  top_logprobs,
  parallel_tool_calls,
  stream,
  user: anything,
  metadata: anything,
  store: anything,
  service_tier: anything,
  safety_identifier: anything,
  prompt_cache_key: ignored.prompt_cache_key,
  prompt_cache_retention: ignored.prompt_cache_retention,
  prompt_cache_options: ignored.prompt_cache_options,
  input: z.union([z.string(), z.array(item).min(1).max(4096)]),
  instructions: optional(z.string()),
  max_output_tokens: optional(z.int().min(1)),
  include: optional(z.array(includable).max(16)),
  truncation: optional(z.literal("disabled", 'expected "disabled": inputs are not shortened')),
  previous_response_id: optional(z.never("expected the whole chat as input: no response is kept")),
  background: optional(z.literal(false, "expected false: no response is kept")),
  stream_options: optional(z.strictObject({ include_obfuscation: optional(z.boolean()) })),
  text: optional(z.strictObject({ format: optional(format) })),
  tools: optional(z.array(tool).max(128)),
  tool_choice: optional(toolChoice),
});

export type ResponseRequest = Infer<typeof responseRequest>;

/** Whether log probabilities are requested. */
export const hasChances = ({ include, top_logprobs }: ResponseRequest): boolean =>
  top_logprobs !== undefined || (include?.includes("message.output_text.logprobs") ?? false);

/** Converts the request to a chat. */
export function chatOf(request: ResponseRequest): ChatRequest {
  const { model, temperature, top_p, stream, parallel_tool_calls, max_output_tokens, top_logprobs } = request;
  return {
    model,
    temperature,
    top_p,
    stream,
    parallel_tool_calls,
    top_logprobs,
    ...unused,
    max_tokens: max_output_tokens,
    logprobs: hasChances(request),
    messages: messagesOf(request),
    response_format: formatOf(request.text?.format),
    tools: request.tools?.map(({ type, ...definition }) => ({ type, function: definition })),
    tool_choice: choiceOf(request.tool_choice),
  };
}

/** Fields of chats that this API lacks. */
const unused = {
  stream_options: undefined,
  top_k: undefined,
  min_p: undefined,
  repetition_penalty: undefined,
  presence_penalty: undefined,
  frequency_penalty: undefined,
  logit_bias: undefined,
  n: undefined,
  seed: undefined,
  stop: undefined,
  modalities: undefined,
  max_completion_tokens: undefined,
};

type Message = ChatRequest["messages"][number];

function messagesOf({ instructions, input }: ResponseRequest): Message[] {
  const absent = { name: undefined, tool_calls: undefined, tool_call_id: undefined };
  const messages: Message[] = instructions === undefined ? [] : [{ ...absent, role: "system", content: instructions }];
  if (typeof input === "string") return [...messages, { ...absent, role: "user", content: input }];
  for (const each of input)
    if (!("call_id" in each)) messages.push({ ...absent, role: each.role, content: each.content });
    else if (each.type === "function_call_output")
      messages.push({ ...absent, role: "tool", tool_call_id: each.call_id, content: each.output });
    else {
      // Calls belong to the preceding assistant message, which may contain text.
      const last = messages.at(-1)?.role === "assistant" ? messages.pop() : undefined;
      const { call_id: id, name, arguments: given } = each;
      const tool_calls = [
        ...(last?.tool_calls ?? []),
        { id, type: "function" as const, function: { name, arguments: given } },
      ];
      messages.push({ ...absent, role: "assistant", content: last?.content, tool_calls });
    }
  return messages;
}

function formatOf(chosen: Infer<typeof format> | undefined): ChatRequest["response_format"] {
  if (chosen?.type !== "json_schema") return chosen;
  const { type, ...json_schema } = chosen;
  return { type, json_schema };
}

function choiceOf(choice: ResponseRequest["tool_choice"]): ChatRequest["tool_choice"] {
  const chosen = ({ type, name }: Infer<typeof named>) => ({ type, function: { name } });
  if (typeof choice !== "object") return choice;
  if (choice.type === "function") return chosen(choice);
  return { type: choice.type, allowed_tools: { mode: choice.mode, tools: choice.tools.map(chosen) } };
}

/** This API's names for parameters of chats. */
const params: Readonly<Record<string, string>> = { messages: "input", response_format: "text.format" };

/** Converts an error about a chat to one about the original request. */
export function ofResponses(error: unknown): unknown {
  const { status, message, code, param, headers } = apiErrorOf(error);
  const renamed = param === null ? undefined : params[param];
  return renamed === undefined ? error : new ApiError(status, message, code, renamed, headers);
}
