/** ConvNeXt and ConvNeXt V2, built from a {@link ConvNextDescription}. */
import { add, mul, square } from "../../../../ops/elementwise/arithmetic.ts";
import { div } from "../../../../ops/elementwise/division.ts";
import { sqrt } from "../../../../ops/elementwise/power.ts";
import { mean } from "../../../../ops/reduction/mean.ts";
import { sum } from "../../../../ops/reduction/sum.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { tidy } from "../../../../tensor/tidy.ts";
import { Conv2d } from "../../../layers/convolution.ts";
import { type LayerOptions, layerOptions, zeroParameter } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { Module } from "../../../layers/module.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import { activations } from "../../decoder/feed_forward.ts";
import { LayerScale } from "../../encoder/block.ts";
import { gridOfPlanes, planesOf, tokensOf } from "../planes.ts";
import type { ConvNextDescription } from "./description.ts";

/** The eps of all norms but the last, which no config changes. */
const EPS = 1e-6;

const PER_PLANE = 7;

/**
 * Global response normalization: y = weight · x · ‖x‖ / (mean of ‖x‖ + eps) + bias + x, where ‖x‖ is the norm of a
 * channel over all places.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight`, `bias` | [channels] |
 *
 * Source: S. Woo et al., "ConvNeXt V2: co-designing and scaling ConvNets with masked autoencoders", 2023, section 3.3.
 */
export class ResponseNorm extends Module<[x: Tensor], Tensor> {
  readonly weight: Tensor;
  readonly bias: Tensor;

  constructor(channels: number, options: LayerOptions) {
    super();
    this.weight = zeroParameter([channels], options);
    this.bias = zeroParameter([channels], options);
  }

  /** @param x [batch, tokens, channels] @returns the same shape */
  override forward(x: Tensor): Tensor {
    const norms = sqrt(sum(square(x), { dim: 1, keepdim: true }));
    const response = div(norms, add(mean(norms, { dim: -1, keepdim: true }), EPS));
    return add(add(mul(this.weight, mul(x, response)), this.bias), x);
  }
}

/** A block: x + scale · down(responses(activation(up(norm(convolution(x)))))). */
export class ConvNextBlock extends Module<[planes: Tensor], Tensor> {
  readonly convolution: Conv2d;
  readonly norm: LayerNorm;
  readonly up: Linear | QuantizedLinear;
  readonly responses: ResponseNorm | null;
  readonly down: Linear | QuantizedLinear;
  readonly scale: LayerScale | null;
  readonly #activation: ConvNextDescription["activation"];

  constructor(width: number, { activation, scaled, responses }: ConvNextDescription, options: LayerOptions) {
    super();
    const shared = layerOptions(options);
    this.#activation = activation;
    this.convolution = new Conv2d(width, width, PER_PLANE, { ...shared, padding: 3, groups: width });
    this.norm = new LayerNorm(width, { ...shared, eps: EPS });
    this.up = new Linear(width, 4 * width, shared);
    this.responses = responses ? new ResponseNorm(4 * width, shared) : null;
    this.down = new Linear(4 * width, width, { ...shared, residual: true });
    this.scale = scaled ? new LayerScale(width, shared) : null;
  }

  /** @param planes [batch, width, rows, columns] @returns the same shape */
  override forward(planes: Tensor): Tensor {
    return tidy(() => {
      const places = this.norm.forward(tokensOf(this.convolution.forward(planes)));
      const hidden = activations[this.#activation](this.up.forward(places));
      const out = this.down.forward(this.responses ? this.responses.forward(hidden) : hidden);
      return add(planes, planesOf(this.scale ? this.scale.forward(out) : out, gridOfPlanes(planes)));
    });
  }
}

/** A stage: from the second on a norm and a convolution of 2 x 2 with a stride of 2, then the blocks. */
export class ConvNextStage extends Module<[planes: Tensor], Tensor> {
  readonly norm: LayerNorm | null;
  readonly reduction: Conv2d | null;
  readonly blocks: readonly ConvNextBlock[];

  constructor(inputs: number | undefined, index: number, description: ConvNextDescription, options: LayerOptions) {
    super();
    const { width, layers } = description.stages[index];
    const shared = layerOptions(options);
    this.norm = inputs === undefined ? null : new LayerNorm(inputs, { ...shared, eps: EPS });
    this.reduction = inputs === undefined ? null : new Conv2d(inputs, width, 2, { ...shared, stride: 2 });
    this.blocks = Array.from({ length: layers }, () => new ConvNextBlock(width, description, shared));
  }

  /** @param planes [batch, inputs, rows, columns] @returns [batch, width, rows / 2, columns / 2] */
  override forward(planes: Tensor): Tensor {
    return tidy(() => {
      const reduced = this.norm ? this.reduction!.forward(normedPlanes(planes, this.norm)) : planes;
      return this.blocks.reduce((x, block) => block.forward(x), reduced);
    });
  }
}

/** Normalizes each place. */
const normedPlanes = (planes: Tensor, norm: LayerNorm): Tensor =>
  planesOf(norm.forward(tokensOf(planes)), gridOfPlanes(planes));

/**
 * ConvNeXt without its last norm.
 *
 * | parameter | shape |
 * |---|---|
 * | `patch.weight` | [width, channels, patch, patch] |
 * | `norm.weight` | [width] |
 * | `stages.0. …` | see {@link ConvNextStage} |
 *
 * Source: Z. Liu et al., "A ConvNet for the 2020s", 2022.
 */
export class ConvNext extends Module<[pixels: Tensor], Tensor> {
  readonly patch: Conv2d;
  readonly norm: LayerNorm;
  readonly stages: readonly ConvNextStage[];

  constructor(channels: number, description: ConvNextDescription, options: LayerOptions) {
    super();
    const { patch, stages } = description;
    const [{ width }] = stages;
    const shared = layerOptions(options);
    this.patch = new Conv2d(channels, width, patch, { ...shared, stride: patch });
    this.norm = new LayerNorm(width, { ...shared, eps: EPS });
    this.stages = stages.map((_, at) => new ConvNextStage(stages[at - 1]?.width, at, description, shared));
  }

  /** @param pixels [batch, channels, height, width] @returns the planes of the last stage, [batch, width, …] */
  override forward(pixels: Tensor): Tensor {
    return tidy(() =>
      this.stages.reduce<Tensor>((x, stage) => stage.forward(x), normedPlanes(this.patch.forward(pixels), this.norm)),
    );
  }
}
