/** `POST /v1/embeddings` and `POST /v1/rerank` of encoders. */
import { embed } from "../nn/generation/embed.ts";
import type { Encoder } from "../nn/models/encoder/encoder.ts";
import { rerank } from "../nn/tasks/rerank.ts";
import { encodeAtMost } from "../text/limited_encode.ts";
import type { PretrainedTokenizer } from "../text/pretrained_tokenizer.ts";
import { ApiError } from "./api_error.ts";
import { written } from "./embeddings.ts";
import type { Limits } from "./limits.ts";
import { listOf, tooMany } from "./prompts.ts";
import type { EmbeddingRequest, RerankRequest } from "./schemas.ts";

/** An encoder that a server uses. */
export interface ServedEncoder {
  /** The model's name in the API. */
  readonly name: string;
  readonly encoder: Encoder;
  readonly tokenizer: PretrainedTokenizer;
}

/** Computes the embeddings of a request. @throws {ApiError} 400 */
export async function encoderEmbeddings(
  { name, encoder, tokenizer }: ServedEncoder,
  limits: Limits,
  { input, encoding_format, dimensions, prompt_name }: EmbeddingRequest,
): Promise<Response> {
  const items = listOf(input);
  const count = countOf(tokenizer, limits, items, "input");
  checkTokens(encoder, items);
  checkPrompt(encoder, prompt_name);
  const options = {
    truncateDim: dimensions,
    promptName: prompt_name,
    normalize: dimensions === undefined ? undefined : true,
  };
  checkDimensions(encoder, dimensions);
  using vectors = await embed(encoder, items, options);
  const values = await vectors.data();
  const width = vectors.shape[1];
  const data = items.map((_, index) => ({
    object: "embedding",
    index,
    embedding: written(values.slice(index * width, (index + 1) * width), encoding_format),
  }));
  const usage = { prompt_tokens: count, total_tokens: count };
  return Response.json({ object: "list", data, model: name, usage });
}

/**
 * Counts the tokens of all items. Stops before it encodes more text than the limit allows.
 *
 * @throws {ApiError} 400 for too many tokens
 */
function countOf(
  tokenizer: PretrainedTokenizer,
  { tokens: most }: Limits,
  items: readonly (string | number[])[],
  param: string,
  more = 0,
): number {
  let count = 0;
  for (const item of items) {
    const tokens = typeof item === "string" ? encodeAtMost(tokenizer, item, most - count) : item;
    count += more + (tokens?.length ?? Infinity);
    if (count > most) throw tooMany(most, param);
  }
  return count;
}

function checkTokens({ contextLength, vocabularySize }: Encoder, items: readonly (string | number[])[]): void {
  const fail = (message: string, code: string | null = null) => new ApiError(400, message, code, "input");
  for (const item of items) {
    if (typeof item === "string") continue;
    if (item.length > contextLength)
      throw fail(`expected at most ${contextLength} tokens, got ${item.length}`, "context_length_exceeded");
    const wrong = item.find((token) => token >= vocabularySize);
    if (wrong !== undefined) throw fail(`expected tokens from 0 to ${vocabularySize - 1}, got ${wrong}`);
  }
}

function checkPrompt({ sentence }: Encoder, name: string | undefined): void {
  const prompts = sentence?.description.prompts ?? {};
  if (name === undefined || Object.hasOwn(prompts, name)) return;
  const known = Object.keys(prompts).join(", ") || "none";
  const got = JSON.stringify(name.slice(0, 200));
  throw new ApiError(400, `expected a prompt of the model (${known}), got ${got}`, null, "prompt_name");
}

function checkDimensions({ sentence, description }: Encoder, dimensions: number | undefined): void {
  const width = sentence?.widthOf(description.width) ?? description.width;
  if (dimensions !== undefined && dimensions > width)
    throw new ApiError(400, `expected at most ${width} dimensions, got ${dimensions}`, null, "dimensions");
}

/** Ranks the documents of a request, in the format of Jina's and Cohere's APIs. @throws {ApiError} 400 */
export async function rerankings(
  { name, encoder, tokenizer }: ServedEncoder,
  limits: Limits,
  { query, documents, top_n, return_documents }: RerankRequest,
): Promise<Response> {
  if (encoder.task !== "classify" || encoder.description.head?.outputs !== 1)
    throw new ApiError(400, `the model ${name} is not a cross-encoder, so it can't rank documents`, null, "model");
  const texts = documents.map((document) => (typeof document === "string" ? document : document.text));
  const queryLength = countOf(tokenizer, limits, [query], "query");
  const count = countOf(tokenizer, limits, texts, "documents", queryLength);
  const ranked = await rerank(encoder, query, texts, { topK: top_n });
  const results = ranked.map(({ index, score }) => ({
    index,
    relevance_score: score,
    ...(return_documents && { document: { text: texts[index] } }),
  }));
  const usage = { prompt_tokens: count, total_tokens: count };
  return Response.json({ id: `rerank-${crypto.randomUUID()}`, object: "list", model: name, results, usage, meta: {} });
}
