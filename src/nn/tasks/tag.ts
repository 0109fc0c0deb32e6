import { lastElement } from "../../core/collections.ts";
import { choice } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import type { TextSpan } from "../../text/offsets.ts";
import type { EncodedInputs } from "../../text/pretrained_tokenizer.ts";
import type { Encoder } from "../models/encoder/encoder.ts";
import {
  aCount,
  anEncoder,
  BATCH,
  type BatchingOptions,
  checkLength,
  checkTask,
  inBatches,
  softmaxOf,
  someTexts,
  tokenizerOf,
  valuesOfRows,
} from "./batches.ts";

/** Options of {@link tag}. */
export interface TagOptions extends BatchingOptions {
  /**
   * `"simple"`: adjacent tokens of one entity are joined, by the tags `B-` (begin) and `I-` (inside). `"none"`: each
   * token is a result. Default `"simple"`.
   */
  readonly aggregate?: "simple" | "none" | undefined;
}

/** A part of a text with a label, such as the name of a person. */
export interface Tagged extends TextSpan {
  /** The label, without `B-` and `I-` if tokens were joined. */
  readonly label: string;
  /** The probability; for several tokens, their mean. */
  readonly score: number;
  /** The part of the text from `start` to `end`. */
  readonly text: string;
}

const readCall = parameters("tag", {
  model: operand(anEncoder),
  texts: operand(someTexts),
  aggregate: named(choice("simple", "none"), "simple"),
  batch: named(aCount, BATCH),
});

/** The label of tokens outside of entities. */
const OUTSIDE = "O";

/**
 * Labels the tokens of texts, for example to find names.
 *
 * @param model an encoder with a head for classes of tokens (`…ForTokenClassification`), or ELECTRA's discriminator,
 * whose only label is `replaced`
 * @param texts each of at most as many tokens as the model's context
 * @returns for each text its labeled parts in order, without those with the label `O`
 *
 * @example
 * const { model } = await nn.loadModel<nn.Encoder>("ner");
 * const [found] = await nn.tag(model, ["Ada Lovelace lived in London."]);
 * found[0]; // { label: "PER", score: 0.999, start: 0, end: 12, text: "Ada Lovelace" }
 *
 * @throws {ArgumentError} `otherTask` for a model without such a head. @throws {ShapeError} `sequenceTooLong`
 */
export function tag(model: Encoder, texts: readonly string[], options?: TagOptions): Promise<Tagged[][]>;
export async function tag(...values: unknown[]): Promise<Tagged[][]> {
  const { model, texts, aggregate, batch } = readCall(values);
  checkTask("tag", model, "tag");
  const tokenizer = tokenizerOf("tag", model);
  const rows = texts.map((text) => ({
    ...checkLength("tag", model, tokenizer.encodeInputs("tag", text, {}), "pass a part of the text"),
    text,
  }));
  return inBatches(
    model,
    rows,
    batch,
    ({ tokens, ...inputs }) => toDType(model.forward(tokens, inputs), "float32"),
    async (scores, members) => {
      const values = await valuesOfRows(scores);
      return members.map((row, at) => {
        const tokens = taggedTokens(model, row, values[at]);
        const parts = aggregate === "none" ? tokens : joined(tokens, row.text);
        return parts.filter(({ label }) => label !== OUTSIDE);
      });
    },
  );
}

interface TextRow extends EncodedInputs {
  readonly text: string;
}

function taggedTokens(
  { labels, description }: Encoder,
  { tokens, origins, spans, text }: TextRow,
  scores: Float32Array,
): Tagged[] {
  const names = labels?.names ?? [];
  const { outputs } = description.head!;
  const places = spans(0);
  return tokens.flatMap((_, at) => {
    const origin = origins[at];
    if (!origin) return [];
    const own = scores.subarray(at * outputs, (at + 1) * outputs);
    // a discriminator has one score: that of the second label
    const chances = names.length > outputs ? softmaxOf([0, own[0]]) : softmaxOf(own);
    const score = Math.max(...chances);
    const { start, end } = places[origin[1]];
    return [{ label: names[chances.indexOf(score)], score, start, end, text: text.slice(start, end) }];
  });
}

/** Joins tokens as `aggregation_strategy="simple"` of `transformers`: a token with `B-` begins another part. */
function joined(tokens: readonly Tagged[], text: string): Tagged[] {
  const groups: Tagged[][] = [];
  for (const token of tokens) {
    const last = groups.at(-1)?.at(-1);
    const isSame = last !== undefined && kindOf(last.label) === kindOf(token.label) && !token.label.startsWith("B-");
    if (isSame) lastElement(groups).push(token);
    else groups.push([token]);
  }
  return groups.map((group) => {
    const { start, label } = group[0];
    const { end } = lastElement(group);
    const score = group.reduce((sum, token) => sum + token.score, 0) / group.length;
    return { label: kindOf(label), score, start, end, text: text.slice(start, end) };
  });
}

const kindOf = (label: string): string => label.replace(/^[BI]-/, "");
