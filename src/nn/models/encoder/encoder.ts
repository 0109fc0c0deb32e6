import { ArgumentError, ShapeError } from "../../../core/errors.ts";
import { aNumber, listOf } from "../../../core/kinds.ts";
import type { NumberRule } from "../../../core/options.ts";
import { type Kind, named, parameters } from "../../../core/parameters.ts";
import { tupleOf } from "../../../core/tuples.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { tensor } from "../../../ops/creation/tensor.ts";
import { mul } from "../../../ops/elementwise/arithmetic.ts";
import { div } from "../../../ops/elementwise/division.ts";
import { embedding } from "../../../ops/embedding/embedding.ts";
import { sum } from "../../../ops/reduction/sum.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { select } from "../../../ops/view/slice.ts";
import { unsqueeze } from "../../../ops/view/squeeze.ts";
import { aTensor } from "../../../tensor/kinds.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import type { PretrainedTokenizer } from "../../../text/pretrained_tokenizer.ts";
import { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import { newNorm } from "../decoder/block.ts";
import { Decoder } from "../decoder/decoder.ts";
import type { EncoderName } from "../loading/encoder/architectures.ts";
import { encoderPlaces } from "../loading/encoder/names.ts";
import { checkTokenMatrix } from "../tokens.ts";
import type { EncoderInputs as BlockInputs } from "./attention.ts";
import { EncoderBlock } from "./block.ts";
import { decodedStates } from "./decoded.ts";
import type { EncoderDescription, EncoderTask, HeadDescription } from "./description.ts";
import { bucketScores, distanceIndices } from "./distances.ts";
import { EncoderEmbeddings } from "./embeddings.ts";
import { EncoderHead } from "./head.ts";
import type { EncoderLabels } from "./labels.ts";
import { type Packing, packed, packingOf, unpacked } from "./packing.ts";
import type { SentenceHead } from "./sentence.ts";

/** Optional inputs of an {@link Encoder}. */
export interface EncoderInputs {
  /**
   * The number of tokens of each row; the others, at the end of the row, are padding. No token attends to padding, and
   * results for padding are meaningless. Default: no row has padding.
   */
  readonly lengths?: readonly number[] | undefined;
  /** The type of each token, integers [batch, tokens]: 1 for the second text of a pair. Default: 0. */
  readonly tokenTypes?: Tensor | undefined;
}

const wholeFromOne: NumberRule = {
  holds: (value) => Number.isSafeInteger(value) && value >= 1,
  expected: "a whole number of at least 1",
};

const plainInputs: BlockInputs = { mask: undefined, bias: undefined, distances: undefined };

const readInputs = parameters("Encoder.forward", {
  lengths: named(listOf(aNumber(wholeFromOne), "a list of whole numbers")),
  tokenTypes: named(aTensor as Kind<Tensor>),
});

/**
 * A model whose tokens attend to all tokens of a text, such as BERT: for embeddings of texts, classification, answers
 * to questions, and masked tokens. `loadModel` returns it for a folder of such a model.
 *
 * | parameter | shape |
 * |---|---|
 * | `embeddings. …` | see {@link EncoderEmbeddings}; null for a language model |
 * | `decoder. …` | see {@link Decoder}: a language model such as EmbeddingGemma; null for others |
 * | `blocks.0. …` | `attentionNorm`, `attention`, `feedForwardNorm` and `feedForward` of each block |
 * | `distanceEmbedding.weight` | [buckets, heads] of MPNet and T5, [2 · span, width] of DeBERTa; null for others |
 * | `distanceEmbeddings.0.weight` | [buckets, heads] of each block of UMT5; an empty list for others |
 * | `finalNorm.weight` | [width], if there is one |
 * | `head. …` | see {@link EncoderHead}; null for a model without a head |
 */
export class Encoder extends Module<[tokens: Tensor, inputs?: EncoderInputs], Tensor> {
  readonly embeddings: EncoderEmbeddings | null;
  readonly decoder: Decoder | null;
  readonly distanceEmbedding: Embedding | null;
  readonly distanceEmbeddings: readonly Embedding[];
  readonly distanceNorm: Normalization | null;
  readonly blocks: readonly EncoderBlock[];
  readonly finalNorm: Normalization | null;
  readonly head: EncoderHead | null;
  /** The steps after the hidden states in a model of sentence-transformers; null for other models. */
  sentence: SentenceHead | null = null;
  readonly #description: EncoderDescription;
  #tokenizer: PretrainedTokenizer | undefined;
  #labels: EncoderLabels | undefined;
  /**
   * Where the weights were loaded from: `owner/name` for a model in Hugging Face's cache, else the path. Undefined for
   * a model that was not loaded.
   */
  origin: string | undefined = undefined;

  constructor(description: EncoderDescription, options: LayerOptions = {}) {
    super();
    const { width, norm, normPlace, embeddings, layers, distances, finalNorm, head, vocabularySize, decoder } =
      description;
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    this.#description = description;
    this.embeddings = decoder ? null : new EncoderEmbeddings({ ...shared, vocabularySize, width, norm, embeddings });
    this.decoder = decoder ? new Decoder(decoder, options) : null;
    const isBuckets = distances?.kind === "buckets";
    const table = () =>
      isBuckets
        ? new Embedding(distances.rows, distances.heads, shared)
        : new Embedding(2 * distances!.span, width, shared);
    const perBlock = isBuckets && distances.perBlock === true;
    this.distanceEmbedding = distances && !perBlock ? table() : null;
    this.distanceEmbeddings = perBlock ? layers.map(table) : [];
    this.distanceNorm = distances?.kind === "disentangled" && distances.norm ? newNorm(width, norm, shared) : null;
    this.blocks = layers.map((layer) => new EncoderBlock({ ...shared, width, norm, normPlace, layer }));
    this.finalNorm = finalNorm ? newNorm(width, norm, shared) : null;
    this.head = head ? new EncoderHead({ ...shared, width, norm, head }) : null;
  }

  /** The description that the model was built from. */
  get description(): EncoderDescription {
    return this.#description;
  }

  /** @internal An encoder has no cache. */
  get cacheElements(): number {
    return 0;
  }

  /** @internal Whether the token embedding is also the output of the head. */
  get usesWholeEmbedding(): boolean {
    return this.#description.head?.tied === true;
  }

  /** @internal Returns Hugging Face's names of the layers, by path in the model. */
  huggingFaceNames(): Map<string, string> {
    if (this.decoder) {
      const names = [...this.decoder.huggingFaceNames()].map(([path, name]) => [`decoder.${path}`, name] as const);
      return new Map([...names, ...(this.head ? [["head.output", "score"] as const] : [])]);
    }
    const places = encoderPlaces(this.#description.architecture as EncoderName, this.#description);
    // a model without a head uses the last name, which has no prefix
    return new Map(places.map(({ path, names }) => [path, names.at(this.head ? 0 : -1)!]));
  }

  /** The number of tokens in the vocabulary. */
  get vocabularySize(): number {
    return this.#description.vocabularySize;
  }

  /** The maximum number of tokens in a text. */
  get contextLength(): number {
    return this.#description.contextLength;
  }

  /** The task of the head; undefined for a model without a head. */
  get task(): EncoderTask | undefined {
    return this.#description.head?.task;
  }

  /** The tokenizer of the model's folder; undefined if it has none. */
  get tokenizer(): PretrainedTokenizer | undefined {
    return this.#tokenizer;
  }

  set tokenizer(tokenizer: PretrainedTokenizer | undefined) {
    this.#tokenizer = tokenizer;
  }

  /** The names of the head's results, and how they become probabilities; undefined without such a head. */
  get labels(): EncoderLabels | undefined {
    return this.#labels;
  }

  set labels(labels: EncoderLabels | undefined) {
    this.#labels = labels;
  }

  /**
   * Computes the results of the head; without a head, the hidden states.
   *
   * @param tokens integers below `vocabularySize`, [batch, tokens]
   * @returns `classify`: [batch, labels]; `tag`: [batch, tokens, labels]; `answer`: [batch, tokens, 2], the scores of
   * the start and the end of the answer; `fillMask`: [batch, tokens, vocabularySize]; no head: [batch, tokens, width]
   *
   * @throws {ShapeError} for another rank, and more tokens than the context. @throws {ArgumentError} for a token that
   * is not in the vocabulary (on Metal, when the result is read). @throws {DTypeError} for tokens that are not
   * integers.
   */
  override forward(tokens: Tensor, inputs?: EncoderInputs): Tensor {
    const { head } = this;
    const states = this.hiddenStates(tokens, inputs);
    if (!head) return states;
    return tidy(() => {
      const { task, pooling } = this.#description.head!;
      const pooled = task === "classify" ? this.pool(states, pooling, tokens, inputs?.lengths) : states;
      return head.forward(pooled, this.embeddings?.token);
    });
  }

  /** @internal Returns the hidden state of each text, [batch, width], for a classifier. */
  protected pool(
    states: Tensor,
    pooling: HeadDescription["pooling"],
    _tokens: Tensor,
    lengths: readonly number[] | undefined,
  ): Tensor {
    if (pooling === "mean") return meanOfTokens(states, lengths);
    return pooling === "last" && lengths
      ? statesAt(
          states,
          lengths.map((length) => length - 1),
        )
      : select(states, 1, pooling === "last" ? -1 : 0);
  }

  /**
   * Computes the hidden states of the last block.
   *
   * @param tokens integers below `vocabularySize`, [batch, tokens]
   * @returns [batch, tokens, width]
   *
   * @throws {ShapeError} @throws {ArgumentError} @throws {DTypeError} as {@link forward}.
   */
  hiddenStates(tokens: Tensor, inputs?: EncoderInputs): Tensor {
    const { lengths, tokenTypes } = readInputs([inputs]);
    this.checkTokens(tokens);
    this.checkInputs(tokens, lengths, tokenTypes);
    if (this.decoder) return decodedStates(this.decoder, tokens, lengths);
    return tidy(() => {
      const embedded = this.embeddings!.forward(tokens, tokenTypes);
      const packing = packingOf(lengths, tokens.shape[1]);
      let x = packing ? packed(embedded, packing) : embedded;
      const inputsOf = this.blockInputs(tokens.shape[1], lengths, packing);
      for (const index of this.#description.order) x = this.blocks[index].forward(x, inputsOf(index));
      const states = this.finalNorm ? this.finalNorm.forward(x) : x;
      return packing ? unpacked(states, packing) : states;
    });
  }

  /** Returns the inputs of a block by its index. */
  private blockInputs(
    count: number,
    lengths: readonly number[] | undefined,
    packing: Packing | undefined,
  ): (block: number) => BlockInputs {
    const { distances } = this.#description;
    if (!distances) return () => ({ ...plainInputs, packing });
    const mask = packing ? unsqueeze(unsqueeze(textMask(lengths!, count), 1), 1) : undefined;
    if (distances?.kind === "buckets") {
      const scores = (table: Embedding) =>
        bucketScores(table, { ...distances, queries: count, keys: count, bothWays: true });
      const bias = this.distanceEmbedding ? scores(this.distanceEmbedding) : undefined;
      return (block) => ({ mask, packing, bias: bias ?? scores(this.distanceEmbeddings[block]), distances: undefined });
    }
    const embeddings = unsqueeze(this.distanceEmbedding!.weight, 0);
    const normalized = this.distanceNorm ? this.distanceNorm.forward(embeddings) : embeddings;
    const shared = { embeddings: normalized, ...distanceIndices(count, distances) };
    return () => ({ mask, packing, bias: undefined, distances: shared });
  }

  private checkTokens(tokens: Tensor): void {
    const name = "Encoder";
    checkTokenMatrix(name, tokens);
    if (tokens.shape[1] > this.contextLength)
      throw new ShapeError(
        name,
        "sequenceTooLong",
        `expected at most ${this.contextLength} tokens, got ${tokens.shape[1]}; pass only the first ones`,
      );
  }

  private checkInputs(tokens: Tensor, lengths: readonly number[] | undefined, tokenTypes: Tensor | undefined): void {
    const [batch, count] = tupleOf(tokens.shape, 2);
    if (lengths && (lengths.length !== batch || lengths.some((length) => length > count)))
      throw new ArgumentError(
        "Encoder",
        "invalidLengths",
        `expected lengths to be one number from 1 to ${count} for each of ${batch} rows, got [${lengths.join(", ")}]`,
      );
    if (!tokenTypes) return;
    if (!this.embeddings?.tokenType)
      throw new ArgumentError(
        "Encoder",
        "noTokenTypes",
        `${this.#description.architecture} has no token types; omit tokenTypes`,
      );
    if (tokenTypes.rank !== 2 || tokenTypes.shape[0] !== batch || tokenTypes.shape[1] !== count)
      throw new ShapeError(
        "Encoder",
        "wrongShape",
        `expected tokenTypes to have the shape of tokens, [${batch}, ${count}], got ${tokenTypes.describe()}`,
      );
  }
}

/** @internal Returns which tokens are not padding: bool [batch, count]. */
export function textMask(lengths: readonly number[], count: number): Tensor<"bool"> {
  const isText = new Uint8Array(lengths.length * count);
  for (const [row, length] of lengths.entries()) isText.fill(1, row * count, row * count + length);
  return tensor(isText, { shape: [lengths.length, count], dtype: "bool" });
}

/** @internal Returns the mean of the hidden states of the tokens that are not padding: [batch, width]. */
export function meanOfTokens(states: Tensor, lengths: readonly number[] | undefined): Tensor {
  const [batch, count] = tupleOf(states.shape, 2);
  const textLengths = lengths ?? Array<number>(batch).fill(count);
  const isText = unsqueeze(toDType(textMask(textLengths, count), states.dtype), 2);
  const counts = toDType(tensor([...textLengths], { shape: [batch, 1], dtype: "float32" }), states.dtype);
  return div(sum(mul(states, isText), { dim: 1 }), counts);
}

/** @internal Returns the hidden state of one token of each text, [batch, width]. */
export function statesAt(states: Tensor, places: readonly number[]): Tensor {
  const [batch, count, width] = tupleOf(states.shape, 3);
  const rows = tensor(
    Int32Array.from(places, (place, row) => row * count + place),
    { shape: [batch] },
  );
  return embedding(rows, reshape(states, [-1, width]));
}
