import { DTypeError, ShapeError } from "../core/errors.ts";
import { linear } from "../ops/matmul/linear.ts";
import { narrow } from "../ops/view/slice.ts";
import { isInteger } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { normed, type ResidualStream, type TransformerBlock } from "./block.ts";
import { KeyValueCache } from "./cache.ts";
import type { Embedding } from "./embedding.ts";
import { huggingFaceState, loadPlaces, type Place, type TensorSource } from "./hugging_face/places.ts";
import type { Linear } from "./linear.ts";
import { Module } from "./module.ts";
import type { Normalization } from "./normalization.ts";
import type { LoadOptions, LoadReport, StateDict } from "./state_dict.ts";

/** What a {@link LanguageModel} takes beside tokens. */
export interface LanguageModelInputs {
  /** Keys and values of the tokens before these, to which theirs are added. */
  readonly cache?: KeyValueCache | undefined;
  /** Whether the logits of the last token are all that is wanted. Default false. */
  readonly lastOnly?: boolean | undefined;
}

/** What `generate` asks of a model, and what {@link GPT} and {@link Llama} have in common. */
export abstract class LanguageModel extends Module<[tokens: Tensor, inputs?: LanguageModelInputs], Tensor> {
  /** How many different tokens there are. */
  abstract readonly vocabularySize: number;
  /** How many tokens it sees at most. */
  abstract readonly contextLength: number;
  /**
   * Whether a position is only a distance to others, so that a full cache may forget its oldest token; where not, a text that is longer than
   * the context begins anew with its last tokens.
   */
  abstract readonly slides: boolean;
  abstract readonly tokenEmbedding: Embedding;
  abstract readonly blocks: readonly TransformerBlock[];
  abstract readonly finalNorm: Normalization;
  /** What makes logits of the last layer's results; null where that is the table of embeddings (tied weights). */
  abstract readonly head: Linear | null;

  /**
   * How likely each token is to come next, for each place.
   *
   * @param tokens whole numbers below `vocabularySize`, [batch, tokens]
   * @returns logits [batch, tokens, vocabularySize]; with `lastOnly` [batch, 1, vocabularySize]
   *
   * @throws {ShapeError} for another rank, more tokens than the context has left, and a token that is not in the vocabulary (on Metal where
   * the logits are read). @throws {DTypeError} for tokens that are no integers.
   */
  override forward(tokens: Tensor, { cache, lastOnly = false }: LanguageModelInputs = {}): Tensor {
    const position = cache?.position ?? 0;
    this.checkTokens(tokens, position);
    let stream: ResidualStream = { residual: this.embed(tokens, position) };
    for (const [index, block] of this.blocks.entries()) stream = block.advance(stream, { cache: cache?.layers[index] });
    const { out } = normed(this.finalNorm, lastOnly ? lastOf(stream) : stream);
    return this.head ? this.head.forward(out) : linear(out, this.tokenEmbedding.weight);
  }

  /** @internal What goes into the first block. */
  protected abstract embed(tokens: Tensor, position: number): Tensor;

  /** Room for the keys and values of `contextLength` tokens; it grows as tokens come. */
  newCache(): KeyValueCache {
    return new KeyValueCache(this.blocks.length, this.contextLength);
  }

  /**
   * Copies weights by Hugging Face's names, converted to the model's dtypes: all of them, or none.
   *
   * @param tensors by name, or an open safetensors file
   *
   * @throws {StateDictError} that lists what is missing, what is not expected, and what has another shape.
   */
  loadHuggingFace(tensors: Readonly<StateDict> | TensorSource, options: LoadOptions = {}): LoadReport {
    return loadPlaces(this, this.huggingFacePlaces(), tensors, options);
  }

  /** The weights by Hugging Face's names, as views: what `saveSafetensors` makes a file of that `transformers` reads. */
  huggingFaceState(): StateDict {
    return huggingFaceState(this, this.huggingFacePlaces());
  }

  /** @internal */
  abstract huggingFacePlaces(): Place[];

  private checkTokens(tokens: Tensor, position: number): void {
    const name = this.constructor.name;
    if (!isInteger(tokens.dtype))
      throw new DTypeError(name, "notIntegers", `tokens are integers, ${tokens.describe()} came`);
    if (tokens.rank !== 2 || tokens.size === 0)
      throw new ShapeError(name, "wrongShape", `tokens are [batch, tokens], not empty; ${tokens.describe()} came`);
    const [before, count] = [this.slides ? 0 : position, tokens.shape[1]!];
    if (before + count > this.contextLength)
      throw new ShapeError(
        name,
        "sequenceTooLong",
        `the context has ${this.contextLength} tokens, ${count} came${before > 0 ? ` after ${before}` : ""}; give the last ones only`,
      );
  }
}

/** The last token's part of a stream. */
function lastOf({ residual, addition }: ResidualStream): ResidualStream {
  const last = (x: Tensor) => narrow(x, 1, -1, 1);
  return { residual: last(residual), ...(addition && { addition: last(addition) }) };
}
