import { describeValue } from "../../../core/describe.ts";
import { ArgumentError, ShapeError } from "../../../core/errors.ts";
import { flag, instanceOf } from "../../../core/kinds.ts";
import { named, parameters, reading } from "../../../core/parameters.ts";
import { tupleOf } from "../../../core/tuples.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { detach } from "../../../ops/gradient/backward.ts";
import { crossEntropy } from "../../../ops/loss/cross_entropy.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import type { PretrainedTokenizer } from "../../../text/pretrained_tokenizer.ts";
import { KeyValueCache } from "../../cache/cache.ts";
import { type LayerOptions, layerOptions, llamaInitialization, zeroParameter } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import { Encoder, type EncoderInputs } from "../encoder/encoder.ts";
import type { EncoderDecoderName } from "../loading/encoder_decoder/architectures.ts";
import { encoderDecoderPlaces } from "../loading/encoder_decoder/names.ts";
import { checkTokenMatrix } from "../tokens.ts";
import { CrossDecoder } from "./decoder.ts";
import type { EncoderDecoderDescription } from "./description.ts";
import { EncodedTexts } from "./encoded.ts";
import type { BatchDefaults, TextSettings } from "./texts.ts";

/** Optional inputs of {@link EncoderDecoder.decode}. */
export interface DecodeInputs {
  /** The key/value cache of the previous tokens. Keys and values of the new tokens are appended. */
  readonly cache?: KeyValueCache | undefined;
  /** Whether to compute the logits of the last token only. Default false. */
  readonly lastOnly?: boolean | undefined;
}

const readDecode = parameters("EncoderDecoder.decode", {
  cache: named(instanceOf(KeyValueCache, "a KeyValueCache")),
  lastOnly: named(flag, false),
});

/** Optional inputs of {@link EncoderDecoder.loss}. */
export interface Seq2SeqLossInputs extends Pick<EncoderInputs, "lengths"> {
  /** The label of tokens that do not count. Default −100. */
  readonly ignoreIndex?: number | undefined;
}

/** A fixed bias of logits, which is not trained. */
class LogitsBias extends Module<[logits: Tensor], Tensor> {
  readonly bias: Tensor;

  constructor(count: number, options: LayerOptions) {
    super();
    this.bias = zeroParameter([1, count], options);
  }

  /** @param logits [..., count] */
  override forward(logits: Tensor): Tensor {
    return add(logits, detach(this.bias));
  }
}

/**
 * A model that reads a text with an encoder and generates another with a decoder: T5, BART, mBART, Marian, M2M100, NLLB
 * and Pegasus. `loadModel` returns it for a folder of such a model. Use it through `nn.translate`, `nn.textToText` or
 * `nn.generateBatch`.
 *
 * | parameter | shape |
 * |---|---|
 * | `encoder. …` | see {@link Encoder} |
 * | `decoder. …` | see {@link CrossDecoder} |
 * | `head.weight` | [vocabularySize, width]; null if it is the token embedding |
 * | `logitsBias.bias` | [1, vocabularySize]; null for models without it. It is not trained |
 */
export class EncoderDecoder extends Module<
  [sources: Tensor, targets: Tensor, inputs?: Pick<EncoderInputs, "lengths">],
  Tensor
> {
  readonly encoder: Encoder;
  readonly decoder: CrossDecoder;
  readonly head: Linear | QuantizedLinear | null;
  readonly logitsBias: LogitsBias | null;
  readonly #description: EncoderDecoderDescription;
  /**
   * Where the weights were loaded from: `owner/name` for a model in Hugging Face's cache, else the path. Undefined for
   * a model that was not loaded.
   */
  origin: string | undefined = undefined;
  /** Defaults of the options of `nn.generateBatch`, which the model's files give. */
  generation: BatchDefaults = {};
  /** @internal The languages and tasks that the model's files name. */
  texts: TextSettings = { languageLast: false, source: undefined, target: undefined, tasks: new Map() };

  constructor(description: EncoderDecoderDescription, options: LayerOptions = {}) {
    super();
    const { encoder, decoder, separateEmbeddings, tied, logitsBias } = description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    this.#description = description;
    this.encoder = new Encoder(encoder, shared);
    this.decoder = new CrossDecoder(decoder, separateEmbeddings, shared);
    this.head = tied ? null : new Linear(decoder.width, decoder.vocabularySize, { ...shared, bias: false });
    this.logitsBias = logitsBias ? new LogitsBias(decoder.vocabularySize, shared) : null;
  }

  /** The description that the model was built from. */
  get description(): EncoderDecoderDescription {
    return this.#description;
  }

  /** The number of tokens in the vocabulary of generated texts. */
  get vocabularySize(): number {
    return this.#description.decoder.vocabularySize;
  }

  /** The maximum number of tokens in a generated text, including the token that it begins with. */
  get contextLength(): number {
    return this.#description.decoder.contextLength;
  }

  /** @internal The number of elements of keys and values that the decoder's cache keeps for each token. */
  get cacheElements(): number {
    const { layers } = this.#description.decoder;
    return layers.reduce((total, { attention: { heads, headWidth } }) => total + 2 * heads * headWidth, 0);
  }

  /** @internal Whether the token embedding is also the output of the head. */
  get usesWholeEmbedding(): boolean {
    return this.head === null;
  }

  /** The tokenizer of the model's folder; undefined if it has none. */
  get tokenizer(): PretrainedTokenizer | undefined {
    return this.encoder.tokenizer;
  }

  set tokenizer(tokenizer: PretrainedTokenizer | undefined) {
    this.encoder.tokenizer = tokenizer;
  }

  /**
   * Computes the logits of the next token after each token of the targets.
   *
   * @param sources integers, [batch, tokens]
   * @param targets integers, [batch, tokens]: the texts so far, from the start token on
   * @returns logits [batch, target tokens, vocabularySize]
   *
   * @throws {ShapeError} for another rank, and more tokens than the context. @throws {ArgumentError} for a token that
   * is not in the vocabulary (on Metal, when the logits are read). @throws {DTypeError} for tokens that are not
   * integers.
   */
  override forward(sources: Tensor, targets: Tensor, inputs?: Pick<EncoderInputs, "lengths">): Tensor {
    return this.decode(targets, this.encode(sources, inputs));
  }

  /**
   * Runs the encoder.
   *
   * @param tokens integers, [texts, tokens]
   * @param inputs `lengths`: the number of tokens of each text that are not padding. Default: no text has padding
   *
   * @throws {ShapeError} @throws {ArgumentError} @throws {DTypeError} as {@link forward}.
   */
  encode(tokens: Tensor, inputs?: Pick<EncoderInputs, "lengths">): EncodedTexts {
    return new EncodedTexts(this.encoder.hiddenStates(tokens, inputs), inputs?.lengths);
  }

  /**
   * Runs the decoder and the head.
   *
   * @param tokens integers, [rows, tokens]; with a cache, the tokens after the cached ones. The number of rows is a
   * multiple of the number of texts: each text has the same number of adjacent rows
   * @param encoded the result of {@link encode}
   * @returns logits [rows, tokens, vocabularySize]; with `lastOnly` [rows, 1, vocabularySize]
   *
   * @throws {ShapeError} @throws {ArgumentError} @throws {DTypeError} as {@link forward}.
   */
  decode(tokens: Tensor, encoded: EncodedTexts, inputs?: DecodeInputs): Tensor {
    const { cache, lastOnly } = readDecode([inputs]);
    this.checkTargets(tokens, encoded, cache?.position ?? 0);
    return tidy(() => {
      const states = this.decoder.forward(tokens, { encoded, cache, embedding: this.encoder.embeddings!.token });
      return this.logitsOf(lastOnly ? narrow(states, 1, -1, 1) : states);
    });
  }

  private logitsOf(states: Tensor): Tensor {
    const { headScale = 1 } = this.#description;
    const scaled = headScale === 1 ? states : mul(states, headScale);
    const embedding = this.decoder.tokenEmbedding ?? this.encoder.embeddings!.token;
    const logits = this.head ? this.head.forward(scaled) : embedding.asLinear(scaled);
    return this.logitsBias ? this.logitsBias.forward(logits) : logits;
  }

  /**
   * Computes the cross-entropy of target texts, in float32.
   *
   * @param sources integers, [batch, tokens]
   * @param labels integers, [batch, tokens]: the target texts with their end tokens, without the start token. Labels of
   * padding are `ignoreIndex`
   * @returns the mean over all labels that count
   *
   * @example
   * backward(model.loss(sources, labels, { lengths }));
   *
   * @throws {ShapeError} @throws {ArgumentError} @throws {DTypeError} as {@link forward}.
   */
  loss(sources: Tensor, labels: Tensor, { lengths, ignoreIndex = -100 }: Seq2SeqLossInputs = {}): Tensor {
    const logits = this.forward(sources, this.shiftRight(labels, ignoreIndex), { lengths });
    const rows = toDType(reshape(logits, [-1, this.vocabularySize]), "float32");
    return crossEntropy(rows, reshape(labels, [-1]), { ignoreIndex });
  }

  /**
   * Returns the decoder's input for labels: the start token, then all labels but the last. For mBART, the last label
   * that is not padding replaces the start token. Ignored labels become the padding token.
   *
   * @param labels integers, [batch, tokens] @returns int32 [batch, tokens]
   */
  shiftRight(labels: Tensor, ignoreIndex = -100): Tensor<"int32"> {
    checkTokenMatrix("EncoderDecoder", labels);
    const { startToken, paddingToken, shiftsLast } = this.#description;
    const count = labels.shape[1];
    const numbers: readonly number[] = Array.from<number | bigint, number>(labels.dataSync(), Number);
    const given = numbers.map((label) => (label === ignoreIndex ? paddingToken : label));
    const first = (row: number): number | undefined =>
      shiftsLast ? given.slice(row, row + count).findLast((label) => label !== paddingToken) : startToken;
    const shifted = Int32Array.from(given, (_, at) => (at % count === 0 ? (first(at) ?? startToken) : given[at - 1]));
    return tensor(shifted, { shape: [...labels.shape] });
  }

  /** Creates a cache for the decoder's keys and values of up to `contextLength` tokens. */
  newCache(): KeyValueCache {
    return new KeyValueCache(this.decoder.blocks.length, this.contextLength);
  }

  /** @internal Returns Hugging Face's names of the layers, by path in the model. */
  huggingFaceNames(): Map<string, string> {
    const { architecture } = this.#description;
    const places = encoderDecoderPlaces(architecture as EncoderDecoderName, this.#description);
    return new Map(places.map(({ path, names }) => [path, names[0]]));
  }

  private checkTargets(tokens: Tensor, encoded: EncodedTexts, before: number): void {
    checkTokenMatrix("EncoderDecoder", tokens);
    if (!reading("EncoderDecoder.decode", () => encoded instanceof EncodedTexts))
      throw new ArgumentError(
        "EncoderDecoder",
        "notEncoded",
        `expected encoded to be a result of encode(), got ${describeValue(encoded)}`,
      );
    const { lengths } = encoded;
    const [rows, count] = tupleOf(tokens.shape, 2);
    if (before + count > this.contextLength)
      throw new ShapeError(
        "EncoderDecoder",
        "sequenceTooLong",
        `expected at most ${this.contextLength} tokens in a generated text, got ${before + count}`,
      );
    if (rows % lengths.length !== 0)
      throw new ArgumentError(
        "EncoderDecoder",
        "wrongBatch",
        `expected a multiple of ${lengths.length} rows, the number of encoded texts, got ${rows}`,
      );
  }
}
