import { ArgumentError } from "../../core/errors.ts";
import { text } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import type { Encoder } from "../models/encoder/encoder.ts";
import {
  aCount,
  anEncoder,
  BATCH,
  type BatchingOptions,
  checkTask,
  inBatches,
  sigmoidOf,
  someTexts,
  tokenizerOf,
  valuesOfRows,
} from "./batches.ts";

/** Options of {@link rerank}. */
export interface RerankOptions extends BatchingOptions {
  /** The maximum number of results. Default: all texts. */
  readonly topK?: number | undefined;
}

/** The relevance of a text for a query. */
export interface Ranked {
  /** The index of the text. */
  readonly index: number;
  /** The relevance: larger is more relevant. Mostly from 0 to 1; the model's config may say otherwise. */
  readonly score: number;
}

const readCall = parameters("rerank", {
  model: operand(anEncoder),
  query: operand(text),
  texts: operand(someTexts),
  topK: named(aCount),
  batch: named(aCount, BATCH),
});

/**
 * Sorts texts by their relevance for a query, with a cross-encoder: a model that reads the query together with each
 * text. A pair that is too long is truncated, first its longer text.
 *
 * @param model an encoder with a head for one class (`…ForSequenceClassification`)
 * @returns the most relevant text first
 *
 * @example
 * const { model } = await nn.loadModel<nn.Encoder>("reranker");
 * const [best] = await nn.rerank(model, "Who wrote it?", ["Ada wrote it.", "It rains."]); // { index: 0, score: 0.98 }
 *
 * @throws {ArgumentError} `otherTask` for a model without such a head, and `notOneResult`.
 */
export function rerank(
  model: Encoder,
  query: string,
  texts: readonly string[],
  options?: RerankOptions,
): Promise<Ranked[]>;
export async function rerank(...values: unknown[]): Promise<Ranked[]> {
  const { model, query, texts, topK = Infinity, batch } = readCall(values);
  checkTask("rerank", model, "classify");
  const { outputs } = model.description.head!;
  if (outputs !== 1)
    throw new ArgumentError(
      "rerank",
      "notOneResult",
      `expected a model with one result, a cross-encoder, got ${outputs} labels; use nn.classify with pairs`,
    );
  const tokenizer = tokenizerOf("rerank", model);
  const options = { maxTokens: model.contextLength };
  const rows = texts.map((pair) => tokenizer.encodeInputs("rerank", query, { ...options, pair }));
  const relevance = model.labels?.relevance === "identity" ? Number : sigmoidOf;
  const scores = await inBatches(
    model,
    rows,
    batch,
    ({ tokens, ...inputs }) => toDType(model.forward(tokens, inputs), "float32"),
    async (result) => (await valuesOfRows(result)).map(([score]) => relevance(score)),
  );
  const ranked = scores.map((score, index) => ({ index, score }));
  return ranked.sort((a, b) => b.score - a.score || a.index - b.index).slice(0, topK);
}
