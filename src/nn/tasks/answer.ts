import { text } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import type { TextSpan } from "../../text/offsets.ts";
import type { EncodedInputs } from "../../text/pretrained_tokenizer.ts";
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

/** Options of {@link answer}. */
export interface AnswerOptions {
  /** The maximum number of answers. Default 1. */
  readonly topK?: number | undefined;
  /** The maximum number of tokens in an answer. Default 15. */
  readonly maxAnswerTokens?: number | undefined;
}

/** A part of a text that answers a question. */
export interface Answer extends TextSpan {
  /** The part of the text from `start` to `end`. */
  readonly text: string;
  /** The probability that the answer starts at `start`, times the probability that it ends at `end`. */
  readonly score: number;
}

const readCall = parameters("answer", {
  model: operand(anEncoder),
  question: operand(text),
  context: operand(text),
  topK: named(aCount, 1),
  maxAnswerTokens: named(aCount, 15),
});

/**
 * Finds the answer to a question in a text.
 *
 * @param model an encoder with a head for answers (`…ForQuestionAnswering`)
 * @param context the text with the answer; question and text have at most as many tokens as the model's context
 * @returns the most probable answer first
 *
 * @example
 * const { model } = await nn.loadModel<nn.Encoder>("squad");
 * const [best] = await nn.answer(model, "Who wrote it?", "In 1843, Ada wrote it."); // best.text: "Ada"
 *
 * @throws {ArgumentError} `otherTask` for a model without such a head. @throws {ShapeError} `sequenceTooLong`
 */
export function answer(model: Encoder, question: string, context: string, options?: AnswerOptions): Promise<Answer[]>;
export async function answer(...values: unknown[]): Promise<Answer[]> {
  const { model, question, context, topK, maxAnswerTokens } = readCall(values);
  checkTask("answer", model, "answer");
  const tokenizer = tokenizerOf("answer", model);
  const encoded = tokenizer.encodeInputs("answer", question, { pair: context });
  const row = checkLength("answer", model, encoded, "pass parts of the context, one at a time");
  const [scores] = await inBatches(
    model,
    [row],
    1,
    ({ tokens, ...inputs }) => toDType(model.forward(tokens, inputs), "float32"),
    valuesOfRows,
  );
  return answersIn(row, context, scores, maxAnswerTokens).slice(0, topK);
}

/** Returns every part of the context, the most probable first. `transformers` 4 scored answers in this way. */
function answersIn(row: EncodedInputs, context: string, scores: Float32Array, most: number): Answer[] {
  const places = row.spans(1);
  const tokens = row.origins.flatMap((origin, at) => (origin?.[0] === 1 ? [at] : []));
  const [starts, ends] = [0, 1].map((column) => softmaxOf(tokens.map((at) => scores[2 * at + column])));
  const found: Answer[] = [];
  for (const [first, chance] of starts.entries())
    for (let last = first; last < Math.min(tokens.length, first + most); last++) {
      const [{ start }, { end }] = [places[first], places[last]];
      found.push({ text: context.slice(start, end), score: chance * ends[last], start, end });
    }
  return found.sort((a, b) => b.score - a.score);
}
