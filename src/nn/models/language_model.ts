import { describeValue } from "../../core/describe.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aNumber, choice, flag, instanceOf, listOf } from "../../core/kinds.ts";
import type { NumberRule } from "../../core/options.ts";
import { named, parameters, reading } from "../../core/parameters.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { narrow } from "../../ops/view/slice.ts";
import { isInteger } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { KeyValueCache, type KeyValueCacheOptions, type Positions } from "../cache/cache.ts";
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

/** What a {@link LanguageModel} takes besides tokens. */
export interface LanguageModelInputs {
  /** Keys and values of the previous tokens. Those of these tokens are appended. */
  readonly cache?: KeyValueCache | undefined;
  /** Whether to compute only the logits of the last token. Default false. */
  readonly lastOnly?: boolean | undefined;
  /**
   * How many tokens at the start of each row are padding, so that texts of different lengths end together. Nothing
   * attends to them, positions count from the first token behind them, and their own logits mean nothing. With a cache
   * it is the same at each call. Default: none.
   */
  readonly padding?: readonly number[] | undefined;
  /**
   * The lengths of the texts in each row, one behind the other: none attends to another, and positions count from the
   * first token of each. Not with a cache or padding. Default: a row is one text.
   */
  readonly segments?: readonly (readonly number[])[] | undefined;
  /**
   * Whether nothing of a block is kept for the backward pass but its input: see {@link checkpoint}. Not with a cache.
   * Default false.
   */
  readonly checkpoint?: boolean | undefined;
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
});

/** Options of {@link LanguageModel.newCache}. */
export type CacheOptions = Pick<KeyValueCacheOptions, "format">;
const readCache = parameters("LanguageModel.newCache", { format: named(choice(...cacheFormats)) });

/** A layer of a {@link LanguageModel}: attention and a feed-forward. */
export interface DecodingBlock extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  /** @internal */
  advance(stream: ResidualStream, inputs?: AttentionInputs): Required<ResidualStream>;
}

/** @internal What blocks take. */
export interface BlockInputs {
  readonly cache?: KeyValueCache | undefined;
  readonly isCheckpointed?: boolean;
  readonly own: Omit<AttentionInputs, "cache">;
}

/** @internal What tells how long texts are. */
export type TextInputs = Pick<LanguageModelInputs, "cache" | "padding" | "segments">;

/** The base class of {@link GPT} and {@link Llama}: what `generate` needs of a model. */
export abstract class LanguageModel extends Module<[tokens: Tensor, inputs?: LanguageModelInputs], Tensor> {
  /** The number of tokens in the vocabulary. */
  abstract readonly vocabularySize: number;
  /** The maximum number of tokens in a sequence. */
  abstract readonly contextLength: number;
  /**
   * Whether only the distances between positions matter, so that a full cache can drop its oldest token. Otherwise a
   * text that is longer than the context is computed again from its last tokens.
   */
  abstract readonly hasRelativePositions: boolean;
  abstract readonly tokenEmbedding: Embedding | QuantizedEmbedding;
  abstract readonly blocks: readonly DecodingBlock[];
  abstract readonly finalNorm: Normalization;
  /** The output projection to logits; null if it is the token embedding's weight (tied weights). */
  abstract readonly head: Linear | QuantizedLinear | null;

  /**
   * The logits of the next token, for each position.
   *
   * @param tokens integers below `vocabularySize`, [batch, tokens]
   * @returns logits [batch, tokens, vocabularySize]; with `lastOnly` [batch, 1, vocabularySize]
   *
   * @throws {ShapeError} for another rank, and more tokens than the context has left. @throws {ArgumentError} for a
   * token that is not in the vocabulary (on Metal when the logits are read). @throws {DTypeError} for tokens that are
   * not integers.
   */
  override forward(tokens: Tensor, inputs?: LanguageModelInputs): Tensor {
    return this.logitsOf(this.hiddenStates(tokens, inputs));
  }

  /**
   * What the logits are a projection of: the residual stream after the last norm.
   *
   * @param tokens integers below `vocabularySize`, [batch, tokens]
   * @returns [batch, tokens, width]; with `lastOnly` [batch, 1, width]
   *
   * @throws {ShapeError} @throws {ArgumentError} @throws {DTypeError} as {@link forward}.
   */
  hiddenStates(tokens: Tensor, inputs?: LanguageModelInputs): Tensor {
    const { cache, lastOnly, padding, segments, checkpoint: isCheckpointed } = readInputs([inputs]);
    const name = this.constructor.name;
    const position = cache?.position ?? 0;
    this.checkTokens(tokens, position);
    const positions = cache?.positionsOf(tokens.shape[1]!) ?? 0;
    if (cache && (segments || isCheckpointed)) throw notWithCache(name, segments ? "segments" : "checkpoint");
    const own = segments
      ? segmentInputs(name, tokens, segments, padding)
      : padding && paddedInputs(name, tokens, positions, padding, this.contextLength);
    const lengths = this.lengthsOf(tokens, { cache, padding, segments });
    const stream = this.throughBlocks(tokens, positions, { cache, isCheckpointed, own: { ...own, lengths } });
    return normalize(this.finalNorm, lastOnly ? lastOf(stream) : stream).out;
  }

  /** @internal The stream behind the last block. `own`: what each block takes. */
  protected throughBlocks(tokens: Tensor, positions: Positions, inputs: BlockInputs): ResidualStream {
    const { cache, isCheckpointed = false, own } = inputs;
    let stream: ResidualStream = { residual: this.embed(tokens, own.positions ?? positions) };
    for (const [index, block] of this.blocks.entries())
      stream = isCheckpointed
        ? { residual: checkpoint((x) => block.forward(x, own), stream.residual) }
        : advanced(block, stream, { cache: cache?.layers[index], ...own });
    return stream;
  }

  /** @internal Tokens of longer texts are rotated otherwise, all of them (LongRoPE). */
  get originalContextLength(): number {
    return Infinity;
  }

  /** @internal What a model whose rotations depend on it tells its blocks of the lengths of texts. */
  protected lengthsOf(_tokens: Tensor, _inputs: TextInputs): readonly number[] | undefined {
    return undefined;
  }

  /** @internal The logits of normalized hidden states. */
  logitsOf(out: Tensor): Tensor {
    return this.head ? this.head.forward(out) : this.tokenEmbedding.asLinear(out);
  }

  /** @internal The input of the first block. */
  protected abstract embed(tokens: Tensor, positions: Positions): Tensor;

  /** @internal How many tokens a token attends to, for each layer; undefined for all in every layer. */
  protected get windows(): readonly number[] | undefined {
    return undefined;
  }

  /**
   * A cache for the keys and values of `contextLength` tokens, of layers with a window only for those of the window.
   * Its memory grows as tokens are appended.
   *
   * @throws {ArgumentError} for another format.
   */
  newCache(options?: CacheOptions): KeyValueCache;
  newCache(...values: unknown[]): KeyValueCache {
    const { format } = readCache(values);
    return new KeyValueCache(this.blocks.length, this.contextLength, { format, windows: this.windows });
  }

  /**
   * Loads weights by Hugging Face's names, converted to the model's dtypes: all of them, or none.
   *
   * @param tensors by name, or an open safetensors file
   *
   * @throws {StateDictError} listing what is missing, what is unexpected, and what has another shape.
   */
  loadHuggingFace(tensors: Readonly<StateDict> | TensorSource, options?: LoadOptions): LoadReport {
    return reading(`${this.constructor.name}.loadHuggingFace`, () =>
      loadMapped(this, this.huggingFaceMappings(), tensors, readLoadOptions(options)),
    );
  }

  /** The weights by Hugging Face's names, as views. Saved with `saveSafetensors`, `transformers` reads the file. */
  huggingFaceState(): StateDict {
    return huggingFaceState(this, this.huggingFaceMappings());
  }

  /** @internal */
  abstract huggingFaceMappings(): TensorMapping[];

  private checkTokens(tokens: Tensor, position: number): void {
    const name = this.constructor.name;
    if (!Tensor.isTensor(tokens))
      throw new ArgumentError(name, "notATensor", `expected tokens to be a tensor, got ${describeValue(tokens)}`);
    tokens.checkAlive(name);
    if (!isInteger(tokens.dtype))
      throw new DTypeError(name, "notIntegers", `expected tokens to be integers, got ${tokens.describe()}`);
    if (tokens.rank !== 2 || tokens.size === 0)
      throw new ShapeError(
        name,
        "wrongShape",
        `expected tokens to have a nonempty shape [batch, tokens], got ${tokens.describe()}`,
      );
    const [before, count] = [this.hasRelativePositions ? 0 : position, tokens.shape[1]!];
    const got = before > 0 ? `${count} after ${before}` : count;
    if (before + count > this.contextLength)
      throw new ShapeError(
        name,
        "sequenceTooLong",
        `expected at most ${this.contextLength} tokens, got ${got}; pass only the last ones`,
      );
  }
}

/** The stream behind a block: by its `forward`, where that has hooks. */
const advanced = (block: DecodingBlock, stream: ResidualStream, inputs: AttentionInputs): ResidualStream =>
  hasHooks(block) ? { residual: block.forward(sumOf(stream), inputs) } : block.advance(stream, inputs);

/**
 * @internal The positions of tokens in rows that begin with padding, and which keys are tokens.
 *
 * @throws {ArgumentError} for padding that is not one number for each row.
 */
export function paddedInputs(
  operation: string,
  tokens: Tensor,
  position: Positions,
  padding: readonly number[],
  contextLength: number,
): Required<Pick<AttentionInputs, "positions" | "mask">> {
  if (typeof position !== "number")
    throw new ArgumentError(
      operation,
      "invalidPadding",
      "expected no padding with a batch of caches, of which each has its own positions",
    );
  const [batch, count] = tokens.shape as readonly [number, number];
  const length = position + count;
  if (padding.length !== batch || padding.some((own) => own >= length))
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
  for (const [row, own] of padding.entries()) {
    for (let at = 0; at < count; at++) positions[row * count + at] = Math.max(0, position + at - own);
    isToken.fill(1, row * length + own, (row + 1) * length);
  }
  return {
    positions: tensor(positions, { shape: [batch, count] }),
    mask: tensor(isToken, { shape: [batch, 1, 1, length], dtype: "bool" }),
  };
}

const notWithCache = (operation: string, name: string): ArgumentError =>
  new ArgumentError(operation, "withCache", `expected no ${name} with a cache, whose keys are those of one text a row`);

/** The positions of tokens in rows of several texts, and which keys are of the same text. @throws {ArgumentError} */
function segmentInputs(
  operation: string,
  tokens: Tensor,
  segments: readonly (readonly number[])[],
  padding: readonly number[] | undefined,
): Required<Pick<AttentionInputs, "positions" | "mask">> {
  const [batch, count] = tokens.shape as readonly [number, number];
  const lengthOf = (row: readonly number[]) => row.reduce((sum, own) => sum + own, 0);
  if (padding !== undefined || segments.length !== batch || segments.some((row) => lengthOf(row) !== count))
    throw new ArgumentError(
      operation,
      "invalidSegments",
      `expected segments, without padding, to be lists of lengths for ${batch} rows, with sums of ${count}, ` +
        `got sums of [${segments.map(lengthOf).join(", ")}]${padding === undefined ? "" : " and padding"}`,
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

/** The stream of the last token. */
function lastOf({ residual, addition }: ResidualStream): ResidualStream {
  const last = (x: Tensor) => narrow(x, 1, -1, 1);
  return { residual: last(residual), ...(addition && { addition: last(addition) }) };
}
