/** A block of an {@link Encoder}. */
import { add } from "../../../ops/elementwise/arithmetic.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import { newNorm } from "../decoder/block.ts";
import { DecoderFeedForward } from "../decoder/feed_forward.ts";
import { normalize } from "../decoder/residual_stream.ts";
import { EncoderAttention, type EncoderInputs } from "./attention.ts";
import type { EncoderDescription, EncoderLayerDescription } from "./description.ts";

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
 */
export class EncoderBlock extends Module<[x: Tensor, inputs: EncoderInputs], Tensor> {
  readonly attentionNorm: Normalization | null;
  readonly attention: EncoderAttention;
  readonly feedForwardNorm: Normalization;
  readonly feedForward: DecoderFeedForward;
  readonly #isBefore: boolean;

  constructor({ width, norm, normPlace, layer, ...options }: EncoderBlockOptions) {
    super();
    const settings = layerOptions(options);
    this.attentionNorm = layer.attentionNorm ? newNorm(width, norm, settings) : null;
    this.attention = new EncoderAttention({ ...settings, width, attention: layer.attention });
    this.feedForwardNorm = newNorm(width, norm, settings);
    this.feedForward = new DecoderFeedForward({ ...settings, width, feedForward: layer.feedForward });
    this.#isBefore = normPlace === "before";
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, inputs: EncoderInputs): Tensor {
    return tidy(() => {
      const { attentionNorm, attention, feedForwardNorm, feedForward } = this;
      const attended = attention.forward(this.#isBefore && attentionNorm ? attentionNorm.forward(x) : x, inputs);
      const stream = { residual: x, addition: attended };
      if (this.#isBefore) {
        const { sum, out } = normalize(feedForwardNorm, stream);
        return add(sum, feedForward.forward(out)) as Tensor;
      }
      const { out: middle } = normalize(attentionNorm, stream);
      return normalize(feedForwardNorm, { residual: middle, addition: feedForward.forward(middle) }).out;
    });
  }
}
