/**
 * The schemas of OpenAI's API, as far as a local model can answer requests. Fields of `ignored` have no effect;
 * unsupported and unknown fields are rejected.
 */
import type { infer as Infer, ZodType } from "zod";
import { isSafeInteger } from "../core/values.ts";
import type { RequestPart } from "./images.ts";
import { z } from "./zod.ts";

export const optional = <T extends ZodType>(type: T) => type.nullish().transform((value) => value ?? undefined);

/** The maximum number of content parts in a message, and of tool calls. */
export const MOST_PARTS = 4096;

/** The content of a message: a string or a list of texts and images. */
const textPart = z.object({ type: z.enum(["text", "refusal"]), text: z.string().optional() });
const imagePart = z.object({ type: z.literal("image_url"), image_url: z.object({ url: z.string() }) });
const content = z.union([
  z.string(),
  z
    .array(z.discriminatedUnion("type", [textPart, imagePart]))
    .max(MOST_PARTS)
    .transform((parts) =>
      contentOf(parts.map((part) => (part.type === "image_url" ? { type: part.type, url: part.image_url.url } : part))),
    ),
]);

/** Returns parts as one text, or as a list if there are images. */
export function contentOf(
  parts: readonly ({ readonly type: string; readonly text?: string | undefined } | RequestPart)[],
): string | RequestPart[] {
  const written = parts.map((part): RequestPart => ("url" in part ? part : { type: "text", text: part.text ?? "" }));
  const isText = (part: RequestPart) => part.type === "text";
  return written.every(isText) ? written.map((part) => ("text" in part ? part.text : "")).join("") : written;
}

const toolCall = z.object({
  id: z.string(),
  type: z.literal("function"),
  function: z.object({ name: z.string(), arguments: z.string() }),
});

const message = z.object({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: optional(content),
  name: optional(z.string()),
  tool_calls: optional(z.array(toolCall).max(MOST_PARTS)),
  tool_call_id: optional(z.string()),
});

// Plain loops check long lists, because zod takes up to 0.3 s for 200,000 tokens and blocks all other requests.

const isToken = (value: unknown): boolean => isSafeInteger(value) && value >= 0;
const isTokens = (value: unknown): boolean => Array.isArray(value) && value.length > 0 && value.every(isToken);
const isText = (value: unknown): boolean => typeof value === "string";
const isPrompts = (value: unknown): boolean =>
  isText(value) ||
  (Array.isArray(value) && value.length > 0 && [isToken, isText, isTokens].some((is) => value.every(is)));
const prompts = z.custom<string | number[] | string[] | number[][]>(
  isPrompts,
  "expected a text, a non-empty list of tokens, or a list of either",
);

const isBias = ([token, bias]: [string, unknown]): boolean =>
  /^\d{1,9}$/.test(token) && typeof bias === "number" && bias >= -100 && bias <= 100;
const biases = z.custom<Record<string, number>>(
  (value) =>
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.entries(value).every(isBias),
  "expected an object that maps tokens to biases from -100 to 100",
);

/** Accepts any value, for fields that do not change the text: those about OpenAI's service, and hints. */
export const anything = z.unknown().optional();
export const ignored = {
  user: anything,
  metadata: anything,
  store: anything,
  service_tier: anything,
  safety_identifier: anything,
  prompt_cache_key: anything,
  prompt_cache_retention: anything,
  prompt_cache_options: anything,
  prediction: anything,
};

/** Parameters of both kinds of completions. */
const shared = {
  model: z.string(),
  stream: optional(z.boolean()),
  stream_options: optional(
    z.strictObject({ include_usage: optional(z.boolean()), include_obfuscation: optional(z.boolean()) }),
  ),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().gt(0).max(1)),
  top_k: optional(z.int().min(1)),
  min_p: optional(z.number().min(0).max(1)),
  repetition_penalty: optional(z.number().gt(0).max(100)),
  presence_penalty: optional(z.number().min(-2).max(2)),
  frequency_penalty: optional(z.number().min(-2).max(2)),
  logit_bias: optional(biases),
  n: optional(z.int().min(1)),
  seed: optional(z.int()),
  stop: optional(z.union([z.string().min(1), z.array(z.string().min(1)).max(16)])),
};

const responseFormat = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json_object") }),
  z.object({
    type: z.literal("json_schema"),
    json_schema: z.strictObject({
      name: z.string().optional(),
      description: optional(z.string()),
      schema: z.record(z.string(), z.unknown()),
      strict: optional(z.boolean()), // always strict
    }),
  }),
]);

export const tool = z.object({
  type: z.literal("function"),
  function: z.strictObject({
    name: z.string().regex(/^[\w.-]{1,64}$/, "expected 1 to 64 letters, digits, _, - and ."),
    description: optional(z.string()),
    parameters: optional(z.record(z.string(), z.unknown())),
    strict: optional(z.boolean()),
  }),
});

const namedFunction = z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) });
const allowedTools = z.object({
  type: z.literal("allowed_tools"),
  allowed_tools: z.object({ mode: z.enum(["auto", "required"]), tools: z.array(namedFunction).min(1).max(128) }),
});
const toolChoice = z.union(
  [z.enum(["none", "auto", "required"]), namedFunction, allowedTools],
  'expected "none", "auto", "required", a function or allowed_tools',
);

export const chatRequest = z.strictObject({
  ...shared,
  ...ignored,
  modalities: optional(z.array(z.literal("text", 'expected ["text"]')).max(1)),
  messages: z.array(message).min(1).max(4096),
  max_tokens: optional(z.int().min(1)),
  max_completion_tokens: optional(z.int().min(1)),
  logprobs: optional(z.boolean()),
  top_logprobs: optional(z.int().min(0).max(20)),
  response_format: optional(responseFormat),
  tools: optional(z.array(tool).max(128)),
  tool_choice: optional(toolChoice),
  parallel_tool_calls: optional(z.boolean()),
});

export const completionRequest = z.strictObject({
  ...shared,
  ...ignored,
  prompt: prompts,
  max_tokens: optional(z.int().min(0)),
  logprobs: optional(z.int().min(0).max(20)),
  echo: optional(z.boolean()),
  suffix: optional(z.literal("", "expected no suffix: the model only continues a text")),
  best_of: optional(z.literal(1, "expected best_of to be 1")),
});

export const embeddingRequest = z.strictObject({
  user: anything,
  model: z.string(),
  input: prompts,
  encoding_format: optional(z.enum(["float", "base64"])),
  dimensions: optional(z.int().min(1)),
  prompt_name: optional(z.string()),
});

const document = z.union([z.string(), z.strictObject({ text: z.string() })]);

/** A rerank request, as Jina's and Cohere's clients send it. */
export const rerankRequest = z.strictObject({
  user: anything,
  model: z.string(),
  query: z.string(),
  documents: z.array(document).min(1).max(4096),
  top_n: optional(z.int().min(1)),
  return_documents: optional(z.boolean()),
});

export type ChatRequest = Infer<typeof chatRequest>;
export type CompletionRequest = Infer<typeof completionRequest>;
export type EmbeddingRequest = Infer<typeof embeddingRequest>;
export type RerankRequest = Infer<typeof rerankRequest>;
/** Parameters that both kinds of completions share. */
export type Shared = Pick<ChatRequest & CompletionRequest, keyof typeof shared>;
