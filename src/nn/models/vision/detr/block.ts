/** Blocks of the transformer of a {@link Detr} model. */
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Module } from "../../../layers/module.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import { DecoderFeedForward } from "../../decoder/feed_forward.ts";
import { ProjectedAttention } from "../projected_attention.ts";
import type { DetrDescription, DetrStack } from "./description.ts";

/** The places of an image, which queries attend to. */
export interface DetrMemory {
  /** The encoder's states, [batch, places, width]. */
  readonly states: Tensor;
  /** The positions of these states, [1, places, width]. */
  readonly positions: Tensor;
}

/** Settings that all blocks of a model share. */
export interface DetrBlockSizes extends Pick<DetrDescription, "width" | "activation"> {
  /** Added to the variances of norms. Default 1e-5. */
  readonly eps?: number | undefined;
}

/**
 * A block. Positions are added to queries and keys, but not to values:
 *
 *     h = attentionNorm(x + attention(x + positions, x + positions, x))
 *     c = crossNorm(h + crossAttention(h + positions, memory + its positions, memory)), in the decoder
 *     y = feedForwardNorm(c + feedForward(c))
 */
export class DetrBlock extends Module<[x: Tensor, positions: Tensor, memory?: DetrMemory], Tensor> {
  readonly attention: ProjectedAttention;
  readonly attentionNorm: LayerNorm;
  readonly crossAttention: ProjectedAttention | null;
  readonly crossNorm: LayerNorm | null;
  readonly feedForward: DecoderFeedForward;
  readonly feedForwardNorm: LayerNorm;

  constructor(
    { width, activation, eps }: DetrBlockSizes,
    { heads, hidden }: DetrStack,
    { isDecoder, ...options }: LayerOptions & { readonly isDecoder: boolean },
  ) {
    super();
    const shared = layerOptions(options);
    const feedForward = { hidden, activation, gated: false, bias: true };
    this.attention = new ProjectedAttention(width, heads, shared);
    this.attentionNorm = new LayerNorm(width, { ...shared, eps });
    this.crossAttention = isDecoder ? new ProjectedAttention(width, heads, shared) : null;
    this.crossNorm = isDecoder ? new LayerNorm(width, { ...shared, eps }) : null;
    this.feedForward = new DecoderFeedForward({ ...shared, width, feedForward });
    this.feedForwardNorm = new LayerNorm(width, { ...shared, eps });
  }

  /** @param x [batch, tokens, width] @param positions [1, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, positions: Tensor, memory?: DetrMemory): Tensor {
    const sum = (a: Tensor, b: Tensor) => add(a, b);
    return tidy(() => {
      const placed = sum(x, positions);
      let h: Tensor = this.attentionNorm.forward(sum(x, this.attention.forward(placed, placed, x)));
      if (memory) {
        const keys = sum(memory.states, memory.positions);
        const crossed = this.crossAttention!.forward(sum(h, positions), keys, memory.states);
        h = this.crossNorm!.forward(sum(h, crossed));
      }
      return this.feedForwardNorm.forward(sum(h, this.feedForward.forward(h)));
    });
  }
}
