/** A block of the decoder of an {@link RtDetr} model. */
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Module } from "../../../layers/module.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import { DecoderFeedForward } from "../../decoder/feed_forward.ts";
import { ProjectedAttention } from "../projected_attention.ts";
import { DeformableAttention, type LevelStates } from "./deformable_attention.ts";
import type { RtDetrDescription } from "./description.ts";

/**
 * A block, with the positions p of the queries' boxes:
 *
 *     h = attentionNorm(x + attention(x + p, x + p, x))
 *     c = crossNorm(h + crossAttention(h + p, boxes, memory))
 *     y = feedForwardNorm(c + feedForward(c))
 */
export class RtDetrBlock extends Module<[x: Tensor, positions: Tensor, boxes: Tensor, memory: LevelStates], Tensor> {
  readonly attention: ProjectedAttention;
  readonly attentionNorm: LayerNorm;
  readonly crossAttention: DeformableAttention;
  readonly crossNorm: LayerNorm;
  readonly feedForward: DecoderFeedForward;
  readonly feedForwardNorm: LayerNorm;

  constructor(description: RtDetrDescription, options: LayerOptions) {
    super();
    const { width, decoder, decoderActivation: activation, eps } = description;
    const shared = layerOptions(options);
    const norm = () => new LayerNorm(width, { ...shared, eps });
    const feedForward = { hidden: decoder.hidden, activation, gated: false, bias: true };
    this.attention = new ProjectedAttention(width, decoder.heads, shared);
    this.attentionNorm = norm();
    this.crossAttention = new DeformableAttention(description, shared);
    this.crossNorm = norm();
    this.feedForward = new DecoderFeedForward({ ...shared, width, feedForward });
    this.feedForwardNorm = norm();
  }

  /** @param x [batch, queries, width] @param boxes [batch, queries, 4] @returns [batch, queries, width] */
  override forward(x: Tensor, positions: Tensor, boxes: Tensor, memory: LevelStates): Tensor {
    const sum = (a: Tensor, b: Tensor) => add(a, b);
    return tidy(() => {
      const placed = sum(x, positions);
      const h = this.attentionNorm.forward(sum(x, this.attention.forward(placed, placed, x)));
      const c = this.crossNorm.forward(sum(h, this.crossAttention.forward(sum(h, positions), boxes, memory)));
      return this.feedForwardNorm.forward(sum(c, this.feedForward.forward(c)));
    });
  }
}
