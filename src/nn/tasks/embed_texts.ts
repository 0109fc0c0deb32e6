/** Embeddings of texts by an encoder. */
import { ArgumentError } from "../../core/errors.ts";
import { choice, either, flag, text } from "../../core/kinds.ts";
import { type Kind, named, operand, unlisted } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { normalize } from "../../ops/distance/normalize.ts";
import { narrow } from "../../ops/view/slice.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Encoder } from "../models/encoder/encoder.ts";
import { type Pooling, pooled, poolings } from "../models/encoder/sentence.ts";
import {
  aCount,
  anEncoder,
  BATCH,
  type BatchingOptions,
  inBatches,
  MOST_TEXTS,
  matrixOf,
  type Row,
  tokenizerOf,
  valuesOfRows,
} from "./batches.ts";
import { checkTokens, prompt, type Tokens } from "./prompt.ts";

/** Options of {@link embed} for an encoder. */
export interface EmbedTextsOptions extends BatchingOptions {
  /**
   * How the hidden states of a text become one vector. Default: as the model's `modules.json` says, or `"mean"`. If it
   * is given, linear layers of `modules.json` are not applied.
   */
  readonly pooling?: Pooling | undefined;
  /**
   * Whether each result is scaled to length 1, so that products of results are cosine similarities. Default: as the
   * model's `modules.json` says, or true.
   */
  readonly normalize?: boolean | undefined;
  /** Number of elements of each result, from the first; for models trained for this (Matryoshka). Default: all. */
  readonly truncateDim?: number | undefined;
  /** A text that precedes each text. Default: the model's default prompt, if it has one. */
  readonly prompt?: string | undefined;
  /** The name of one of the model's prompts, such as `"query"`, to use as `prompt`. */
  readonly promptName?: string | undefined;
}

const item = either(text, prompt as Kind<ArrayLike<unknown> | Tensor>);
/** @internal */
export const someItems: Kind<readonly (string | ArrayLike<unknown> | Tensor)[]> = {
  expected: "a list of texts, or of lists of tokens",
  parse(value, operation, name) {
    if (!Array.isArray(value) || value.length === 0 || value.length > MOST_TEXTS) return undefined;
    const parsed = Array.from(value, (one) => item.parse(one, operation, name));
    return parsed.some((one) => one === undefined) ? undefined : (parsed as (string | ArrayLike<unknown> | Tensor)[]);
  },
};

const readCall = unlisted("embed", {
  model: operand(anEncoder),
  texts: operand(someItems),
  pooling: named(choice(...poolings)),
  normalize: named(flag),
  truncateDim: named(aCount),
  prompt: named(text),
  promptName: named(text),
  batch: named(aCount, BATCH),
});

type Call = ReturnType<typeof readCall>;

/** @internal The part of {@link embed} for encoders. */
export async function embedTexts(values: readonly unknown[]): Promise<Tensor> {
  const call = readCall(values);
  const { model, texts, batch } = call;
  const start = promptOf(call);
  const rows = texts.map((input) =>
    typeof input === "string" ? encodedText("embed", model, start + input) : given(model, input),
  );
  const vectors = await inBatches(
    model,
    rows,
    batch,
    ({ tokens, lengths, tokenTypes }) => vectorsOf(call, model.hiddenStates(tokens, { lengths, tokenTypes }), lengths),
    valuesOfRows,
  );
  return matrixOf(vectors);
}

/** @throws {ArgumentError} `unknownPrompt` */
function promptOf({ model, prompt, promptName }: Call): string {
  const { prompts = {}, defaultPrompt } = model.sentence?.description ?? {};
  if (prompt !== undefined && promptName !== undefined)
    throw new ArgumentError("embed", "invalidOption", "expected prompt or promptName, got both");
  if (prompt !== undefined) return prompt;
  const name = promptName ?? defaultPrompt;
  if (name === undefined) return "";
  if (Object.hasOwn(prompts, name)) return prompts[name];
  const known = Object.keys(prompts).join(", ") || "none";
  throw new ArgumentError(
    "embed",
    "unknownPrompt",
    `expected promptName to be a prompt of the model (${known}), got "${name}"`,
  );
}

/** @internal Encodes a text. As in sentence-transformers, a text that is too long is truncated. */
export function encodedText(operation: string, model: Encoder, given: string): Row {
  const { longest, lowerCase = false } = model.sentence?.description ?? {};
  const normalized = lowerCase ? given.toLowerCase() : given;
  const maxTokens = Math.min(longest ?? Infinity, model.contextLength);
  const row = tokenizerOf(operation, model).encodeInputs(operation, normalized, { maxTokens });
  if (row.tokens.length > 0) return row;
  throw new ArgumentError(operation, "noTokens", "expected texts of at least one token, got an empty text");
}

function given(model: Encoder, input: ArrayLike<unknown> | Tensor): Row {
  const tokens = checkTokens("embed", input as Tokens, model.vocabularySize);
  return { tokens, tokenTypes: tokens.map(() => 0) };
}

function vectorsOf(
  { model, pooling, normalize: asked, truncateDim }: Call,
  states: Tensor,
  lengths: readonly number[],
) {
  const { sentence } = model;
  const wide = toDType(states, "float32");
  const vectors =
    pooling === undefined && sentence ? sentence.forward(states, lengths) : pooled(wide, pooling ?? "mean", lengths);
  const size = truncateDim ?? sentence?.description.truncateDim;
  const width = vectors.shape[1];
  if (size !== undefined && size > width)
    throw new ArgumentError("embed", "invalidOption", `expected truncateDim to be at most ${width}, got ${size}`);
  const part = toDType(size === undefined ? vectors : narrow(vectors, 1, 0, size), "float32");
  return (asked ?? sentence?.normalizes ?? true) ? normalize(part, { dim: 1 }) : part;
}

/** @internal Whether the first argument of `embed` is an encoder. */
export const isForEncoder = (values: readonly unknown[]): boolean =>
  anEncoder.parse(values[0], "embed", "model") !== undefined;
