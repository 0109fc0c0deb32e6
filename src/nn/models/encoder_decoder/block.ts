/** A block of the decoder of an {@link EncoderDecoder}. */
import { add } from "../../../ops/elementwise/arithmetic.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import { layerOptions } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import { newNorm } from "../decoder/block.ts";
import { DecoderFeedForward } from "../decoder/feed_forward.ts";
import { normalize, type ResidualStream } from "../decoder/residual_stream.ts";
import type { EncoderBlockOptions } from "../encoder/block.ts";
import { CausalAttention, type CausalInputs, CrossAttention, type CrossInputs } from "./attention.ts";

/** @internal */
export type CrossBlockInputs = CausalInputs & CrossInputs;

/**
 * A block of the decoder: attention to earlier tokens, attention to the encoder's result, and the feed-forward. With
 * norms after each part f
 *
 *     y = norm(x + f(x))
 *
 * and with norms before it
 *
 *     y = x + f(norm(x))
 */
export class CrossDecoderBlock extends Module<[x: Tensor, inputs: CrossBlockInputs], Tensor> {
  readonly attentionNorm: Normalization;
  readonly attention: CausalAttention;
  readonly crossAttentionNorm: Normalization;
  readonly crossAttention: CrossAttention;
  readonly feedForwardNorm: Normalization;
  readonly feedForward: DecoderFeedForward;
  readonly #isBefore: boolean;

  constructor({ width, norm, normPlace, layer, ...options }: EncoderBlockOptions) {
    super();
    const settings = layerOptions(options);
    const { attention, feedForward } = layer;
    this.attentionNorm = newNorm(width, norm, settings);
    this.attention = new CausalAttention({ ...settings, width, attention });
    this.crossAttentionNorm = newNorm(width, norm, settings);
    this.crossAttention = new CrossAttention({ ...settings, width, attention });
    this.feedForwardNorm = newNorm(width, norm, settings);
    this.feedForward = new DecoderFeedForward({ ...settings, width, feedForward });
    this.#isBefore = normPlace === "before";
  }

  /** @param x [rows, tokens, width] @returns [rows, tokens, width] */
  override forward(x: Tensor, inputs: CrossBlockInputs): Tensor {
    return tidy(() => {
      const parts = [
        [this.attentionNorm, (rows: Tensor) => this.attention.forward(rows, inputs)],
        [this.crossAttentionNorm, (rows: Tensor) => this.crossAttention.forward(rows, inputs)],
        [this.feedForwardNorm, (rows: Tensor) => this.feedForward.forward(rows)],
      ] as const;
      if (!this.#isBefore)
        return parts.reduce((rows, [norm, part]) => normalize(norm, { residual: rows, addition: part(rows) }).out, x);
      let stream: ResidualStream = { residual: x };
      for (const [norm, part] of parts) {
        const { sum, out } = normalize(norm, stream);
        stream = { residual: sum, addition: part(out) };
      }
      return add(stream.residual, stream.addition!);
    });
  }
}
