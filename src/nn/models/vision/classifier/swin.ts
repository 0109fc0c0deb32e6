/** Swin, built from a {@link SwinDescription}. */

import { lastElement } from "../../../../core/collections.ts";
import { ShapeError } from "../../../../core/errors.ts";
import { tupleOf } from "../../../../core/tuples.ts";
import { tensor } from "../../../../ops/creation/tensor.ts";
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import { eq } from "../../../../ops/elementwise/comparison.ts";
import { indexSelect } from "../../../../ops/indexing/gather.ts";
import { pad } from "../../../../ops/join/pad.ts";
import { roll } from "../../../../ops/join/roll.ts";
import { expand } from "../../../../ops/view/expand.ts";
import { permute } from "../../../../ops/view/permute.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { narrow } from "../../../../ops/view/slice.ts";
import { unsqueeze } from "../../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { Conv2d } from "../../../layers/convolution.ts";
import { Embedding } from "../../../layers/embedding.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { Module } from "../../../layers/module.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import { DecoderFeedForward } from "../../decoder/feed_forward.ts";
import { ProjectedAttention } from "../projected_attention.ts";
import { distancesIn, partsOf, upTo, wholeOf } from "../windows.ts";
import type { SwinDescription, SwinStageDescription } from "./description.ts";

/** How the windows of a block lie on the grid. */
interface Windows {
  /** The number of places by which windows are shifted down and to the right. */
  readonly shift: number;
  /** Whether a place attends to another one: [batch · windows, 1, places, places]. Default: to all of its window. */
  readonly mask?: Tensor<"bool"> | undefined;
}

/**
 * A pre-norm block: attention within windows, with a learned bias for each distance, then a feed-forward.
 *
 * | parameter | shape |
 * |---|---|
 * | `attentionNorm.weight`, `feedForwardNorm.weight` | [width] |
 * | `attention. …`, `feedForward. …` | see {@link ProjectedAttention} and {@link DecoderFeedForward} |
 * | `distances.weight` | [(2 · window − 1)², heads] |
 */
export class SwinBlock extends Module<[x: Tensor, windows: Windows], Tensor> {
  readonly attentionNorm: LayerNorm;
  readonly attention: ProjectedAttention;
  readonly distances: Embedding;
  readonly feedForwardNorm: LayerNorm;
  readonly feedForward: DecoderFeedForward;
  readonly #window: number;

  constructor(stage: SwinStageDescription, { window, bias, eps }: SwinDescription, options: LayerOptions) {
    super();
    const { width, heads, feedForward } = stage;
    this.#window = window;
    this.attentionNorm = new LayerNorm(width, { ...options, eps });
    this.attention = new ProjectedAttention(width, heads, options, width, bias);
    this.distances = new Embedding((2 * window - 1) ** 2, heads, options);
    this.feedForwardNorm = new LayerNorm(width, { ...options, eps });
    this.feedForward = new DecoderFeedForward({ ...options, width, feedForward });
  }

  /** @param x [batch, rows, columns, width] @returns the same shape */
  override forward(x: Tensor, windows: Windows): Tensor {
    return tidy(() => {
      const sum = add(x, this.attend(this.attentionNorm.forward(x), windows));
      return add(sum, this.feedForward.forward(this.feedForwardNorm.forward(sum)));
    });
  }

  private attend(x: Tensor, { shift, mask }: Windows): Tensor {
    const [rows, columns, width] = x.shape.slice(1);
    const size = this.#window;
    // as in transformers, places of zeros that fill the last windows are attended to
    const whole = pad(x, [0, 0, 0, upTo(columns, size) - columns, 0, upTo(rows, size) - rows]);
    const shifted = shift > 0 ? roll(whole, [-shift, -shift], { dims: [1, 2] }) : whole;
    const parts = reshape(partsOf(shifted, size), [-1, size ** 2, width]);
    const attended = this.attention.forward(parts, parts, parts, { mask, bias: this.bias() });
    const joined = wholeOf(reshape(attended, [-1, size, size, width]), whole.shape);
    const back = shift > 0 ? roll(joined, [shift, shift], { dims: [1, 2] }) : joined;
    return narrow(narrow(back, 1, 0, rows), 2, 0, columns);
  }

  /** Returns the bias of each two places of a window: [heads, places, places]. */
  private bias(): Tensor {
    const size = this.#window;
    const rows = indexSelect(this.distances.weight, 0, tensor(distancesIn(size, size)));
    return permute(reshape(rows, [size ** 2, size ** 2, -1]), [2, 0, 1]);
  }
}

/**
 * Returns which places of shifted windows attend to each other. The windows at the end of an axis have places from
 * both of its ends, which do not: [batch · windows, 1, places, places].
 */
function shiftedMask(batch: number, sides: readonly [number, number], size: number, shift: number): Tensor<"bool"> {
  const [rows, columns] = sides.map((side) => upTo(side, size)) as [number, number];
  const regionOf = (at: number, side: number) => Number(at >= side - size) + Number(at >= side - shift);
  const regions = Float32Array.from(
    { length: rows * columns },
    (_, at) => 3 * regionOf(Math.floor(at / columns), rows) + regionOf(at % columns, columns),
  );
  const parts = reshape(partsOf(tensor(regions, { shape: [1, rows, columns, 1] }), size), [-1, size ** 2]);
  const mask = eq(unsqueeze(parts, 1), unsqueeze(parts, 2));
  return reshape(expand(mask, [batch, ...mask.shape]), [-1, 1, size ** 2, size ** 2]);
}

/**
 * Blocks, and but for the last stage a projection of each 2 x 2 places to one of twice the width.
 *
 * | parameter | shape |
 * |---|---|
 * | `blocks.0. …` | see {@link SwinBlock} |
 * | `norm.weight`, `reduction.weight` | [4 · width], [2 · width, 4 · width]; null in the last stage |
 */
export class SwinStage extends Module<[x: Tensor], Tensor> {
  readonly blocks: readonly SwinBlock[];
  readonly norm: LayerNorm | null;
  readonly reduction: Linear | QuantizedLinear | null;
  readonly #window: number;

  constructor(stage: SwinStageDescription, description: SwinDescription, options: LayerOptions) {
    super();
    const { width, layers } = stage;
    const isLast = stage === lastElement(description.stages);
    this.#window = description.window;
    this.blocks = Array.from({ length: layers }, () => new SwinBlock(stage, description, options));
    this.norm = isLast ? null : new LayerNorm(4 * width, options);
    this.reduction = isLast ? null : new Linear(4 * width, 2 * width, { ...options, bias: false });
  }

  /** @param x [batch, rows, columns, width] @returns [batch, ⌈rows / 2⌉, ⌈columns / 2⌉, 2 · width] */
  override forward(x: Tensor): Tensor {
    return tidy(() => {
      const [batch, rows, columns] = tupleOf(x.shape, 4);
      const size = this.#window;
      // a window as large as the grid is not shifted
      const shift = Math.min(rows, columns) > size ? Math.floor(size / 2) : 0;
      const mask = shift > 0 && this.blocks.length > 1 ? shiftedMask(batch, [rows, columns], size, shift) : undefined;
      const states = this.blocks.reduce((y, block, at) => block.forward(y, at % 2 ? { shift, mask } : { shift: 0 }), x);
      return this.norm ? this.reduction!.forward(this.norm.forward(mergedPlaces(states))) : states;
    });
  }
}

/** Joins each 2 x 2 places, column by column: [batch, rows, columns, width] → [batch, ⌈rows / 2⌉, …, 4 · width]. */
function mergedPlaces(x: Tensor): Tensor {
  const [batch, rows, columns, width] = tupleOf(x.shape, 4);
  const [down, across] = [Math.ceil(rows / 2), Math.ceil(columns / 2)];
  const even = pad(x, [0, 0, 0, columns % 2, 0, rows % 2]);
  const pairs = permute(reshape(even, [batch, down, 2, across, 2, width]), [0, 1, 3, 4, 2, 5]);
  return reshape(pairs, [batch, down, across, 4 * width]);
}

/**
 * Swin with its last norm.
 *
 * | parameter | shape |
 * |---|---|
 * | `patch.weight` | [width, channels, patch, patch] |
 * | `patchNorm.weight`, `norm.weight` | [width] of the first stage, and of the last one |
 * | `stages.0. …` | see {@link SwinStage} |
 *
 * Source: Z. Liu et al., "Swin Transformer: Hierarchical Vision Transformer using Shifted Windows", 2021.
 */
export class Swin extends Module<[pixels: Tensor], Tensor> {
  readonly patch: Conv2d;
  readonly patchNorm: LayerNorm;
  readonly stages: readonly SwinStage[];
  readonly norm: LayerNorm;
  readonly #description: SwinDescription;

  constructor(channels: number, description: SwinDescription, options: LayerOptions) {
    super();
    const { patch, stages, eps } = description;
    const shared = layerOptions(options);
    this.#description = description;
    this.patch = new Conv2d(channels, stages[0].width, patch, { ...shared, stride: patch });
    this.patchNorm = new LayerNorm(stages[0].width, shared);
    this.stages = stages.map((stage) => new SwinStage(stage, description, shared));
    this.norm = new LayerNorm(lastElement(stages).width, { ...shared, eps });
  }

  /** @param pixels [batch, channels, height, width] @returns the planes of the last stage, [batch, width, …] */
  override forward(pixels: Tensor): Tensor {
    this.checkSides(pixels);
    return tidy(() => {
      const { patch } = this.#description;
      const [height, width] = pixels.shape.slice(2);
      const whole = pad(pixels, [0, upTo(width, patch) - width, 0, upTo(height, patch) - height]);
      const places = permute(this.patch.forward(whole), [0, 2, 3, 1]);
      const states = this.stages.reduce<Tensor>((x, stage) => stage.forward(x), this.patchNorm.forward(places));
      return permute(this.norm.forward(states), [0, 3, 1, 2]);
    });
  }

  /** The grid of the last stage must have room for a window. */
  private checkSides(pixels: Tensor): void {
    const { patch, window, stages } = this.#description;
    const least = (window - 1) * patch * 2 ** (stages.length - 1) + 1;
    if (Math.min(...pixels.shape.slice(2)) >= least) return;
    throw new ShapeError(
      "ImageClassifier",
      "wrongShape",
      `expected images of at least ${least} x ${least} pixels, so that the last stage of swin has room for a window, ` +
        `got ${pixels.describe()}`,
    );
  }
}
