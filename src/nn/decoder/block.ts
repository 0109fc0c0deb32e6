/** A block of a {@link Decoder}. */

import type { SumAndNorm } from "../../ops/normalization/normalize.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { AttentionInputs } from "../attention.ts";
import { normalize, type ResidualStream, sumOf } from "../block.ts";
import { type LayerOptions, layerOptions } from "../initialization.ts";
import { Module } from "../module.ts";
import { LayerNorm, type Normalization, RMSNorm } from "../normalization.ts";
import { DecoderAttention } from "./attention.ts";
import type { LayerDescription, NormDescription } from "./description.ts";
import { Experts } from "./experts.ts";
import { DecoderFeedForward } from "./feed_forward.ts";

/** What {@link DecoderBlock} is built of. */
export interface DecoderBlockOptions extends LayerOptions {
  readonly width: number;
  readonly norm: NormDescription;
  readonly layer: LayerDescription;
}

/** @internal A norm of a description. */
export const newNorm = (width: number, { kind, eps }: NormDescription, { dtype }: LayerOptions): Normalization =>
  kind === "layerNorm" ? new LayerNorm(width, { dtype, eps }) : new RMSNorm(width, { dtype, eps });

/**
 * A layer of a {@link Decoder}. Norms that a description does not have are null, and leave what they get as it is:
 *
 *     h = x + attentionPostNorm(attention(attentionNorm(x)))
 *     y = h + feedForwardPostNorm(feedForward(feedForwardNorm(h)))
 */
export class DecoderBlock extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly attentionNorm: Normalization | null;
  readonly attention: DecoderAttention;
  readonly attentionPostNorm: Normalization | null;
  readonly feedForwardNorm: Normalization | null;
  readonly feedForward: DecoderFeedForward | Experts;
  readonly feedForwardPostNorm: Normalization | null;

  constructor({ width, norm, layer, ...options }: DecoderBlockOptions) {
    super();
    const { norms, attention, feedForward } = layer;
    const own = layerOptions(options);
    const before = () => (norms === "after" ? null : newNorm(width, norm, own));
    const after = () => (norms === "before" ? null : newNorm(width, norm, own));
    this.attentionNorm = before();
    this.attention = new DecoderAttention({ ...own, width, eps: norm.eps, attention });
    this.attentionPostNorm = after();
    this.feedForwardNorm = before();
    this.feedForward = new (feedForward.experts ? Experts : DecoderFeedForward)({ ...own, width, feedForward });
    this.feedForwardPostNorm = after();
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    return tidy(() => sumOf(this.advance({ residual: x }, inputs)));
  }

  /** @internal The same on a {@link ResidualStream}, whose sum is fused with the norm that follows. */
  advance(stream: ResidualStream, inputs: AttentionInputs = {}): Required<ResidualStream> {
    return tidy(() => {
      const before = normalized(this.attentionNorm, stream);
      const attended = this.attention.forward(before.out, inputs);
      const addition = this.attentionPostNorm?.forward(attended) ?? attended;
      const { sum, out } = normalized(this.feedForwardNorm, { residual: before.sum, addition });
      const fed = this.feedForward.forward(out);
      return { residual: sum, addition: this.feedForwardPostNorm?.forward(fed) ?? fed };
    });
  }
}

/** The sum of a stream, and its norm where there is one. */
function normalized(norm: Normalization | null, stream: ResidualStream): SumAndNorm {
  if (norm) return normalize(norm, stream);
  const sum = sumOf(stream);
  return { sum, out: sum };
}
