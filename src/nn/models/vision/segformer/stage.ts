/** A stage of the encoder of a {@link SemanticSegmenter}. */
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { Conv2d } from "../../../layers/convolution.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { Module } from "../../../layers/module.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import { activations } from "../../decoder/feed_forward.ts";
import { type Grid, gridOfPlanes, planesOf, tokensOf } from "../planes.ts";
import { ProjectedAttention } from "../projected_attention.ts";
import type { SegmenterDescription, SegmenterStageDescription } from "./description.ts";

type Activation = SegmenterDescription["activation"];

/**
 * A feed-forward with a convolution over the grid of tokens, which gives tokens information about their position:
 * down(activation(convolution(up(x)))).
 *
 * | parameter | shape |
 * |---|---|
 * | `up.weight`, `down.weight` | [hidden, width], [width, hidden] |
 * | `convolution.weight` | [hidden, 1, 3, 3], one filter for each channel |
 */
export class MixFeedForward extends Module<[x: Tensor, grid: Grid], Tensor> {
  readonly up: Linear | QuantizedLinear;
  readonly convolution: Conv2d;
  readonly down: Linear | QuantizedLinear;
  readonly #activation: Activation;

  constructor({ width, hidden }: SegmenterStageDescription, activation: Activation, options: LayerOptions) {
    super();
    const shared = layerOptions(options);
    this.#activation = activation;
    this.up = new Linear(width, hidden, shared);
    this.convolution = new Conv2d(hidden, hidden, 3, { ...shared, padding: 1, groups: hidden });
    this.down = new Linear(hidden, width, { ...shared, residual: true });
  }

  /** @param x [batch, tokens, width] @returns the same shape */
  override forward(x: Tensor, grid: Grid): Tensor {
    const mixed = tokensOf(this.convolution.forward(planesOf(this.up.forward(x), grid)));
    return this.down.forward(activations[this.#activation](mixed));
  }
}

/**
 * A block of the encoder:
 *
 *     h = x + attention(attentionNorm(x))
 *     y = h + feedForward(feedForwardNorm(h))
 *
 * Keys and values come from a smaller grid: reductionNorm(reduction(…)), a convolution without overlap.
 */
export class SegmenterBlock extends Module<[x: Tensor, grid: Grid], Tensor> {
  readonly attentionNorm: LayerNorm;
  readonly attention: ProjectedAttention;
  readonly reduction: Conv2d | null;
  readonly reductionNorm: LayerNorm | null;
  readonly feedForwardNorm: LayerNorm;
  readonly feedForward: MixFeedForward;

  constructor(stage: SegmenterStageDescription, activation: Activation, options: LayerOptions) {
    super();
    const { width, heads, reduction: factor } = stage;
    const shared = layerOptions(options);
    this.attentionNorm = new LayerNorm(width, shared);
    this.attention = new ProjectedAttention(width, heads, shared);
    this.reduction = factor > 1 ? new Conv2d(width, width, factor, { ...shared, stride: factor }) : null;
    this.reductionNorm = factor > 1 ? new LayerNorm(width, shared) : null;
    this.feedForwardNorm = new LayerNorm(width, shared);
    this.feedForward = new MixFeedForward(stage, activation, shared);
  }

  /** @param x [batch, tokens, width] @returns the same shape */
  override forward(x: Tensor, grid: Grid): Tensor {
    return tidy(() => {
      const normed = this.attentionNorm.forward(x);
      const others = this.reduced(normed, grid);
      const h = add(x, this.attention.forward(normed, others, others));
      return add(h, this.feedForward.forward(this.feedForwardNorm.forward(h), grid));
    });
  }

  private reduced(x: Tensor, grid: Grid): Tensor {
    const { reduction, reductionNorm } = this;
    return reduction ? reductionNorm!.forward(tokensOf(reduction.forward(planesOf(x, grid)))) : x;
  }
}

/**
 * Overlapping patches, and the blocks over them.
 *
 * | parameter | shape |
 * |---|---|
 * | `patch.weight` | [width, channels, patch, patch] |
 * | `patchNorm.weight`, `norm.weight` | [width], before and after the blocks |
 * | `blocks.0. …` | see {@link SegmenterBlock} |
 */
export class SegmenterStage extends Module<[planes: Tensor], Tensor> {
  readonly patch: Conv2d;
  readonly patchNorm: LayerNorm;
  readonly blocks: readonly SegmenterBlock[];
  readonly norm: LayerNorm;

  constructor(channels: number, stage: SegmenterStageDescription, activation: Activation, options: LayerOptions) {
    super();
    const { width, patch, stride, layers } = stage;
    const shared = layerOptions(options);
    this.patch = new Conv2d(channels, width, patch, { ...shared, stride, padding: Math.floor(patch / 2) });
    this.patchNorm = new LayerNorm(width, shared);
    this.blocks = Array.from({ length: layers }, () => new SegmenterBlock(stage, activation, shared));
    this.norm = new LayerNorm(width, shared);
  }

  /** @param planes [batch, channels, height, width] @returns [batch, width, rows, columns] */
  override forward(planes: Tensor): Tensor {
    return tidy(() => {
      const patches = this.patch.forward(planes);
      const grid = gridOfPlanes(patches);
      let x: Tensor = this.patchNorm.forward(tokensOf(patches));
      for (const block of this.blocks) x = block.forward(x, grid);
      return planesOf(this.norm.forward(x), grid);
    });
  }
}
