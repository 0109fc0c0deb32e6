/** Embeddings of texts by a model of images and texts. */
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { flag } from "../../core/kinds.ts";
import { named, operand, unlisted } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { normalize as toUnit } from "../../ops/distance/normalize.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { inEvaluation } from "../layers/module.ts";
import type { DualEncoder } from "../models/vision/dual_encoder.ts";
import { aCount, BATCH, type BatchingOptions, checkLength, matrixOf, tokenizerOf, valuesOfRows } from "./batches.ts";
import { someItems } from "./embed_texts.ts";
import { aDualEncoder } from "./images.ts";
import { checkTokens, type Tokens } from "./prompt.ts";

/** Options of {@link embed} for a model of images and texts. */
export interface EmbedDualOptions extends BatchingOptions {
  /** Whether each result is scaled to length 1, so that products of results are cosine similarities. Default true. */
  readonly normalize?: boolean | undefined;
}

const readCall = unlisted("embed", {
  model: operand(aDualEncoder),
  texts: operand(someItems),
  normalize: named(flag, true),
  batch: named(aCount, BATCH),
});

/** @internal The part of {@link embed} for models of images and texts. */
export async function embedDualTexts(values: readonly unknown[]): Promise<Tensor> {
  const { model, texts, ...options } = readCall(values);
  return embedDual("embed", model, texts as readonly (string | Tokens)[], options);
}

/** @internal Whether the first argument of `embed` is a model of images and texts. */
export const isForDual = (values: readonly unknown[]): boolean =>
  aDualEncoder.parse(values[0], "embed", "model") !== undefined;

/** @internal Computes a vector for each text, [texts, width]. Texts that are too long are truncated. */
export async function embedDual(
  operation: string,
  model: DualEncoder,
  texts: readonly (string | Tokens)[],
  { batch, normalize }: { readonly batch: number; readonly normalize: boolean },
): Promise<Tensor<"float32">> {
  const rows = texts.map((given) => tokensOf(operation, model, given));
  const found: Float32Array[] = [];
  for (let start = 0; start < rows.length; start += batch) {
    await yieldToEventLoop();
    const tokens = padded(model, rows.slice(start, start + batch));
    const run = () => {
      const vectors = toDType(model.embedTexts(tokens), "float32");
      return normalize ? toUnit(vectors, { dim: 1 }) : vectors;
    };
    const result = tidy(() => noGrad(() => inEvaluation(model, run)));
    found.push(...(await valuesOfRows(result)));
    tokens.dispose();
    result.dispose();
  }
  return matrixOf(found);
}

function tokensOf(operation: string, model: DualEncoder, given: string | Tokens): readonly number[] {
  if (typeof given !== "string") {
    const tokens = checkTokens(operation, given, model.text.vocabularySize);
    return checkLength(operation, model.text, { tokens, tokenTypes: [] }, "pass only the first ones").tokens;
  }
  // SigLIP was trained on lower case. The tokenizers of SigLIP 2 do not convert text, so the caller must.
  const content = model.description.sigmoid ? given.toLowerCase() : given;
  const tokenizer = tokenizerOf(operation, model.text);
  return tokenizer.encodeInputs(operation, content, { maxTokens: model.text.contextLength }).tokens;
}

/** SigLIP reads texts that are padded to its context. In CLIP, tokens after the end have no effect. */
function padded(model: DualEncoder, rows: readonly (readonly number[])[]): Tensor {
  const { textPooling } = model.description;
  const isWhole = textPooling.kind === "padded";
  const longest = isWhole ? model.text.contextLength : Math.max(...rows.map(({ length }) => length));
  const padding = isWhole ? (model.tokenizer?.padding ?? textPooling.padding) : 0;
  const tokens = new Int32Array(rows.length * longest).fill(padding);
  for (const [at, row] of rows.entries()) tokens.set(row, at * longest);
  return tensor(tokens, { shape: [rows.length, longest] });
}
