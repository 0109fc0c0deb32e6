/** Attention of an {@link Encoder}. */
import { tupleOf } from "../../../core/tuples.ts";
import { flashAttention } from "../../../ops/attention/flash_attention.ts";
import { add } from "../../../ops/elementwise/arithmetic.ts";
import { unflatten } from "../../../ops/view/flatten.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { split } from "../../../ops/view/split.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import { projectedLayers } from "../../quantized/projected_layers.ts";
import { rotate } from "../decoder/rotation.ts";
import type { EncoderAttentionDescription } from "./description.ts";
import { DistanceGate } from "./distance_gate.ts";
import { type Distances, distanceScores } from "./distances.ts";
import { type GridRotation, rotateOnGrid } from "./grid_rotation.ts";
import { type Packing, packed, unpacked } from "./packing.ts";

/** @internal Inputs that all blocks of an encoder share in one call. */
export interface EncoderInputs {
  /** bool [batch, 1, 1, tokens], true = a token of the text; undefined if no row has padding. */
  readonly mask: Tensor<"bool"> | undefined;
  /** Added to the scores: [1, heads, tokens, tokens]. */
  readonly bias: Tensor | undefined;
  /** DeBERTa's embeddings of distances. */
  readonly distances: Distances | undefined;
  /**
   * The texts that one row packs, which do not attend to each other. Default: each row is a text. With `bias` or
   * `distances`, attention pads the texts, and `mask` is that of the padded rows.
   */
  readonly packing?: Packing | undefined;
  /** The rotation of tokens that have a place on a grid, such as the patches of an image. Default: none. */
  readonly rotation?: GridRotation | undefined;
}

/** Options of {@link EncoderAttention}. */
export interface EncoderAttentionOptions extends LayerOptions {
  readonly width: number;
  readonly attention: EncoderAttentionDescription;
}

/**
 * Applies attention among all tokens of a text.
 *
 * | parameter | shape |
 * |---|---|
 * | `query.weight`, `key.weight`, `value.weight` | [heads · headWidth, width] |
 * | `queryKeyValue.weight` | replaces these if they are fused: rows of q, then of k, then of v |
 * | `distanceKey.weight`, `distanceQuery.weight` | DeBERTa's projections of distances: as `query.weight` |
 * | `distanceGate. …` | see {@link DistanceGate}; null for models other than WavLM |
 * | `output.weight` | [width, heads · headWidth] |
 */
export class EncoderAttention extends Module<[x: Tensor, inputs: EncoderInputs], Tensor> {
  readonly query: Linear | QuantizedLinear | null;
  readonly key: Linear | QuantizedLinear | null;
  readonly value: Linear | QuantizedLinear | null;
  readonly queryKeyValue: Linear | QuantizedLinear | null;
  readonly distanceKey: Linear | QuantizedLinear | null;
  readonly distanceQuery: Linear | QuantizedLinear | null;
  readonly distanceGate: DistanceGate | null;
  readonly output: Linear | QuantizedLinear;
  readonly #description: EncoderAttentionDescription;

  constructor({ width, attention, ...options }: EncoderAttentionOptions) {
    super();
    const { heads, headWidth, bias, biases = {}, fused, distances } = attention;
    const layer = { ...layerOptions(options), bias };
    const projection = (isThere: boolean, count = 1, hasBias = bias) =>
      isThere ? new Linear(width, count * heads * headWidth, { ...layer, bias: hasBias }) : null;
    this.#description = attention;
    this.query = projection(!fused, 1, biases.query);
    this.key = projection(!fused, 1, biases.key);
    this.value = projection(!fused, 1, biases.value);
    this.queryKeyValue = projection(fused, 3);
    this.distanceKey = projection(distances?.ofKeys === true && !distances.shared, 1, distances?.keyBias);
    this.distanceQuery = projection(distances?.ofQueries === true && !distances.shared);
    this.distanceGate = attention.gatedDistances ? new DistanceGate(heads, headWidth, layerOptions(options)) : null;
    this.output = new Linear(heads * headWidth, width, { ...layer, bias: biases.output ?? bias });
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, { mask, bias, distances, packing, rotation }: EncoderInputs): Tensor {
    const { heads, headWidth, scale, window, rope, causal, alibi } = this.#description;
    const projections = this.project(x);
    // scores that are computed for all pairs of tokens of a text need rows of one length
    const padding = bias || distances ? packing : undefined;
    const [q, k, v] = tupleOf(padding ? projections.map((each) => unpacked(each, padding)) : projections, 3);
    const [lengths, positions] = [[q.shape[1]], (!padding && packing?.positions) || 0];
    const [queries, keys] = tupleOf(
      [q, k].map((rows) => rotateOnGrid(rotate(this.split(rows), rope, positions, lengths), rotation)),
      2,
    );
    const gated = bias && this.distanceGate ? this.distanceGate.forward(x, bias) : bias;
    const scores = this.scores(queries, keys, gated, distances);
    const cuSeqlens = padding ? undefined : packing?.bounds;
    const options = { scale, mask, window, causal, alibi, bias: scores, cuSeqlens };
    const attended = flashAttention(queries, keys, this.split(v), options);
    const joined = reshape(transpose(attended, 1, 2), [...q.shape.slice(0, 2), heads * headWidth]);
    return this.output.forward(padding ? packed(joined, padding) : joined);
  }

  private project(x: Tensor): readonly [q: Tensor, k: Tensor, v: Tensor] {
    const { query, key, value, queryKeyValue } = this;
    if (!queryKeyValue) return projectedLayers(x, [query!, key!, value!]);
    const { heads, headWidth } = this.#description;
    return tupleOf(split(queryKeyValue.forward(x), heads * headWidth, { dim: -1 }), 3);
  }

  /** Returns x [batch, tokens, heads · headWidth] as [batch, heads, tokens, headWidth]. */
  private split(x: Tensor): Tensor {
    const { heads, headWidth } = this.#description;
    return transpose(unflatten(x, 2, [heads, headWidth]), 1, 2);
  }

  /** Returns the numbers that are added to the scores. */
  private scores(
    queries: Tensor,
    keys: Tensor,
    bias: Tensor | undefined,
    distances: Distances | undefined,
  ): Tensor | undefined {
    const { distances: projections } = this.#description;
    if (!distances || !projections) return bias;
    const { ofKeys, ofQueries, shared } = projections;
    const project = (layer: Linear | QuantizedLinear | null) => this.split(layer!.forward(distances.embeddings));
    const scores = distanceScores(queries, keys, {
      distances,
      scale: this.#description.scale!,
      ofKeys: ofKeys ? project(shared ? this.key : this.distanceKey) : undefined,
      ofQueries: ofQueries ? project(shared ? this.query : this.distanceQuery) : undefined,
    });
    return bias && scores ? add(scores, bias) : (scores ?? bias);
  }

  /** @internal */
  override details(): string {
    const { heads, headWidth, window } = this.#description;
    return `heads: ${heads}, headWidth: ${headWidth}${window === undefined ? "" : `, window: ${window}`}`;
  }
}
