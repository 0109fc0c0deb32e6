/** A block of an {@link Encoder}. */
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import { type LayerOptions, layerOptions, oneParameter } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import { newNorm } from "../decoder/block.ts";
import { DecoderFeedForward } from "../decoder/feed_forward.ts";
import { normalize } from "../decoder/residual_stream.ts";
import { EncoderAttention, type EncoderInputs } from "./attention.ts";
import type { EncoderDescription, EncoderLayerDescription } from "./description.ts";

/**
 * Multiplies each element of hidden states by a learned factor.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [width] |
 *
 * Source: H. Touvron et al., "Going Deeper with Image Transformers", 2021.
 */
export class LayerScale extends Module<[x: Tensor], Tensor> {
  readonly weight: Tensor;

  constructor(width: number, options: LayerOptions) {
    super();
    this.weight = oneParameter([width], options);
  }

  /** @param x [..., width] @returns [..., width] */
  override forward(x: Tensor): Tensor {
    return mul(x, this.weight);
  }
}

/** Options of {@link EncoderBlock}. */
export interface EncoderBlockOptions extends LayerOptions, Pick<EncoderDescription, "width" | "norm" | "normPlace"> {
  readonly layer: EncoderLayerDescription;
}

/**
 * A block of an {@link Encoder}. With norms after attention and feed-forward
 *
 *     h = attentionNorm(x + attention(x))
 *     y = feedForwardNorm(h + feedForward(h))
 *
 * and with norms before them
 *
 *     h = x + attention(attentionNorm(x))
 *     y = h + feedForward(feedForwardNorm(h))
 *
 * With layer scales, the results of attention and feed-forward are multiplied by `attentionScale` and
 * `feedForwardScale`.
 */
export class EncoderBlock extends Module<[x: Tensor, inputs: EncoderInputs], Tensor> {
  readonly attentionNorm: Normalization | null;
  readonly attention: EncoderAttention;
  readonly feedForwardNorm: Normalization;
  readonly feedForward: DecoderFeedForward;
  readonly attentionScale: LayerScale | null;
  readonly feedForwardScale: LayerScale | null;
  readonly #isBefore: boolean;

  constructor({ width, norm, normPlace, layer, ...options }: EncoderBlockOptions) {
    super();
    const settings = layerOptions(options);
    this.attentionNorm = layer.attentionNorm ? newNorm(width, norm, settings) : null;
    this.attention = new EncoderAttention({ ...settings, width, attention: layer.attention });
    this.feedForwardNorm = newNorm(width, norm, settings);
    this.feedForward = new DecoderFeedForward({ ...settings, width, feedForward: layer.feedForward });
    this.attentionScale = layer.layerScale ? new LayerScale(width, settings) : null;
    this.feedForwardScale = layer.layerScale ? new LayerScale(width, settings) : null;
    this.#isBefore = normPlace === "before";
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, inputs: EncoderInputs): Tensor {
    return tidy(() => {
      const { attentionNorm, attention, attentionScale, feedForwardNorm } = this;
      const result = attention.forward(this.#isBefore && attentionNorm ? attentionNorm.forward(x) : x, inputs);
      const attended = attentionScale ? attentionScale.forward(result) : result;
      const stream = { residual: x, addition: attended };
      if (this.#isBefore) {
        const { sum, out } = normalize(feedForwardNorm, stream);
        return add(sum, this.scaledFeedForward(out));
      }
      const { out: middle } = normalize(attentionNorm, stream);
      return normalize(feedForwardNorm, { residual: middle, addition: this.scaledFeedForward(middle) }).out;
    });
  }

  private scaledFeedForward(x: Tensor): Tensor {
    const { feedForward, feedForwardScale } = this;
    return feedForwardScale ? feedForwardScale.forward(feedForward.forward(x)) : feedForward.forward(x);
  }
}
