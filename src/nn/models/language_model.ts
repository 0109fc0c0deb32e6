import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { aNumber, anObject, choice, flag, instanceOf, listOf } from "../../core/kinds.ts";
import type { NumberRule } from "../../core/options.ts";
import { named, parameters, reading } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { currentCapture } from "../../observe/capture.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { narrow } from "../../ops/view/slice.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { KeyValueCacheBatch } from "../cache/batch.ts";
import { KeyValueCache, type KeyValueCacheOptions, type Positions, rowsFrom } from "../cache/cache.ts";
import { cacheFormats } from "../cache/store.ts";
import { checkpoint } from "../layers/checkpoint.ts";
import type { Embedding } from "../layers/embedding.ts";
import { hasHooks } from "../layers/hooks.ts";
import type { Linear } from "../layers/linear.ts";
import { Module } from "../layers/module.ts";
import type { Normalization } from "../layers/normalization.ts";
import { type LoadOptions, type LoadReport, readLoadOptions, type StateDict } from "../layers/state_dict.ts";
import type { QuantizedEmbedding } from "../quantized/embedding.ts";
import type { QuantizedLinear } from "../quantized/linear.ts";
import type { AttentionInputs } from "./decoder/attention.ts";
import { normalize, type ResidualStream, sumOf } from "./decoder/residual_stream.ts";
import { huggingFaceState, loadMapped, type TensorMapping, type TensorSource } from "./hugging_face/mappings.ts";
import { checkTokenMatrix } from "./tokens.ts";
import {
  aImage,
  type ImageInputs,
  type ImagePrompt,
  type PlacedImages,
  type PlacedPrompt,
  withDeepFeatures,
  withFeatures,
} from "./vision_language/images.ts";

/** Optional inputs of a {@link LanguageModel}. */
export interface LanguageModelInputs {
  /** The key/value cache of the previous tokens. Keys and values of the new tokens are appended. */
  readonly cache?: KeyValueCache | undefined;
  /** Whether to compute the logits of the last token only. Default false. */
  readonly lastOnly?: boolean | undefined;
  /**
   * The number of padding tokens at the start of each row, so that texts of different lengths end together. No token
   * attends to padding, positions count from the first token after it, and the logits of padding are meaningless. With
   * a cache, pass the same padding in each call. Default: none.
   */
  readonly padding?: readonly number[] | undefined;
  /**
   * The lengths of the texts that each row concatenates. Tokens attend only to tokens of the same text, and positions
   * count from the first token of each text. Cannot be combined with a cache or padding. Default: each row is one text.
   */
  readonly segments?: readonly (readonly number[])[] | undefined;
  /**
   * Whether each block keeps only its input for the backward pass: see {@link checkpoint}. Cannot be combined with a
   * cache. Default false.
   */
  readonly checkpoint?: boolean | undefined;
  /**
   * The images that image tokens stand for, in the order of the tokens; for a {@link VisionLanguageModel}. Cannot be
   * combined with segments. Default: none.
   */
  readonly images?: readonly ImageInputs[] | undefined;
  /** @internal Images that are already placed, instead of `images`. */
  readonly placed?: PlacedImages | undefined;
}

const wholeFromZero: NumberRule = {
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
};

const readInputs = parameters("LanguageModel.forward", {
  cache: named(instanceOf(KeyValueCache, "a KeyValueCache")),
  lastOnly: named(flag, false),
  padding: named(listOf(aNumber(wholeFromZero), "a list of whole numbers")),
  segments: named(listOf(listOf(aNumber(wholeFromZero), "a list of lengths"), "a list of lengths for each row")),
  checkpoint: named(flag, false),
  images: named(listOf(aImage, "a list of images that a processor returned")),
  placed: named(anObject<PlacedImages>("placed images")),
});

/** Options of {@link LanguageModel.newCache}. */
export type CacheOptions = Pick<KeyValueCacheOptions, "format">;
const readCache = parameters("LanguageModel.newCache", { format: named(choice(...cacheFormats)) });

/** A block of a {@link LanguageModel}: attention and a feed-forward. */
export interface DecodingBlock extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  /** @internal */
  advance(stream: ResidualStream, inputs?: AttentionInputs): Required<ResidualStream>;
}

/** @internal The inputs of blocks. `blockInputs` goes to each block's `forward`. */
export interface BlockInputs {
  readonly cache?: KeyValueCache | undefined;
  readonly isCheckpointed?: boolean;
  readonly placed?: PlacedImages | undefined;
  readonly blockInputs: Omit<AttentionInputs, "cache">;
}

/** @internal The inputs that the lengths of texts depend on. */
export type TextInputs = Pick<LanguageModelInputs, "cache" | "padding" | "segments">;

/**
 * The base class of {@link GPT}, {@link Llama} and loaded decoders, with everything that `generate` requires.
 *
 * @example
 * const { model } = await nn.loadModel("llama-3.2-1b"); // an nn.LanguageModel
 * model.forward(tensor([[1, 2, 3]], { dtype: "int32" })); // logits [1, 3, vocabularySize]
 */
export abstract class LanguageModel extends Module<[tokens: Tensor, inputs?: LanguageModelInputs], Tensor> {
  /** The number of tokens in the vocabulary. */
  abstract readonly vocabularySize: number;
  /** The maximum number of tokens in a sequence. */
  abstract readonly contextLength: number;
  /**
   * Whether results depend only on distances between positions, so that a full cache can drop its oldest token. If
   * false, a text longer than the context is recomputed from its last tokens.
   */
  abstract readonly hasRelativePositions: boolean;
  abstract readonly tokenEmbedding: Embedding | QuantizedEmbedding;
  abstract readonly blocks: readonly DecodingBlock[];
  abstract readonly finalNorm: Normalization;
  /** The output projection to logits; null if it is the token embedding's weight (tied weights). */
  abstract readonly head: Linear | QuantizedLinear | null;

  /**
   * Computes the logits of the next token at each position.
   *
   * @param tokens integers below `vocabularySize`, [batch, tokens]
   * @returns logits [batch, tokens, vocabularySize]; with `lastOnly` [batch, 1, vocabularySize]
   *
   * @throws {ShapeError} for another rank, and more tokens than the context has left. @throws {ArgumentError} for a
   * token that is not in the vocabulary (on Metal, when the logits are read). @throws {DTypeError} for tokens that are
   * not integers.
   */
  override forward(tokens: Tensor, inputs?: LanguageModelInputs): Tensor {
    return this.logitsOf(this.hiddenStates(tokens, inputs));
  }

  /**
   * Computes the hidden states that logits are a projection of: the residual stream after the final norm.
   *
   * @param tokens integers below `vocabularySize`, [batch, tokens]
   * @returns [batch, tokens, width]; with `lastOnly` [batch, 1, width]
   *
   * @throws {ShapeError} @throws {ArgumentError} @throws {DTypeError} as {@link forward}.
   */
  hiddenStates(tokens: Tensor, inputs?: LanguageModelInputs): Tensor {
    const { cache, lastOnly, padding, segments, checkpoint: isCheckpointed, ...others } = readInputs([inputs]);
    const name = this.constructor.name;
    const position = cache?.position ?? 0;
    this.checkTokens(tokens, position);
    const positions = cache ? this.positionsIn(cache, tokens.shape[1]) : 0;
    if (cache && (segments || isCheckpointed)) throw notWithCache(name, segments ? "segments" : "checkpoint");
    const blockInputs = segments
      ? segmentInputs(name, tokens, segments, padding)
      : padding && paddedInputs(name, tokens, cache, padding, this.contextLength);
    const placed = others.placed ?? (others.images && this.placeImages(tokens, others.images, inputs!));
    const lengths = this.lengthsOf(tokens, { cache, padding, segments });
    const stream = this.throughBlocks(tokens, positions, {
      cache,
      isCheckpointed,
      placed,
      blockInputs: { ...blockInputs, lengths, ...(placed && this.placedInputs(placed, position, blockInputs?.mask)) },
    });
    if (placed) cache?.continueAt(placed.next.map((next, row) => next + (padding?.[row] ?? 0)));
    return normalize(this.finalNorm, lastOnly ? lastOf(stream) : stream).out;
  }

  /** Returns the positions of the next tokens, for `compile` as a tensor that each replay writes. */
  private positionsIn(cache: KeyValueCache, count: number): Positions {
    const positions = cache.positionsOf(count);
    const capture = currentCapture();
    if (!capture || typeof positions !== "number" || this.hasRelativePositions) return positions;
    const given = rowsFrom([positions], count);
    capture.liveContents(given.storage, () => {
      const next = cache.positionsOf(count);
      if (typeof next !== "number" || next + count > this.contextLength) return undefined;
      return Int32Array.from({ length: count }, (_, at) => next + at);
    });
    return given;
  }

  /** @internal Returns the residual stream after the last block. */
  protected throughBlocks(tokens: Tensor, positions: Positions, inputs: BlockInputs): ResidualStream {
    const { cache, isCheckpointed = false, placed, blockInputs } = inputs;
    const embedded = this.embed(tokens, blockInputs.positions ?? positions);
    const first = placed ? withFeatures(embedded, placed) : embedded;
    const layerInputs = this.layerInputsOf(tokens, first);
    let stream: ResidualStream = { residual: this.streamsOf(first) };
    for (const [index, block] of this.blocks.entries()) {
      stream = isCheckpointed
        ? { residual: checkpoint((x) => block.forward(x, blockInputs), stream.residual) }
        : advanced(block, stream, {
            cache: cache?.layers[index],
            ...blockInputs,
            ...(layerInputs && { layerInput: layerInputs(index) }),
          });
      if (placed) stream = withDeepFeatures(stream, placed, index);
    }
    return this.outputOf(stream);
  }

  /** @internal Returns the inputs of layers besides the stream, by the index of the layer. */
  protected layerInputsOf(_tokens: Tensor, _embedded: Tensor): ((index: number) => Tensor) | undefined {
    return undefined;
  }

  /** @internal Returns the input of the first block. */
  protected streamsOf(embedded: Tensor): Tensor {
    return embedded;
  }

  /** @internal Returns the stream that the final norm reads. */
  protected outputOf(stream: ResidualStream): ResidualStream {
    return stream;
  }

  /**
   * @internal With LongRoPE, the context of the short factors. In longer texts, all tokens are rotated by the long
   * factors.
   */
  get originalContextLength(): number {
    return Infinity;
  }

  /** @internal Returns the lengths of texts for models whose rotations depend on them. */
  protected lengthsOf(_tokens: Tensor, _inputs: TextInputs): readonly number[] | undefined {
    return undefined;
  }

  /** @internal Computes the features of images, and their places. @throws {ArgumentError} `noImages` */
  protected placeImages(_tokens: Tensor, _images: readonly ImageInputs[], _inputs: LanguageModelInputs): PlacedImages {
    throw noImages(this.constructor.name);
  }

  /** @internal Returns the inputs of attention that depend on the places of images. */
  protected placedInputs(_placed: PlacedImages, _position: number, _mask?: Tensor<"bool">): Partial<AttentionInputs> {
    return {};
  }

  /** @internal Prepares a prompt with images for generation. @throws {ArgumentError} `noImages` */
  placedPrompt(operation: string, _prompt: ImagePrompt): PlacedPrompt {
    throw noImages(operation);
  }

  /** @internal Whether layers keep a state of all tokens in the cache, which cannot go back to earlier tokens. */
  get hasStates(): boolean {
    return false;
  }

  /** @internal Computes the logits of normalized hidden states. */
  logitsOf(out: Tensor): Tensor {
    return this.head ? this.head.forward(out) : this.tokenEmbedding.asLinear(out);
  }

  /** @internal Computes the input of the first block. */
  protected abstract embed(tokens: Tensor, positions: Positions): Tensor;

  /** @internal The attention window of each layer, in tokens; undefined if no layer has one. */
  protected get windows(): readonly number[] | undefined {
    return undefined;
  }

  /**
   * Creates a cache for the keys and values of up to `contextLength` tokens; layers with a window keep only about as
   * many as the window. Memory grows as tokens are appended.
   *
   * @throws {ArgumentError} for an unknown format.
   */
  newCache(options?: CacheOptions): KeyValueCache;
  newCache(...values: unknown[]): KeyValueCache {
    const { format } = readCache(values);
    return new KeyValueCache(this.blocks.length, this.contextLength, { format, windows: this.windows });
  }

  /**
   * Loads weights by Hugging Face's names, converted to the model's dtypes. If anything does not match, nothing is
   * loaded.
   *
   * @param tensors by name, or an open safetensors file
   *
   * @throws {StateDictError} listing missing names, unexpected names, and names with a different shape.
   */
  loadHuggingFace(tensors: Readonly<StateDict> | TensorSource, options?: LoadOptions): LoadReport {
    return reading(`${this.constructor.name}.loadHuggingFace`, () =>
      loadMapped(this, this.huggingFaceMappings(), tensors, readLoadOptions(options)),
    );
  }

  /** Returns the weights by Hugging Face's names, as views. `saveSafetensors` saves them for `transformers`. */
  huggingFaceState(): StateDict {
    return huggingFaceState(this, this.huggingFaceMappings());
  }

  /** @internal */
  abstract huggingFaceMappings(): TensorMapping[];

  private checkTokens(tokens: Tensor, position: number): void {
    const name = this.constructor.name;
    checkTokenMatrix(name, tokens);
    const [before, count] = [this.hasRelativePositions ? 0 : position, tokens.shape[1]];
    const got = before > 0 ? `${count} after ${before}` : count;
    if (before + count > this.contextLength)
      throw new ShapeError(
        name,
        "sequenceTooLong",
        `expected at most ${this.contextLength} tokens, got ${got}; pass only the last ones`,
      );
  }
}

/** Runs a block on the residual stream; by its `forward` if that has hooks. */
const advanced = (block: DecodingBlock, stream: ResidualStream, inputs: AttentionInputs): ResidualStream =>
  hasHooks(block) ? { residual: block.forward(sumOf(stream), inputs) } : block.advance(stream, inputs);

/**
 * @internal Returns the positions of tokens in padded rows, and a mask of the keys that are not padding.
 *
 * @throws {ArgumentError} for padding that is not one number per row.
 */
export function paddedInputs(
  operation: string,
  tokens: Tensor,
  cache: KeyValueCache | undefined,
  padding: readonly number[],
  contextLength: number,
): Required<Pick<AttentionInputs, "positions" | "mask">> {
  if (cache instanceof KeyValueCacheBatch)
    throw new ArgumentError(
      operation,
      "invalidPadding",
      "padding is not supported for a batch of caches, since each cache has a separate position",
    );
  const [batch, count] = tupleOf(tokens.shape, 2);
  const length = (cache?.position ?? 0) + count;
  if (padding.length !== batch || padding.some((count) => count >= length))
    throw new ArgumentError(
      operation,
      "invalidPadding",
      `expected padding to be one number below ${length} for each of ${batch} rows, got [${padding.join(", ")}]`,
    );
  if (length > contextLength)
    throw new ShapeError(
      operation,
      "sequenceTooLong",
      `expected at most ${contextLength} tokens in a row, padding included, got ${length}`,
    );
  const positions = new Int32Array(batch * count);
  const isToken = new Uint8Array(batch * length);
  for (const [row, rowPadding] of padding.entries()) {
    const first = (cache?.positionIn(row) ?? 0) - rowPadding;
    for (let at = 0; at < count; at++) positions[row * count + at] = Math.max(0, first + at);
    isToken.fill(1, row * length + rowPadding, (row + 1) * length);
  }
  return {
    positions: tensor(positions, { shape: [batch, count] }),
    mask: tensor(isToken, { shape: [batch, 1, 1, length], dtype: "bool" }),
  };
}

const noImages = (operation: string): ArgumentError =>
  new ArgumentError(
    operation,
    "noImages",
    "expected a prompt without images, since the model reads only text; load a vision-language model",
  );

const notWithCache = (operation: string, name: string): ArgumentError =>
  new ArgumentError(operation, "withCache", `${name} cannot be combined with a cache, which holds one text per row`);

/**
 * Returns the positions of tokens in rows of several texts, and a mask of the keys in the same text.
 * @throws {ArgumentError}
 */
function segmentInputs(
  operation: string,
  tokens: Tensor,
  segments: readonly (readonly number[])[],
  padding: readonly number[] | undefined,
): Required<Pick<AttentionInputs, "positions" | "mask">> {
  const [batch, count] = tupleOf(tokens.shape, 2);
  const lengthOf = (row: readonly number[]) => row.reduce((sum, length) => sum + length, 0);
  if (padding !== undefined || segments.length !== batch || segments.some((row) => lengthOf(row) !== count))
    throw new ArgumentError(
      operation,
      "invalidSegments",
      `expected segments for ${batch} rows whose lengths add up to ${count}, without padding; ` +
        `got sums [${segments.map(lengthOf).join(", ")}]${padding === undefined ? "" : " and padding"}`,
    );
  const positions = new Int32Array(batch * count);
  const isSame = new Uint8Array(batch * count * count);
  for (const [row, lengths] of segments.entries()) {
    let first = 0;
    for (const length of lengths) {
      for (let at = 0; at < length; at++) {
        positions[row * count + first + at] = at;
        const keys = (row * count + first + at) * count + first;
        isSame.fill(1, keys, keys + length);
      }
      first += length;
    }
  }
  return {
    positions: tensor(positions, { shape: [batch, count] }),
    mask: tensor(isSame, { shape: [batch, 1, count, count], dtype: "bool" }),
  };
}

/** Returns the stream of the last token. */
function lastOf({ residual, addition }: ResidualStream): ResidualStream {
  const last = (x: Tensor) => narrow(x, 1, -1, 1);
  return { residual: last(residual), ...(addition && { addition: last(addition) }) };
}
