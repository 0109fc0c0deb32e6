/** Gradients of losses of embeddings, with the memory for one chunk of texts. */
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { aFunction, listOf } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { contiguous } from "../../ops/copy/copy.ts";
import { mul } from "../../ops/elementwise/arithmetic.ts";
import { cat } from "../../ops/join/cat.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { narrow } from "../../ops/view/slice.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { keep, tidy } from "../../tensor/tidy.ts";
import type { Encoder } from "../models/encoder/encoder.ts";
import { pooled } from "../models/encoder/sentence.ts";
import { aCount, anEncoder, BATCH, type BatchingOptions, batchOf, type Row, someTexts } from "./batches.ts";
import { encodedText } from "./embed_texts.ts";

/** Computes a loss, a scalar tensor, of the embeddings of each column, [texts, width]. */
export type EmbeddingLoss = (...columns: Tensor[]) => Tensor;

const readCall = parameters("embeddingBackward", {
  model: operand(anEncoder),
  columns: operand(listOf(someTexts, "a list of lists of texts")),
  loss: operand(aFunction<EmbeddingLoss>()),
  batch: named(aCount, BATCH),
});

/**
 * Computes a loss of embeddings, and accumulates its gradients in the model's parameters. Embeddings come from
 * {@link embed} before the final normalization of models without `modules.json`.
 *
 * The loss gets the embeddings of all texts, as in-batch negatives require, but only `batch` texts at a time keep their
 * activations. First, all embeddings are computed without gradients. Then the loss and its gradients with respect to
 * the embeddings are computed. Last, each chunk is computed again, and its backward pass starts from these gradients.
 * The gradients match one pass up to rounding, for about a third more time. If all texts fit into one chunk, they are
 * computed once.
 *
 * Source: L. Gao et al., "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup" (GradCache), 2021.
 *
 * @param model an encoder with a tokenizer
 * @param columns lists of texts, such as the anchors and the positives
 * @param loss receives a tensor [texts, width] for each column
 * @returns the loss
 *
 * @example
 * const optimizer = new optim.AdamW(model.parameters(), { lr: 2e-5 });
 * for (const { questions, answers } of batches) {
 *   await nn.embeddingBackward(model, [questions, answers], (a, b) => nn.multipleNegativesRankingLoss(a, b));
 *   optimizer.step();
 *   optimizer.zeroGrad();
 * }
 *
 * @throws {ArgumentError} for a model without a tokenizer, or no texts. @throws whatever `loss` throws.
 */
export function embeddingBackward(
  model: Encoder,
  columns: readonly (readonly string[])[],
  loss: EmbeddingLoss,
  options?: BatchingOptions,
): Promise<number>;
export async function embeddingBackward(...values: unknown[]): Promise<number> {
  const { model, columns, loss, batch } = readCall(values);
  const rows = columns.flat().map((text) => encodedText("embeddingBackward", model, text));
  if (rows.length === 0)
    throw new ArgumentError("embeddingBackward", "noTexts", "expected at least one text, got none");
  const sizes = columns.map((column) => column.length);
  if (rows.length <= batch) return tidy(() => finished(loss(...split(vectorsOf(model, rows), sizes))));
  const chunks = Array.from({ length: Math.ceil(rows.length / batch) }, (_, at) =>
    rows.slice(at * batch, (at + 1) * batch),
  );
  const parts: Tensor[] = [];
  for (const chunk of chunks) {
    await yieldToEventLoop();
    parts.push(tidy(() => noGrad(() => keep(contiguous(vectorsOf(model, chunk))))));
  }
  const all = noGrad(() => cat(parts, { dim: 0 }));
  for (const part of parts) part.dispose();
  all.requiresGrad = true;
  const value = tidy(() => finished(loss(...split(all, sizes))));
  const gradient = all.grad;
  for (const [at, chunk] of gradient === null ? [] : chunks.entries()) {
    await yieldToEventLoop();
    tidy(() => {
      const rows = narrow(gradient!, 0, at * batch, chunk.length);
      sum(mul(vectorsOf(model, chunk), rows)).backward();
    });
  }
  gradient?.dispose();
  all.dispose();
  return value;
}

function finished(value: Tensor): number {
  value.backward();
  return Number(value.item());
}

/** Splits the rows of a tensor into columns of texts. */
function split(vectors: Tensor, sizes: readonly number[]): Tensor[] {
  let start = 0;
  return sizes.map((size) => {
    start += size;
    return narrow(vectors, 0, start - size, size);
  });
}

function vectorsOf(model: Encoder, rows: readonly Row[]): Tensor {
  const { tokens, lengths, tokenTypes } = batchOf(model, rows);
  const states = model.hiddenStates(tokens, { lengths, tokenTypes });
  return toDType(model.sentence ? model.sentence.forward(states, lengths) : pooled(states, "mean", lengths), "float32");
}
