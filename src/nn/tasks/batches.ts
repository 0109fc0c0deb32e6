/** Runs texts through an encoder in batches of similar lengths. */
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { aNumber, instanceOf, listOf, text } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import type { Kind } from "../../core/parameters.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { EncodedInputs, PretrainedTokenizer } from "../../text/pretrained_tokenizer.ts";
import { inEvaluation } from "../layers/module.ts";
import type { EncoderTask } from "../models/encoder/description.ts";
import { Encoder } from "../models/encoder/encoder.ts";

/** Options of all functions that run an encoder on texts. */
export interface BatchingOptions {
  /**
   * The maximum number of texts in a batch. Texts are sorted by length, so that batches need little padding; results
   * have the order of the texts. Default 32.
   */
  readonly batch?: number | undefined;
}

/** @internal */
export const anEncoder: Kind<Encoder> = instanceOf(Encoder, "an encoder");
/** @internal */
export const aCount: Kind<number> = aNumber(count);
/** @internal */
export const someTexts: Kind<string[]> = listOf(text, "a list of texts");
/** @internal The maximum number of texts in a call. */
export const MOST_TEXTS = 2 ** 20;
/** @internal The default of `batch`. */
export const BATCH = 32;

/** @internal Returns the model's tokenizer. @throws {ArgumentError} `noTokenizer` */
export function tokenizerOf(operation: string, model: Encoder): PretrainedTokenizer {
  if (model.tokenizer) return model.tokenizer;
  throw new ArgumentError(
    operation,
    "noTokenizer",
    "expected a model with a tokenizer; load a folder with tokenizer.json, or set model.tokenizer",
  );
}

/**
 * @internal Checks that a model has the head for a task. @throws {ArgumentError} `otherTask` for a model with another
 * head, or without one.
 */
export function checkTask(operation: string, model: Encoder, task: EncoderTask): void {
  if (model.task === task) return;
  const got = model.task === undefined ? "a model without a head" : `a head for nn.${model.task}`;
  throw new ArgumentError(operation, "otherTask", `expected a model with a head for nn.${task}, got ${got}`);
}

/** @internal The tokens of a text or a pair. */
export type Row = Pick<EncodedInputs, "tokens" | "tokenTypes">;

/**
 * @internal Checks the length of a text. @throws {ShapeError} `sequenceTooLong` for a text of more tokens than the
 * model's context.
 */
export function checkLength<R extends Row>(operation: string, model: Encoder, row: R, advice: string): R {
  if (row.tokens.length <= model.contextLength) return row;
  throw new ShapeError(
    operation,
    "sequenceTooLong",
    `expected at most ${model.contextLength} tokens, got ${row.tokens.length}; ${advice}`,
  );
}

/** @internal */
export interface Batch {
  readonly tokens: Tensor;
  readonly lengths: readonly number[];
  readonly tokenTypes: Tensor | undefined;
}

/**
 * @internal Computes a result for each row, in batches. The model runs in evaluation mode without gradients; the event
 * loop runs between batches.
 *
 * @param compute computes a tensor whose first axis is the batch
 * @param finish reads the results of a batch, one for each row
 */
export async function inBatches<R extends Row, T>(
  model: Encoder,
  rows: readonly R[],
  size: number,
  compute: (batch: Batch) => Tensor,
  finish: (result: Tensor, rows: readonly R[]) => Promise<readonly T[]>,
): Promise<T[]> {
  const order = rows.map((_, index) => index).sort((a, b) => rows[b].tokens.length - rows[a].tokens.length || a - b);
  const found = new Array<T>(rows.length);
  for (let start = 0; start < order.length; start += size) {
    await yieldToEventLoop();
    const indices = order.slice(start, start + size);
    const members = indices.map((index) => rows[index]);
    const result = tidy(() => noGrad(() => inEvaluation(model, () => compute(batchOf(model, members)))));
    const values = await finish(result, members);
    result.dispose();
    for (const [at, index] of indices.entries()) found[index] = values[at]!;
  }
  return found;
}

/** @internal Pads rows to the length of the longest. */
export function batchOf(model: Encoder, rows: readonly Row[]): Batch {
  const lengths = rows.map(({ tokens }) => tokens.length);
  const longest = Math.max(...lengths);
  const padding = model.description.embeddings.positions?.padding ?? 0;
  const [tokens, types] = [new Int32Array(rows.length * longest).fill(padding), new Int32Array(rows.length * longest)];
  for (const [at, row] of rows.entries()) {
    tokens.set(row.tokens, at * longest);
    types.set(row.tokenTypes, at * longest);
  }
  const shape = [rows.length, longest];
  // A table with a single token type, such as RoBERTa's, ignores the types of the tokenizer.
  const hasTypes = model.description.embeddings.tokenTypes > 1 && types.some((type) => type > 0);
  return {
    tokens: tensor(tokens, { shape }),
    lengths,
    tokenTypes: hasTypes ? tensor(types, { shape }) : undefined,
  };
}

/** @internal Returns the values of each row of a tensor. */
export async function valuesOfRows(x: Tensor): Promise<Float32Array[]> {
  const values = Float32Array.from((await x.data()) as ArrayLike<number>);
  const size = values.length / x.shape[0];
  return Array.from({ length: x.shape[0] }, (_, row) => values.slice(row * size, (row + 1) * size));
}

/** @internal Returns rows of equal lengths as a tensor. */
export function matrixOf(rows: readonly Float32Array[]): Tensor<"float32"> {
  const width = rows[0].length;
  const all = new Float32Array(rows.length * width);
  for (const [row, values] of rows.entries()) all.set(values, row * width);
  return tensor(all, { shape: [rows.length, width] });
}

/** @internal Returns e^score / Σ e^score. */
export function softmaxOf(scores: ArrayLike<number>): number[] {
  const list = Array.from(scores);
  const largest = Math.max(...list);
  const powers = list.map((score) => Math.exp(score - largest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** @internal Returns 1 / (1 + e^−score). */
export const sigmoidOf = (score: number): number => 1 / (1 + Math.exp(-score));
