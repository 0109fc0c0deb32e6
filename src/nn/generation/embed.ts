import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { choice, flag } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters, reading } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { normalize } from "../../ops/distance/normalize.ts";
import { cat } from "../../ops/join/cat.ts";
import { mean } from "../../ops/reduction/mean.ts";
import { reshape } from "../../ops/view/reshape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { inEvaluation } from "../layers/module.ts";
import type { Encoder } from "../models/encoder/encoder.ts";
import type { LanguageModel } from "../models/language_model.ts";
import type { DualEncoder } from "../models/vision/dual_encoder.ts";
import { MOST_TEXTS } from "../tasks/batches.ts";
import { type EmbedDualOptions, embedDualTexts, isForDual } from "../tasks/embed_dual.ts";
import { type EmbedTextsOptions, embedTexts, isForEncoder } from "../tasks/embed_texts.ts";
import { aModel, checkTokens, prompt, type Tokens } from "../tasks/prompt.ts";

/** Options of {@link embed}. */
export interface EmbedOptions {
  /** How the hidden states of a text become one vector: their mean, or the last token's state. Default `"mean"`. */
  readonly pooling?: "mean" | "last" | undefined;
  /** Whether each result is scaled to length 1, so that products of results are cosine similarities. Default true. */
  readonly normalize?: boolean | undefined;
}

const texts: Kind<readonly (ArrayLike<unknown> | Tensor)[]> = {
  expected: "a list of texts, each a list of tokens",
  parse(value, operation, name) {
    if (!Array.isArray(value) || value.length === 0 || value.length > MOST_TEXTS) return undefined;
    const lists: (ArrayLike<unknown> | Tensor)[] = [];
    for (let at = 0; at < value.length; at++) {
      const tokens = prompt.parse(value[at], operation, name);
      if (tokens === undefined) return undefined;
      lists.push(tokens);
    }
    return lists;
  },
};

const readCall = parameters("embed", {
  model: operand(aModel),
  texts: operand(texts),
  pooling: named(choice("mean", "last"), "mean"),
  normalize: named(flag, true),
});

/**
 * Computes an embedding vector for each text: similar texts get similar vectors, as far as the model was trained for
 * this. The model runs in evaluation mode without gradients. A language model runs one text at a time, an encoder in
 * batches; the event loop runs in between.
 *
 * @param texts for an encoder, or a model of images and texts: texts, or tokens with special tokens. Texts that are too
 * long are truncated. For a language model: the tokens of each text, at least one, and at most the model's context
 * @param options see {@link EmbedTextsOptions} for an encoder, {@link EmbedDualOptions} for a model of images and
 * texts, {@link EmbedOptions} for a language model
 * @returns float32 [texts, width]
 *
 * @example
 * const { model } = await nn.loadModel<nn.Encoder>("all-MiniLM-L6-v2");
 * const vectors = await nn.embed(model, ["a cat", "a dog"]);
 *
 * @example
 * const vectors = await embed(model, ["a cat", "a dog"].map((text) => tokenizer.encode(text)));
 * matmul(vectors, vectors.T); // cosines, float32[2, 2]
 *
 * @throws {ArgumentError} for an empty list, an empty text, and a token that is not in the vocabulary.
 * @throws {ShapeError} for a text longer than the context.
 */
export function embed(
  model: LanguageModel,
  texts: readonly Tokens[],
  options?: EmbedOptions,
): Promise<Tensor<"float32">>;
export function embed(
  model: Encoder,
  texts: readonly (string | Tokens)[],
  options?: EmbedTextsOptions,
): Promise<Tensor<"float32">>;
export function embed(
  model: DualEncoder,
  texts: readonly (string | Tokens)[],
  options?: EmbedDualOptions,
): Promise<Tensor<"float32">>;
export async function embed(...values: unknown[]): Promise<Tensor> {
  if (reading("embed", () => isForEncoder(values))) return embedTexts(values);
  if (reading("embed", () => isForDual(values))) return embedDualTexts(values);
  const { model, texts, pooling, normalize: isUnit } = readCall(values);
  const lists = texts.map((tokens) => checkTokens("embed", tokens, model.vocabularySize));
  const rows: Tensor[] = [];
  for (const tokens of lists) {
    await yieldToEventLoop();
    rows.push(tidy(() => noGrad(() => inEvaluation(model, () => rowOf(model, tokens, pooling, isUnit)))));
  }
  const result = noGrad(() => cat(rows, 0));
  for (const row of rows) row.dispose();
  return result;
}

/** Returns the vector of one text, [1, width]. */
function rowOf(model: LanguageModel, tokens: number[], pooling: "mean" | "last", isUnit: boolean): Tensor {
  const states = model.hiddenStates(tensor([tokens], { dtype: "int32" }), { lastOnly: pooling === "last" });
  const wide = toDType(states, "float32");
  const row = pooling === "mean" ? mean(wide, { dim: 1 }) : reshape(wide, [1, wide.shape[2]]);
  return isUnit ? normalize(row, { dim: 1 }) : row;
}
