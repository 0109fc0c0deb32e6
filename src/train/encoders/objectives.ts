/** The training objectives of encoders: losses of batches, their gradients, and measures on held-out records. */
import { noGrad } from "../../autograd/modes.ts";
import { inEvaluation } from "../../nn/layers/module.ts";
import type { Encoder } from "../../nn/models/encoder/encoder.ts";
import { batchOf, type Row, tokenizerOf } from "../../nn/tasks/batches.ts";
import { embedTexts } from "../../nn/tasks/embed_texts.ts";
import { embeddingBackward } from "../../nn/tasks/embedding_backward.ts";
import { multipleNegativesRankingLoss } from "../../nn/tasks/embedding_losses.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { div } from "../../ops/elementwise/division.ts";
import { backward } from "../../ops/gradient/backward.ts";
import { crossEntropy } from "../../ops/loss/cross_entropy.ts";
import { matmul } from "../../ops/matmul/matmul.ts";
import { argmax } from "../../ops/reduction/extrema.ts";
import { transpose } from "../../ops/view/permute.ts";
import { split } from "../../ops/view/split.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { HeldOut } from "../run.ts";
import { apart, type Keys } from "./batches.ts";
import type { LabeledRecord, PairRecord } from "./records.ts";

/** A task with its records. */
export interface Objective<T> {
  readonly keysOf: Keys<T>;
  /** Accumulates the gradients of a batch's mean loss / `divisor`, and returns the mean loss. */
  backward(records: readonly T[], divisor: number): Promise<number>;
  /** Computes the mean loss over records, `size` at a time, and another measure. */
  evaluate(records: readonly T[], size: number): Promise<HeldOut>;
  /** Returns the texts of a record. */
  textsOf(record: T): readonly string[];
}

const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(1)} %`;

/**
 * Pairs: contrastive loss with in-batch negatives.
 *
 * @param batch the number of texts that keep their activations at a time. Default: that of `embeddingBackward`
 */
export function embedding(model: Encoder, scale: number, batch?: number): Objective<PairRecord> {
  const textsOf = ({ anchor, positive, negatives }: PairRecord) => [anchor, positive, ...negatives];
  const columnsOf = (records: readonly PairRecord[]) => {
    const negatives = records.flatMap(({ negatives }) => negatives);
    const pairs = [records.map(({ anchor }) => anchor), records.map(({ positive }) => positive)];
    return negatives.length > 0 ? [...pairs, negatives] : pairs;
  };
  const lossOf = ([anchors, positives, ...negatives]: readonly Tensor[]) =>
    multipleNegativesRankingLoss(anchors, positives, { negatives, scale });
  return {
    keysOf: textsOf,
    textsOf,
    async backward(records, divisor) {
      const loss = (...columns: Tensor[]) => div(lossOf(columns), divisor);
      return divisor * (await embeddingBackward(model, columnsOf(records), loss, { batch }));
    },
    async evaluate(records, size) {
      let [sum, nearest] = [0, 0];
      for (const batch of apart(records, size, textsOf)) {
        const columns = columnsOf(batch);
        using vectors = await embedTexts([model, columns.flat(), { prompt: "" }]);
        const found = tidy(() =>
          noGrad(() => {
            const sizes = columns.map(({ length }) => length);
            const parts = split(vectors, sizes, { dim: 0 });
            const scores = matmul(parts[0], transpose(parts[1], 0, 1));
            return { loss: Number(lossOf(parts).item()), best: [...argmax(scores, { dim: 1 }).dataSync()] };
          }),
        );
        sum += found.loss * batch.length;
        nearest += found.best.filter((index, row) => Number(index) === row).length;
      }
      const note = `held out: ${percent(nearest, records.length)} of anchors are nearest to their positive in a batch`;
      return { loss: sum / records.length, note };
    },
  };
}

/** Texts with labels: cross-entropy. @param context maximum tokens of a text */
export function classification(model: Encoder, context: number): Objective<LabeledRecord> {
  const index = new Map(model.labels!.names.map((name, at) => [name, at]));
  const tokenizer = tokenizerOf("train", model);
  const rowOf = ({ text, pair }: LabeledRecord): Row =>
    tokenizer.encodeInputs("train", text, { pair, maxTokens: context });
  const outputsOf = (records: readonly LabeledRecord[]) => {
    const { tokens, ...inputs } = batchOf(model, records.map(rowOf));
    const targets = Int32Array.from(records, ({ label }) => index.get(label)!);
    return { logits: model.forward(tokens, inputs), targets: tensor(targets) };
  };
  return {
    keysOf: () => [],
    textsOf: ({ text, pair }) => (pair === undefined ? [text] : [text, pair]),
    backward: (records, divisor) =>
      Promise.resolve(
        tidy(() => {
          const { logits, targets } = outputsOf(records);
          const loss = crossEntropy(logits, targets, { dim: -1 });
          backward(div(loss, divisor));
          return Number(loss.item());
        }),
      ),
    evaluate(records, size) {
      let [sum, right] = [0, 0];
      for (let first = 0; first < records.length; first += size) {
        const batch = records.slice(first, first + size);
        const evaluated = () => inEvaluation(model, () => outputsOf(batch));
        tidy(() =>
          noGrad(() => {
            const { logits, targets } = evaluated();
            sum += Number(crossEntropy(logits, targets, { dim: -1, reduction: "sum" }).item());
            const [best, want] = [argmax(logits, { dim: 1 }).dataSync(), targets.dataSync()];
            right += [...best].filter((label, row) => Number(label) === want[row]).length;
          }),
        );
      }
      const note = `held out: accuracy ${percent(right, records.length)}`;
      return Promise.resolve({ loss: sum / records.length, note });
    },
  };
}
