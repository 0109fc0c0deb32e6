import { either, text } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import type { Encoder } from "../models/encoder/encoder.ts";
import {
  aCount,
  anEncoder,
  BATCH,
  type BatchingOptions,
  checkLength,
  checkTask,
  inBatches,
  MOST_TEXTS,
  sigmoidOf,
  softmaxOf,
  tokenizerOf,
  valuesOfRows,
} from "./batches.ts";

/** A label of a text, and its probability. */
export interface Classification {
  /** The name of the label: `id2label` in the model's `config.json`. */
  readonly label: string;
  /** The probability; in a model for regression, the result itself. */
  readonly score: number;
}

/** @internal A text, or a pair of texts. */
export const textOrPair: Kind<string | readonly [string, string]> = either(text, {
  expected: "a text, or a pair of texts",
  parse(value): readonly [string, string] | undefined {
    const isPair = Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === "string");
    return isPair ? tupleOf(value, 2) : undefined;
  },
});

const textsOrPairs: Kind<(string | readonly [string, string])[]> = {
  expected: "a list of texts, or of pairs of texts",
  parse(value, operation, name) {
    if (!Array.isArray(value) || value.length === 0 || value.length > MOST_TEXTS) return undefined;
    const parsed = Array.from(value, (one) => textOrPair.parse(one, operation, name));
    return parsed.some((one) => one === undefined) ? undefined : (parsed as string[]);
  },
};

const readCall = parameters("classify", {
  model: operand(anEncoder),
  texts: operand(textsOrPairs),
  batch: named(aCount, BATCH),
});

/**
 * Classifies texts, or pairs of texts such as premise and hypothesis.
 *
 * @param model an encoder with a head for classes of texts (`…ForSequenceClassification`)
 * @param texts at least one, each of at most as many tokens as the model's context
 * @returns for each text all labels, the most probable first. Probabilities of a text add up to 1, except in models for
 * several labels at once
 *
 * @example
 * const { model } = await nn.loadModel<nn.Encoder>("sentiment");
 * const [labels] = await nn.classify(model, ["I like it."]);
 * labels[0]; // { label: "POSITIVE", score: 0.9998 }
 *
 * @throws {ArgumentError} `otherTask` for a model without such a head. @throws {ShapeError} `sequenceTooLong`
 */
export function classify(
  model: Encoder,
  texts: readonly (string | readonly [text: string, pair: string])[],
  options?: BatchingOptions,
): Promise<Classification[][]>;
export async function classify(...values: unknown[]): Promise<Classification[][]> {
  const { model, texts, batch } = readCall(values);
  checkTask("classify", model, "classify");
  const tokenizer = tokenizerOf("classify", model);
  const rows = texts.map((input) => {
    const [text, pair] = typeof input === "string" ? [input] : input;
    return checkLength(
      "classify",
      model,
      tokenizer.encodeInputs("classify", text, { pair }),
      "pass a part of the text",
    );
  });
  return inBatches(
    model,
    rows,
    batch,
    ({ tokens, ...inputs }) => toDType(model.forward(tokens, inputs), "float32"),
    async (scores) => (await valuesOfRows(scores)).map((row) => labeled(model, row)),
  );
}

/** @internal Returns labels with their probabilities, the most probable first. */
export function labeled({ labels }: Pick<Encoder, "labels">, scores: Float32Array): Classification[] {
  const { names, scores: kind } = labels ?? { names: [], scores: "softmax" };
  const list = kind === "softmax" ? softmaxOf(scores) : Array.from(scores, kind === "sigmoid" ? sigmoidOf : Number);
  return list
    .map((score, index) => ({ label: names[index] ?? `LABEL_${index}`, score }))
    .sort((a, b) => b.score - a.score);
}
