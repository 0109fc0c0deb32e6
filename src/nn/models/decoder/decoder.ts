import { ArgumentError } from "../../../core/errors.ts";
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { div } from "../../../ops/elementwise/division.ts";
import { tanh } from "../../../ops/elementwise/hyperbolic.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { narrow, select } from "../../../ops/view/slice.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { KeyValueCacheBatch } from "../../cache/batch.ts";
import type { KeyValueCache, Positions } from "../../cache/cache.ts";
import { Dropout } from "../../layers/dropout.ts";
import { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import type { Normalization } from "../../layers/normalization.ts";
import type { QuantizedEmbedding } from "../../quantized/embedding.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import { layerMappings, type TensorMapping } from "../hugging_face/mappings.ts";
import {
  type BlockInputs,
  type CacheOptions,
  LanguageModel,
  paddedInputs,
  type TextInputs,
} from "../language_model.ts";
import { type ArchitectureName, rowOf } from "../loading/architectures.ts";
import { type Place, placesOf } from "../loading/names.ts";
import { AltUpBlock, Streams } from "./alt_up.ts";
import { DecoderBlock, type DecoderBlockOptions, newNorm } from "./block.ts";
import type { DecoderDescription } from "./description.ts";
import { indexHeads, Selections } from "./indexer.ts";
import { LayerInputs } from "./layer_inputs.ts";
import { LongTexts, leastOf, type Recompute } from "./long_texts.ts";
import { type ResidualStream, sumOf } from "./residual_stream.ts";
import { isRelative } from "./rotation.ts";
import { SharedKeys } from "./shared_keys.ts";

/**
 * A language model that is built from a description, as `loadModel` returns. Each weight is one tensor of a checkpoint,
 * or a part of one, so that it can be mapped from a file. `GPT` and `Llama` are presets: they create the description
 * from their options.
 *
 * | parameter | shape |
 * |---|---|
 * | `tokenEmbedding.weight` | [vocabularySize, width] |
 * | `positionEmbedding.weight` | [contextLength, width], if positions are learned |
 * | `embeddingNorm.weight` | [width]; null without this norm |
 * | `blocks.0. …` | norms, `attention` and `feedForward` of each layer |
 * | `finalNorm.weight` | [width] |
 * | `head.weight` | [vocabularySize, width], if not tied |
 */
export class Decoder extends LanguageModel {
  override readonly vocabularySize: number;
  override readonly contextLength: number;
  override readonly tokenEmbedding: Embedding | QuantizedEmbedding;
  readonly positionEmbedding: Embedding | QuantizedEmbedding | null;
  readonly embeddingNorm: Normalization | null;
  readonly dropout: Dropout | null;
  readonly layerInputs: LayerInputs | null;
  readonly streams: Streams | null;
  override readonly blocks: readonly DecoderBlock[];
  override readonly finalNorm: Normalization;
  override readonly head: Linear | QuantizedLinear | null;
  /**
   * Where the weights were loaded from: `owner/name` for a model in Hugging Face's cache, else the path. Undefined for
   * a model that was not loaded.
   */
  origin: string | undefined = undefined;
  readonly #description: DecoderDescription;
  readonly #longTexts: LongTexts | undefined;

  /** @param newBlock creates a block; presets create a `TransformerBlock` */
  constructor(
    description: DecoderDescription,
    options: LayerOptions = {},
    newBlock = (blockOptions: DecoderBlockOptions): DecoderBlock =>
      new (blockOptions.layer.altUp ? AltUpBlock : DecoderBlock)(blockOptions),
  ) {
    super();
    const { vocabularySize, contextLength, width, norm, learnedPositions, dropout, tied, layers, headBias } =
      description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    this.#description = description;
    this.vocabularySize = vocabularySize;
    this.contextLength = contextLength;
    this.tokenEmbedding = new Embedding(vocabularySize, width, shared);
    this.positionEmbedding = learnedPositions ? new Embedding(contextLength, width, shared) : null;
    this.embeddingNorm = description.embeddingNorm ? newNorm(width, norm, shared) : null;
    this.dropout = dropout === undefined ? null : new Dropout(dropout);
    this.layerInputs = description.layerInputs ? new LayerInputs(description, shared) : null;
    this.streams = description.streams ? new Streams(width, description.streams.count, shared) : null;
    this.blocks = layers.map((layer) => newBlock({ ...shared, width, norm, layer }));
    this.finalNorm = newNorm(width, norm, shared);
    this.head = tied ? null : new Linear(width, vocabularySize, { ...shared, bias: headBias ?? false });
    const original = this.originalContextLength;
    this.#longTexts = original === Infinity ? undefined : new LongTexts(original, this.recompute.bind(this));
  }

  /** The description that the model was built from. */
  get description(): DecoderDescription {
    return this.#description;
  }

  /** @internal The number of elements of keys and values that a cache keeps for each token. */
  get cacheElements(): number {
    return this.#description.layers.reduce((total, { attention: { keyValueHeads, headWidth, latent, sharing } }) => {
      if (sharing?.stores === false) return total;
      const index = latent?.index?.shared === false ? indexHeads(latent.index.headWidth, headWidth) : 0;
      return total + (keyValueHeads + index) * (headWidth + (latent?.valueWidth ?? headWidth));
    }, 0);
  }

  /** @internal */
  override get hasStates(): boolean {
    return this.#description.layers.some(({ recurrent }) => recurrent !== undefined);
  }

  /** @internal Whether the token embedding is also the output head. */
  get usesWholeEmbedding(): boolean {
    return this.head === null;
  }

  /**
   * Whether a full cache can drop its oldest token. Models with windows, or whose rotations depend on a text's length,
   * cannot.
   */
  override get hasRelativePositions(): boolean {
    const { layers } = this.#description;
    return layers.every(
      ({ attention: { rope, window, alibi, chunk }, recurrent }) =>
        (rope ? isRelative(rope) : (alibi ?? recurrent)) && window === undefined && chunk === undefined,
    );
  }

  /** @throws {ArgumentError} `bidirectional` for a model whose tokens attend to later ones. */
  override newCache(options?: CacheOptions): KeyValueCache;
  override newCache(...values: [options?: CacheOptions]): KeyValueCache {
    if (!this.#description.layers.some(({ attention }) => attention.bidirectional)) return super.newCache(...values);
    throw new ArgumentError(
      "Decoder",
      "bidirectional",
      "expected a causal model, got one whose tokens attend to later ones: it cannot cache keys and values " +
        "or generate text; use forward, hiddenStates or nn.embed",
    );
  }

  /** @internal */
  protected override get windows(): readonly number[] {
    return this.#description.layers.map(({ attention: { window = Infinity } }) => window);
  }

  /** @internal */
  protected override embed(tokens: Tensor, positions: Positions): Tensor {
    const { embeddingScale = 1 } = this.#description;
    const embedded = this.tokenEmbedding.forward(tokens);
    const scaled = embeddingScale === 1 ? embedded : mul(embedded, embeddingScale);
    const placed = this.positionEmbedding ? add(scaled, this.embedPositions(positions, tokens.shape[1])) : scaled;
    const normalized = this.embeddingNorm ? this.embeddingNorm.forward(placed) : placed;
    return this.dropout ? this.dropout.forward(normalized) : normalized;
  }

  /** @internal */
  protected override throughBlocks(tokens: Tensor, positions: Positions, inputs: BlockInputs): ResidualStream {
    const { layers } = this.#description;
    const isShared = layers.some(({ attention }) => attention.sharing);
    const isIndexed = layers.some(({ attention }) => attention.latent?.index?.shared);
    if (inputs.isCheckpointed && (isShared || isIndexed || this.layerInputs))
      throw notCheckpointed(this.#description.architecture);
    using shared = isShared ? new SharedKeys() : undefined;
    using selections = isIndexed ? new Selections() : undefined;
    const blockInputs = { ...inputs.blockInputs, shared, selections };
    return super.throughBlocks(tokens, positions, { ...inputs, blockInputs });
  }

  /** @internal */
  protected override layerInputsOf(tokens: Tensor, embedded: Tensor): ((index: number) => Tensor) | undefined {
    const all = this.layerInputs?.forward(tokens, embedded);
    return all && ((index) => select(all, 2, index));
  }

  /** @internal */
  protected override streamsOf(embedded: Tensor): Tensor {
    return this.streams ? this.streams.forward(embedded) : embedded;
  }

  /** @internal */
  protected override outputOf(stream: ResidualStream): ResidualStream {
    return this.streams ? { residual: this.streams.collapsed(sumOf(stream)) } : stream;
  }

  private embedPositions(positions: Positions, count: number): Tensor {
    const table = this.positionEmbedding!;
    return typeof positions === "number" ? table.rowsFrom(positions, count) : table.forward(positions);
  }

  /** @internal */
  override get originalContextLength(): number {
    const scalings = this.#description.layers.map(({ attention }) => attention.rope?.scaling);
    return scalings.find((scaling) => scaling?.type === "longrope")?.originalContextLength ?? Infinity;
  }

  /** @internal */
  protected override lengthsOf(tokens: Tensor, inputs: TextInputs): readonly number[] | undefined {
    const { cache, padding, segments } = inputs;
    if (this.#description.layers.every(({ attention: { rope } }) => !rope || isRelative(rope))) return undefined;
    if (cache) this.#longTexts?.prepare({ tokens, cache, padding });
    if (segments) return [Math.max(...segments.flat())];
    const caches = cache instanceof KeyValueCacheBatch ? cache.caches : [cache];
    return caches.map((one) => (one?.position ?? 0) + tokens.shape[1] - leastOf(padding));
  }

  private recompute(...[tokens, { cache, padding, length }]: Parameters<Recompute>): void {
    const padded = padding && paddedInputs(this.constructor.name, tokens, undefined, padding, this.contextLength);
    this.throughBlocks(tokens, 0, { cache, blockInputs: { ...padded, lengths: [length] } });
  }

  /** @internal */
  override logitsOf(out: Tensor): Tensor {
    const { logitSoftcap: cap, logitScale = 1 } = this.#description;
    const unscaled = super.logitsOf(out);
    const logits = logitScale === 1 ? unscaled : mul(unscaled, logitScale);
    return cap === undefined ? logits : mul(tanh(div(logits, cap)), cap);
  }

  /** @internal Returns Hugging Face's names of the layers, by path in the model. */
  huggingFaceNames(): Map<string, string> {
    return new Map(this.places().map(({ path, names }) => [path, names[0]]));
  }

  /** @internal @throws {ArgumentError} for a model whose weights differ from Hugging Face's stored form. */
  override huggingFaceMappings(): TensorMapping[] {
    const transposed = (x: Tensor) => (x.rank === 2 ? transpose(x, 0, 1) : x);
    return this.places().flatMap(({ path, names, change }) => {
      const isOther = change !== undefined && ["plusOne", "after", "reshaped", "heads"].includes(change.kind);
      if (isOther || this.hasReorderedRows()) throw this.otherForm();
      if (change?.kind !== "rows")
        return layerMappings(this, path, names, { weight: change?.kind === "transposed" ? transposed : undefined });
      const rows = (x: Tensor) => narrow(x, 0, change.first, change.count);
      return layerMappings(this, path, names, { weight: rows, bias: rows });
    });
  }

  /** @internal Whether rows of queries and keys are in llama.cpp's order. */
  hasReorderedRows(): boolean {
    const { architecture, layers } = this.#description;
    const isInterleaved = layers.some(({ attention }) => attention.rope?.interleaved === true);
    return isInterleaved && !rowOf(architecture as ArchitectureName).interleaved;
  }

  private places(): readonly Place[] {
    const { architecture } = this.#description;
    return placesOf(architecture as ArchitectureName, this.#description, "huggingFace");
  }

  private otherForm(): ArgumentError {
    return new ArgumentError(
      "huggingFaceState",
      "otherForm",
      `expected a model with weights in Hugging Face's form, got ${this.#description.architecture}, whose norms ` +
        "or rows differ; use stateDict()",
    );
  }
}

const notCheckpointed = (architecture: string): ArgumentError =>
  new ArgumentError(
    "Decoder",
    "checkpoint",
    `checkpoint: true is not supported by ${architecture}, whose layers depend on each other; leave it out`,
  );
