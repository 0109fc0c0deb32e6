/** Layers that compute one vector from the hidden states of an image. */
import { tupleOf } from "../../../core/tuples.ts";
import { flashAttention } from "../../../ops/attention/flash_attention.ts";
import { add } from "../../../ops/elementwise/arithmetic.ts";
import { expand } from "../../../ops/view/expand.ts";
import { unflatten } from "../../../ops/view/flatten.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { select } from "../../../ops/view/slice.ts";
import { split } from "../../../ops/view/split.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import { newNorm } from "../decoder/block.ts";
import type { NormDescription } from "../decoder/description.ts";
import { DecoderFeedForward } from "../decoder/feed_forward.ts";
import type { EncoderActivation } from "../encoder/description.ts";
import { headActivations } from "../encoder/head.ts";
import type { VisionPooling } from "./description.ts";

interface PoolingOptions extends LayerOptions {
  readonly width: number;
  readonly norm: NormDescription;
}

/**
 * Computes activation(dense(first token's state)).
 *
 * | parameter | shape |
 * |---|---|
 * | `dense.weight` | [pooled width, width] |
 */
export class DensePooling extends Module<[states: Tensor], Tensor> {
  readonly dense: Linear | QuantizedLinear;
  readonly #activation: EncoderActivation;

  constructor(pooling: VisionPooling & { readonly kind: "dense" }, { width, ...options }: PoolingOptions) {
    super();
    this.dense = new Linear(width, pooling.width, layerOptions(options));
    this.#activation = pooling.activation;
  }

  /** @param states [batch, tokens, width] @returns [batch, pooled width] */
  override forward(states: Tensor): Tensor {
    return headActivations[this.#activation](this.dense.forward(select(states, 1, 0)));
  }
}

/**
 * Computes h + feedForward(norm(h)), where h is the attention of a learned query to all tokens.
 *
 * | parameter | shape |
 * |---|---|
 * | `probe.weight` | [1, width], the query |
 * | `queryKeyValue.weight` | [3 · width, width]: rows of q, then of k, then of v |
 * | `output.weight` | [width, width] |
 * | `norm.weight` | [width] |
 * | `feedForward. …` | see {@link DecoderFeedForward} |
 *
 * Source: X. Zhai et al., "Scaling Vision Transformers", 2022.
 */
export class AttentionPooling extends Module<[states: Tensor], Tensor> {
  readonly probe: Embedding;
  readonly queryKeyValue: Linear | QuantizedLinear;
  readonly output: Linear | QuantizedLinear;
  readonly norm: Normalization;
  readonly feedForward: DecoderFeedForward;
  readonly #heads: number;

  constructor(pooling: VisionPooling & { readonly kind: "attention" }, { width, norm, ...options }: PoolingOptions) {
    super();
    const settings = layerOptions(options);
    this.probe = new Embedding(1, width, settings);
    this.queryKeyValue = new Linear(width, 3 * width, settings);
    this.output = new Linear(width, width, settings);
    this.norm = newNorm(width, norm, settings);
    this.feedForward = new DecoderFeedForward({ ...settings, width, feedForward: pooling.feedForward });
    this.#heads = pooling.heads;
  }

  /** @param states [batch, tokens, width] @returns [batch, width] */
  override forward(states: Tensor): Tensor {
    const { probe, queryKeyValue, output, norm, feedForward } = this;
    const [batch, , width] = tupleOf(states.shape, 3);
    const parts = (x: Tensor) => split(queryKeyValue.forward(x), width, { dim: -1 });
    const heads = (x: Tensor) => transpose(unflatten(x, 2, [this.#heads, width / this.#heads]), 1, 2);
    const [query] = parts(expand(probe.weight, [batch, 1, width]));
    const [, key, value] = parts(states);
    const attended = transpose(flashAttention(heads(query), heads(key), heads(value)), 1, 2);
    const x = output.forward(reshape(attended, [batch, width]));
    return add(x, feedForward.forward(norm.forward(x)));
  }
}
