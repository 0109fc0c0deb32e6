/** Residual networks of convolutions, built from a {@link ResNetDescription}. */
import { lastElement } from "../../../../core/collections.ts";
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import { avgPool2d } from "../../../../ops/pooling/average_pool.ts";
import { maxPool2d } from "../../../../ops/pooling/max_pool.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { Conv2d } from "../../../layers/convolution.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Module } from "../../../layers/module.ts";
import { activations } from "../../decoder/feed_forward.ts";
import { FixedBatchNorm } from "../planes.ts";
import type { ResNetDescription, ResNetStageDescription } from "./description.ts";

/**
 * Applies a convolution without bias that keeps the size, divided by the stride, and a norm.
 *
 * | parameter | shape |
 * |---|---|
 * | `convolution.weight` | [outputs, inputs, kernel, kernel] |
 * | `norm.weight` | [outputs] |
 */
export class NormedConvolution extends Module<[x: Tensor], Tensor> {
  readonly convolution: Conv2d;
  readonly norm: FixedBatchNorm;

  constructor(
    inputs: number,
    outputs: number,
    { kernel, stride = 1, ...options }: LayerOptions & { readonly kernel: number; readonly stride?: number },
  ) {
    super();
    const shared = layerOptions(options);
    const padding = Math.floor(kernel / 2);
    this.convolution = new Conv2d(inputs, outputs, kernel, { ...shared, stride, padding, bias: false });
    this.norm = new FixedBatchNorm(outputs, shared);
  }

  /** @param x [batch, inputs, rows, columns] @returns [batch, outputs, ⌈rows / stride⌉, ⌈columns / stride⌉] */
  override forward(x: Tensor): Tensor {
    return this.norm.forward(this.convolution.forward(x));
  }
}

/** The place of a block. */
interface BlockPlace {
  readonly inputs: number;
  readonly width: number;
  readonly stride: number;
  /** Whether the block is the first one of its stage. */
  readonly isFirst: boolean;
}

/** @internal Whether a block has a projection as its shortcut, and an average of 2 x 2 places before it. */
export function shortcutOf(
  { block, deep }: Pick<ResNetDescription, "block" | "deep">,
  { inputs, width, stride, isFirst }: BlockPlace,
): "none" | "projected" | "pooled" {
  const isChanged = inputs !== width || stride !== 1;
  if (!deep) return isChanged ? "projected" : "none";
  // as in RT-DETR's networks, the first basic block of a stage has a projection even if nothing changes
  if (!(block === "basic" ? isFirst : isChanged)) return "none";
  return (block === "basic" ? inputs !== width : stride === 2) ? "pooled" : "projected";
}

/** A residual block: activation(shortcut(x) + convolutions(x)), with the activation between convolutions. */
export class ResNetBlock extends Module<[x: Tensor], Tensor> {
  readonly convolutions: readonly NormedConvolution[];
  /** A convolution of one pixel where the width or the size changes; null elsewhere. */
  readonly shortcut: NormedConvolution | null;
  readonly #activation: ResNetDescription["activation"];
  readonly #isPooled: boolean;

  constructor(place: BlockPlace, description: ResNetDescription, options: LayerOptions) {
    super();
    const { inputs, width, stride } = place;
    const kind = shortcutOf(description, place);
    const { block, strideAt, activation } = description;
    const of = (from: number, to: number, kernel: number, step = 1) =>
      new NormedConvolution(from, to, { ...options, kernel, stride: step });
    const inner = Math.floor(width / 4);
    const [first, second] = strideAt === "first" ? [stride, 1] : [1, stride];
    this.#activation = activation;
    this.convolutions =
      block === "basic"
        ? [of(inputs, width, 3, stride), of(width, width, 3)]
        : [of(inputs, inner, 1, first), of(inner, inner, 3, second), of(inner, width, 1)];
    this.#isPooled = kind === "pooled";
    this.shortcut = kind === "none" ? null : of(inputs, width, 1, this.#isPooled ? 1 : stride);
  }

  /** @param x [batch, inputs, rows, columns] @returns [batch, width, ⌈rows / stride⌉, ⌈columns / stride⌉] */
  override forward(x: Tensor): Tensor {
    const activate = activations[this.#activation];
    return tidy(() => {
      const last = this.convolutions.length - 1;
      let y = x;
      for (const [at, layer] of this.convolutions.entries())
        y = at < last ? activate(layer.forward(y)) : layer.forward(y);
      return activate(add(y, this.shortened(x)));
    });
  }

  private shortened(x: Tensor): Tensor {
    if (!this.shortcut) return x;
    return this.shortcut.forward(this.#isPooled ? avgPool2d(x, 2, { stride: 2, ceilMode: true }) : x);
  }
}

/**
 * A residual network without its classifier.
 *
 * | parameter | shape |
 * |---|---|
 * | `stem.0. …` | see {@link NormedConvolution}, one with a kernel of 7 and a stride of 2, or three |
 * | `stages.0.0. …` | see {@link ResNetBlock} |
 *
 * Sources: K. He et al., "Deep Residual Learning for Image Recognition", 2016; T. He et al., "Bag of Tricks for Image
 * Classification with Convolutional Neural Networks", 2019 (ResNet-D).
 */
export class ResNet extends Module<[pixels: Tensor], Tensor> {
  readonly stem: readonly NormedConvolution[];
  readonly stages: readonly (readonly ResNetBlock[])[];
  readonly #description: ResNetDescription;

  constructor(description: ResNetDescription, options: LayerOptions) {
    super();
    const { channels, stem, stages, deep } = description;
    const shared = layerOptions(options);
    const blocksOf = ({ width, layers, stride }: ResNetStageDescription, at: number) =>
      Array.from({ length: layers }, (_, index) => {
        const inputs = index > 0 ? width : (stages[at - 1]?.width ?? stem);
        const place = { inputs, width, stride: index === 0 ? stride : 1, isFirst: index === 0 };
        return new ResNetBlock(place, description, shared);
      });
    const half = Math.floor(stem / 2);
    const widths = deep ? [half, half, stem] : [stem];
    this.#description = description;
    this.stem = widths.map(
      (width, at) =>
        new NormedConvolution(widths[at - 1] ?? channels, width, {
          ...shared,
          kernel: deep ? 3 : 7,
          stride: at === 0 ? 2 : 1,
        }),
    );
    this.stages = stages.map(blocksOf);
  }

  /** @param pixels [batch, channels, height, width] @returns the planes of the last stage, [batch, width, …] */
  override forward(pixels: Tensor): Tensor {
    return tidy(() => lastElement(this.stagesOf(pixels)));
  }

  /** Returns the planes of each stage, [batch, width, …]. */
  stagesOf(pixels: Tensor): Tensor[] {
    const activate = activations[this.#description.activation];
    const stem = this.stem.reduce<Tensor>((x, layer) => activate(layer.forward(x)), pixels);
    let x: Tensor = maxPool2d(stem, 3, { stride: 2, padding: 1 });
    return this.stages.map((blocks) => {
      for (const block of blocks) x = block.forward(x);
      return x;
    });
  }
}
