import { ArgumentError } from "../../core/errors.ts";
import { text } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import type { Encoder } from "../models/encoder/encoder.ts";
import {
  aCount,
  anEncoder,
  checkLength,
  checkTask,
  inBatches,
  softmaxOf,
  tokenizerOf,
  valuesOfRows,
} from "./batches.ts";

/** Options of {@link fillMask}. */
export interface FillMaskOptions {
  /** The number of tokens for each mask. Default 5. */
  readonly topK?: number | undefined;
}

/** A token in the place of a mask. */
export interface FilledMask {
  readonly token: number;
  /** The token as text. */
  readonly text: string;
  /** The probability. */
  readonly score: number;
}

const readCall = parameters("fillMask", {
  model: operand(anEncoder),
  text: operand(text),
  topK: named(aCount, 5),
});

/**
 * Predicts the masked tokens of a text.
 *
 * @param model an encoder with a head for masked tokens (`…ForMaskedLM`)
 * @param text a text with at least one mask, as the tokenizer writes it: `[MASK]` or `<mask>`
 * @returns for each mask the most probable tokens, the most probable first
 *
 * @example
 * const { model } = await nn.loadModel<nn.Encoder>("bert-base-uncased");
 * const [tokens] = await nn.fillMask(model, "Paris is the [MASK] of France."); // tokens[0].text: "capital"
 *
 * @throws {ArgumentError} `otherTask` for a model without such a head, `noMask` for a text without a mask.
 * @throws {ShapeError} `sequenceTooLong`
 */
export function fillMask(model: Encoder, text: string, options?: FillMaskOptions): Promise<FilledMask[][]>;
export async function fillMask(...values: unknown[]): Promise<FilledMask[][]> {
  const { model, text, topK } = readCall(values);
  checkTask("fillMask", model, "fillMask");
  const tokenizer = tokenizerOf("fillMask", model);
  const row = checkLength("fillMask", model, tokenizer.encodeInputs("fillMask", text, {}), "pass a part of the text");
  const masks = row.tokens.flatMap((token, at) => (token === tokenizer.mask ? [at] : []));
  if (masks.length === 0) {
    const mask = tokenizer.mask === null ? "the tokenizer has none" : `write it as ${tokenizer.textOf(tokenizer.mask)}`;
    throw new ArgumentError("fillMask", "noMask", `expected a text with a masked token; ${mask}`);
  }
  const [scores] = await inBatches(
    model,
    [row],
    1,
    ({ tokens, ...inputs }) => toDType(model.forward(tokens, inputs), "float32"),
    valuesOfRows,
  );
  return masks.map((at) => {
    const chances = softmaxOf(scores.subarray(at * model.vocabularySize, (at + 1) * model.vocabularySize));
    const order = chances.map((_, token) => token).sort((a, b) => chances[b] - chances[a] || a - b);
    return order.slice(0, topK).map((token) => ({
      token,
      score: chances[token],
      text: token < tokenizer.vocabularySize ? tokenizer.decode([token], { skipSpecialTokens: false }) : "",
    }));
  });
}
