/** `POST /v1/embeddings` */
import { embed } from "../nn/generation/embed.ts";
import { ApiError } from "./api_error.ts";
import type { Limits } from "./limits.ts";
import { promptsOf } from "./prompts.ts";
import type { EmbeddingRequest } from "./schemas.ts";
import type { ServedModel } from "./served_model.ts";

/** Computes the embeddings of a request. @throws {ApiError} 400 */
export async function embeddings(
  served: ServedModel,
  limits: Limits,
  { input, encoding_format, dimensions, prompt_name }: EmbeddingRequest,
  signal: AbortSignal,
): Promise<Response> {
  if (prompt_name !== undefined)
    throw new ApiError(400, "expected no prompt_name: a language model has no prompts", null, "prompt_name");
  const prompts = promptsOf(served, input, "input", limits.tokens);
  const count = check(served, prompts);
  const data: object[] = [];
  for (const [index, prompt] of prompts.entries()) {
    if (signal.aborted) break;
    using row = await embed(served.model, [prompt]);
    const vector = shortened(await row.data(), dimensions);
    data.push({ object: "embedding", index, embedding: written(vector, encoding_format) });
  }
  const usage = { prompt_tokens: count, total_tokens: count };
  return Response.json({ object: "list", data, model: served.name, usage });
}

/** Checks the prompts and returns their total number of tokens. */
function check({ model }: ServedModel, prompts: readonly number[][]): number {
  const fail = (message: string, code: string | null = null) => new ApiError(400, message, code, "input");
  for (const { length } of prompts) {
    if (length === 0) throw fail("expected texts of at least one token");
    if (length > model.contextLength)
      throw fail(`expected at most ${model.contextLength} tokens, got ${length}`, "context_length_exceeded");
  }
  return prompts.reduce((sum, { length }) => sum + length, 0);
}

/** Keeps the first dimensions and normalizes to length 1, as OpenAI does. */
function shortened(vector: Float32Array, dimensions: number | undefined): Float32Array {
  if (dimensions === undefined || dimensions === vector.length) return vector;
  if (dimensions > vector.length)
    throw new ApiError(400, `expected at most ${vector.length} dimensions, got ${dimensions}`, null, "dimensions");
  const part = vector.slice(0, dimensions);
  const length = Math.hypot(...part);
  return part.map((value) => value / length);
}

/** Encodes an embedding as numbers, or as float32 in base64, which OpenAI's client requests. */
export const written = (vector: Float32Array, format: "float" | "base64" | undefined): number[] | string =>
  format === "base64"
    ? Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64")
    : [...vector];
