/** Residual networks of convolutions, built from a {@link ResNetDescription}. */
import { add } from "../../../../ops/elementwise/arithmetic.ts";
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

/** A residual block: activation(shortcut(x) + convolutions(x)), with the activation between convolutions. */
export class ResNetBlock extends Module<[x: Tensor], Tensor> {
  readonly convolutions: readonly NormedConvolution[];
  /** A convolution of one pixel where the width or the size changes; null elsewhere. */
  readonly shortcut: NormedConvolution | null;
  readonly #activation: ResNetDescription["activation"];

  constructor(inputs: number, width: number, stride: number, description: ResNetDescription, options: LayerOptions) {
    super();
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
    this.shortcut = inputs === width && stride === 1 ? null : of(inputs, width, 1, stride);
  }

  /** @param x [batch, inputs, rows, columns] @returns [batch, width, ⌈rows / stride⌉, ⌈columns / stride⌉] */
  override forward(x: Tensor): Tensor {
    const activate = activations[this.#activation];
    return tidy(() => {
      const last = this.convolutions.length - 1;
      let y = x;
      for (const [at, layer] of this.convolutions.entries())
        y = at < last ? activate(layer.forward(y)) : layer.forward(y);
      return activate(add(y, this.shortcut ? this.shortcut.forward(x) : x) as Tensor);
    });
  }
}

/**
 * A residual network without its classifier.
 *
 * | parameter | shape |
 * |---|---|
 * | `stem. …` | see {@link NormedConvolution}, with a kernel of 7 and a stride of 2 |
 * | `stages.0.0. …` | see {@link ResNetBlock} |
 *
 * Source: K. He et al., "Deep Residual Learning for Image Recognition", 2016.
 */
export class ResNet extends Module<[pixels: Tensor], Tensor> {
  readonly stem: NormedConvolution;
  readonly stages: readonly (readonly ResNetBlock[])[];
  readonly #description: ResNetDescription;

  constructor(description: ResNetDescription, options: LayerOptions) {
    super();
    const { channels, stem, stages } = description;
    const shared = layerOptions(options);
    const blocksOf = ({ width, layers, stride }: ResNetStageDescription, at: number) =>
      Array.from({ length: layers }, (_, index) => {
        const inputs = index > 0 ? width : (stages[at - 1]?.width ?? stem);
        return new ResNetBlock(inputs, width, index === 0 ? stride : 1, description, shared);
      });
    this.#description = description;
    this.stem = new NormedConvolution(channels, stem, { ...shared, kernel: 7, stride: 2 });
    this.stages = stages.map(blocksOf);
  }

  /** @param pixels [batch, channels, height, width] @returns the planes of the last stage, [batch, width, …] */
  override forward(pixels: Tensor): Tensor {
    return tidy(() => {
      const stem = activations[this.#description.activation](this.stem.forward(pixels));
      let x: Tensor = maxPool2d(stem, 3, { stride: 2, padding: 1 });
      for (const block of this.stages.flat()) x = block.forward(x);
      return x;
    });
  }
}
