/** The decoder of an {@link EncoderDecoder}. */
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { KeyValueCache } from "../../cache/cache.ts";
import { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import type { QuantizedEmbedding } from "../../quantized/embedding.ts";
import { newNorm } from "../decoder/block.ts";
import type { EncoderDescription } from "../encoder/description.ts";
import { bucketScores } from "../encoder/distances.ts";
import { positionRows } from "../encoder/positions.ts";
import { CrossDecoderBlock } from "./block.ts";
import type { EncodedTexts } from "./encoded.ts";

/** @internal Inputs of {@link CrossDecoder}. */
export interface CrossDecoderInputs {
  readonly encoded: EncodedTexts;
  readonly cache: KeyValueCache | undefined;
  /** The table of token embeddings, if the decoder has none. */
  readonly embedding: Embedding | QuantizedEmbedding;
}

/**
 * The decoder of an {@link EncoderDecoder}.
 *
 * | parameter | shape |
 * |---|---|
 * | `tokenEmbedding.weight` | [vocabularySize, width]; null if it is the encoder's |
 * | `positionEmbedding.weight` | [positions, width], if positions are learned |
 * | `embeddingNorm.weight` | [width], if there is one |
 * | `distanceEmbedding.weight` | [buckets, heads] of T5; null for others |
 * | `distanceEmbeddings.0.weight` | [buckets, heads] of each block of UMT5; an empty list for others |
 * | `blocks.0. …` | see {@link CrossDecoderBlock} |
 * | `finalNorm.weight` | [width], if there is one |
 */
export class CrossDecoder extends Module<[tokens: Tensor, inputs: CrossDecoderInputs], Tensor> {
  readonly tokenEmbedding: Embedding | QuantizedEmbedding | null;
  readonly positionEmbedding: Embedding | null;
  readonly embeddingNorm: Normalization | null;
  readonly distanceEmbedding: Embedding | null;
  readonly distanceEmbeddings: readonly Embedding[];
  readonly blocks: readonly CrossDecoderBlock[];
  readonly finalNorm: Normalization | null;
  readonly #description: EncoderDescription;

  constructor(description: EncoderDescription, hasEmbedding: boolean, options: LayerOptions) {
    super();
    const { vocabularySize, width, norm, normPlace, embeddings, layers, distances, finalNorm } = description;
    const { positions } = embeddings;
    const shared = layerOptions(options);
    const buckets = distances?.kind === "buckets" ? distances : undefined;
    const table = () => new Embedding(buckets!.rows, buckets!.heads, shared);
    this.#description = description;
    this.tokenEmbedding = hasEmbedding ? new Embedding(vocabularySize, width, shared) : null;
    this.positionEmbedding = positions && !positions.sinusoids ? new Embedding(positions.count, width, shared) : null;
    this.embeddingNorm = embeddings.norm ? newNorm(width, norm, shared) : null;
    this.distanceEmbedding = buckets && !buckets.perBlock ? table() : null;
    this.distanceEmbeddings = buckets?.perBlock ? layers.map(table) : [];
    this.blocks = layers.map((layer) => new CrossDecoderBlock({ ...shared, width, norm, normPlace, layer }));
    this.finalNorm = finalNorm ? newNorm(width, norm, shared) : null;
  }

  /** @param tokens integers, [rows, tokens] @returns hidden states [rows, tokens, width] */
  override forward(tokens: Tensor, { encoded, cache, embedding }: CrossDecoderInputs): Tensor {
    const start = cache?.position ?? 0;
    const count = tokens.shape[1];
    let x = this.embed(tokens, this.tokenEmbedding ?? embedding, start);
    const biasOf = this.biases(count, start + count);
    for (const [index, block] of this.blocks.entries()) {
      const held = encoded.held(index, block.crossAttention, cache !== undefined);
      x = block.forward(x, { cache: cache?.layers[index], bias: biasOf(index), held, mask: encoded.mask });
    }
    return this.finalNorm ? this.finalNorm.forward(x) : x;
  }

  private embed(tokens: Tensor, table: Embedding | QuantizedEmbedding, start: number): Tensor {
    const { scale = 1, positions } = this.#description.embeddings;
    const embedded = table.forward(tokens);
    const scaled = scale === 1 ? embedded : mul(embedded, scale);
    const placed = positions
      ? add(scaled, positionRows(this.positionEmbedding, positions, tokens, scaled, start))
      : scaled;
    return this.embeddingNorm ? this.embeddingNorm.forward(placed) : placed;
  }

  /** Returns the numbers that are added to the scores of a block. */
  private biases(queries: number, keys: number): (block: number) => Tensor | undefined {
    const { distances } = this.#description;
    if (distances?.kind !== "buckets") return () => undefined;
    const scores = (table: Embedding) => bucketScores(table, { ...distances, queries, keys, bothWays: false });
    const shared = this.distanceEmbedding ? scores(this.distanceEmbedding) : undefined;
    return (block) => shared ?? scores(this.distanceEmbeddings[block]);
  }
}
