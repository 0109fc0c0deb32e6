import { DTypeError, ShapeError } from "../../../core/errors.ts";
import { gelu } from "../../../ops/activation/gelu.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { add } from "../../../ops/elementwise/arithmetic.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { narrow } from "../../../ops/view/slice.ts";
import { isFloat } from "../../../tensor/dtype.ts";
import { expectTensor } from "../../../tensor/kinds.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { keep, tidy } from "../../../tensor/tidy.ts";
import type { PretrainedTokenizer } from "../../../text/pretrained_tokenizer.ts";
import { KeyValueCache } from "../../cache/cache.ts";
import type { KeysAndValues } from "../../cache/store.ts";
import { Conv1d } from "../../layers/convolution.ts";
import { Dropout } from "../../layers/dropout.ts";
import { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import type { QuantizedEmbedding } from "../../quantized/embedding.ts";
import { DecoderBlock, newNorm } from "../decoder/block.ts";
import { normalize, type ResidualStream } from "../decoder/residual_stream.ts";
import { checkTokenMatrix } from "../tokens.ts";
import { describeLayer, WhisperBlock, whisperNorm } from "./block.ts";
import type { WhisperDescription } from "./description.ts";
import type { WhisperSettings } from "./settings.ts";

/** @internal Options of {@link Whisper.decodeWith}. */
export interface DecodeInputs {
  /** Number of tokens at the end whose logits are computed. Default: all. */
  readonly last?: number | undefined;
  /** Called with the input of each layer's attention to the audio. */
  readonly onCross?: ((layer: number, x: Tensor, memory: KeysAndValues) => void) | undefined;
}

/** Keys and values for generating transcripts of one batch of windows. It records no autograd history. */
export class WhisperCache implements Disposable {
  /** The keys and values of the tokens. */
  readonly tokens: KeyValueCache;
  /** @internal The keys and values of the encoder's states, for each layer. */
  readonly memories: readonly KeysAndValues[];

  /** @internal See {@link Whisper.newCache}. */
  constructor(tokens: KeyValueCache, memories: readonly KeysAndValues[]) {
    this.tokens = tokens;
    this.memories = memories;
  }

  /** Frees the memory. */
  dispose(): void {
    this.tokens.dispose();
    for (const { keys, values } of this.memories) {
      keys.dispose();
      values.dispose();
    }
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/**
 * A speech recognition model of OpenAI's Whisper family: an encoder of log-mel features, and a decoder of text tokens
 * that attends to the encoder's states. `loadModel` returns it for a folder of such a model; `transcribe` runs it.
 *
 * | parameter | shape |
 * |---|---|
 * | `conv1.weight`, `conv2.weight` | [width, melBins, 3], [width, width, 3] |
 * | `audioPositionEmbedding.weight` | [audioPositions, width] |
 * | `encoderBlocks.0. …` | norms, `attention` and `feedForward` of each block of the encoder |
 * | `encoderNorm.weight` | [width] |
 * | `tokenEmbedding.weight` | [vocabularySize, width], also the output head |
 * | `positionEmbedding.weight` | [contextLength, width] |
 * | `blocks.0. …` | norms, `attention`, `crossAttention` and `feedForward` of each block of the decoder |
 * | `finalNorm.weight` | [width] |
 *
 * Source: A. Radford et al., "Robust speech recognition via large-scale weak supervision", 2022.
 */
export class Whisper extends Module<[features: Tensor, tokens: Tensor], Tensor> {
  readonly conv1: Conv1d;
  readonly conv2: Conv1d;
  readonly audioPositionEmbedding: Embedding;
  readonly encoderBlocks: readonly DecoderBlock[];
  readonly encoderNorm: Normalization;
  readonly tokenEmbedding: Embedding | QuantizedEmbedding;
  readonly positionEmbedding: Embedding;
  readonly blocks: readonly WhisperBlock[];
  readonly finalNorm: Normalization;
  readonly dropout: Dropout;
  /** Where the weights were loaded from: `owner/name` for a model in Hugging Face's cache, else the path. */
  origin: string | undefined = undefined;
  readonly #description: WhisperDescription;
  #settings: WhisperSettings | undefined;
  #tokenizer: PretrainedTokenizer | undefined;

  constructor(description: WhisperDescription, options: LayerOptions = {}) {
    super();
    const { width, melBins, audioPositions, vocabularySize, contextLength, encoder, decoder, dropout } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    const block = { ...shared, width, norm: whisperNorm, layer: describeLayer(description, encoder, true) };
    const layer = describeLayer(description, decoder, false);
    this.#description = description;
    this.conv1 = new Conv1d(melBins, width, 3, { ...shared, padding: 1 });
    this.conv2 = new Conv1d(width, width, 3, { ...shared, padding: 1, stride: 2 });
    this.audioPositionEmbedding = new Embedding(audioPositions, width, shared);
    this.encoderBlocks = Array.from({ length: encoder.layers }, () => new DecoderBlock(block));
    this.encoderNorm = newNorm(width, whisperNorm, shared);
    this.tokenEmbedding = new Embedding(vocabularySize, width, shared);
    this.positionEmbedding = new Embedding(contextLength, width, shared);
    this.blocks = Array.from({ length: decoder.layers }, () => new WhisperBlock(width, layer, shared));
    this.finalNorm = newNorm(width, whisperNorm, shared);
    this.dropout = new Dropout(dropout);
  }

  /** The description that the model was built from. */
  get description(): WhisperDescription {
    return this.#description;
  }

  /** The special tokens; undefined for a model that was not loaded. */
  get settings(): WhisperSettings | undefined {
    return this.#settings;
  }

  set settings(settings: WhisperSettings | undefined) {
    this.#settings = settings;
  }

  /** The tokenizer of the model's folder; undefined if it has none. */
  get tokenizer(): PretrainedTokenizer | undefined {
    return this.#tokenizer;
  }

  set tokenizer(tokenizer: PretrainedTokenizer | undefined) {
    this.#tokenizer = tokenizer;
  }

  /** @internal The number of elements of keys and values that a cache keeps for each token. */
  get cacheElements(): number {
    return 2 * this.#description.decoder.layers * this.#description.width;
  }

  /** @internal Whether the token embedding is also the output head. */
  get usesWholeEmbedding(): boolean {
    return true;
  }

  /** The number of tokens in the vocabulary. */
  get vocabularySize(): number {
    return this.#description.vocabularySize;
  }

  /** The number of frames of 10 ms in a window. */
  get windowFrames(): number {
    return 2 * this.#description.audioPositions;
  }

  /**
   * Computes the logits of the next token at each position, for training.
   *
   * @param features [batch, melBins, windowFrames], see `logMelFeatures`
   * @param tokens integers below `vocabularySize`, [batch, tokens]
   * @returns [batch, tokens, vocabularySize]
   *
   * @throws {ShapeError} for other shapes, and more tokens than the context. @throws {DTypeError} for tokens that are
   * not integers, or features that are not floats.
   */
  override forward(features: Tensor, tokens: Tensor): Tensor {
    return this.decode(tokens, this.encode(features));
  }

  /**
   * Computes the encoder's states.
   *
   * @param features [batch, melBins, windowFrames], see `logMelFeatures`
   * @returns [batch, audioPositions, width]
   *
   * @throws {ShapeError} for another shape. @throws {DTypeError} for features that are not floats.
   */
  encode(features: Tensor): Tensor {
    this.checkFeatures(features);
    return tidy(() => {
      const { weight } = this.audioPositionEmbedding;
      const given = toDType(features, this.conv1.weight.dtype);
      const convolved = gelu(this.conv2.forward(gelu(this.conv1.forward(given))));
      let stream: ResidualStream = {
        residual: this.dropout.forward(add(transpose(convolved, 1, 2), weight)),
      };
      for (const block of this.encoderBlocks) stream = block.advance(stream);
      return normalize(this.encoderNorm, stream).out;
    });
  }

  /**
   * Computes the logits of the next token at each position.
   *
   * @param tokens integers below `vocabularySize`, [batch, tokens]
   * @param states the encoder's states [batch, audioPositions, width], or a cache of them and of earlier tokens
   * @returns [batch, tokens, vocabularySize]
   *
   * @throws {ShapeError} for other shapes, and more tokens than the context has left. @throws {DTypeError} for tokens
   * that are not integers.
   */
  decode(tokens: Tensor, states: Tensor | WhisperCache): Tensor {
    return this.decodeWith(tokens, states);
  }

  /** @internal {@link decode} with options. */
  decodeWith(tokens: Tensor, states: Tensor | WhisperCache, { last, onCross }: DecodeInputs = {}): Tensor {
    checkTokenMatrix("Whisper", tokens);
    const cache = states instanceof WhisperCache ? states : undefined;
    const position = cache?.tokens.position ?? 0;
    this.checkRoom(tokens.shape[1], position);
    return tidy(() => {
      let stream: ResidualStream = { residual: this.embed(tokens, position) };
      for (const [index, block] of this.blocks.entries()) {
        const memory = cache ? cache.memories[index] : block.crossAttention.memoryOf(states as Tensor);
        const watch = onCross && ((x: Tensor) => onCross(index, x, memory));
        stream = block.forward(stream, { memory, cache: cache?.tokens.layers[index], onCross: watch });
      }
      const { out } = normalize(this.finalNorm, stream);
      const count = tokens.shape[1];
      return this.tokenEmbedding.asLinear(last === undefined ? out : narrow(out, 1, count - last, last));
    });
  }

  /**
   * Creates a cache for decoding: it computes the keys and values of the encoder's states once.
   *
   * @param states [batch, audioPositions, width]
   */
  newCache(states: Tensor): WhisperCache {
    const { decoder, contextLength } = this.#description;
    const memories = this.blocks.map(({ crossAttention }) => {
      const { keys, values } = tidy(() => crossAttention.memoryOf(states));
      return { keys: keep(keys), values: keep(values) };
    });
    return new WhisperCache(new KeyValueCache(decoder.layers, contextLength), memories);
  }

  private embed(tokens: Tensor, position: number): Tensor {
    const positions = narrow(this.positionEmbedding.weight, 0, position, tokens.shape[1]);
    return this.dropout.forward(add(this.tokenEmbedding.forward(tokens), positions));
  }

  private checkRoom(count: number, position: number): void {
    const { contextLength } = this.#description;
    if (position + count <= contextLength) return;
    throw new ShapeError(
      "Whisper",
      "sequenceTooLong",
      `expected at most ${contextLength - position} tokens, got ${count}; pass only the last ones`,
    );
  }

  private checkFeatures(features: Tensor): void {
    expectTensor("Whisper", "features", features);
    const { melBins } = this.#description;
    if (!isFloat(features.dtype))
      throw new DTypeError("Whisper", "notFloat", `expected features to be floats, got ${features.describe()}`);
    if (features.rank === 3 && features.shape[1] === melBins && features.shape[2] === this.windowFrames) return;
    throw new ShapeError(
      "Whisper",
      "wrongShape",
      `expected features [batch, ${melBins}, ${this.windowFrames}], got ${features.describe()}; ` +
        "pad them with zeros, or pass a part",
    );
  }
}
