/** The convolutions of a {@link Wav2Vec2} model. */
import { transpose } from "../../../ops/view/permute.ts";
import { narrow } from "../../../ops/view/slice.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import { GroupNorm } from "../../layers/batch_norm.ts";
import { Conv1d } from "../../layers/convolution.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";
import { LayerNorm } from "../../layers/normalization.ts";
import { headActivations } from "../encoder/head.ts";
import type { Wav2Vec2Description } from "./description.ts";

/**
 * Applies a convolution, a norm if there is one, and an activation.
 *
 * | parameter | shape |
 * |---|---|
 * | `convolution.weight` | [width, inputs, kernel] |
 * | `norm.weight`, `norm.bias` | [width]; null if there is no norm |
 */
export class SpeechConvolution extends Module<[x: Tensor], Tensor> {
  readonly convolution: Conv1d;
  readonly norm: GroupNorm | LayerNorm | null;
  readonly #activation: Wav2Vec2Description["convolutionActivation"];

  /** @param index the number of the convolution in the description */
  constructor(description: Wav2Vec2Description, index: number, options: LayerOptions) {
    super();
    const { convolutions, convolutionBias: bias, convolutionNorm, convolutionActivation } = description;
    const { width, kernel, stride } = convolutions[index];
    const shared = layerOptions(options);
    this.#activation = convolutionActivation;
    this.convolution = new Conv1d(convolutions[index - 1]?.width ?? 1, width, kernel, { ...shared, bias, stride });
    const perChannel = () => (index === 0 ? new GroupNorm(width, width, shared) : null);
    this.norm = convolutionNorm === "layer" ? new LayerNorm(width, shared) : perChannel();
  }

  /** @param x [batch, inputs, frames] @returns [batch, width, frames] */
  override forward(x: Tensor): Tensor {
    return tidy(() => headActivations[this.#activation](this.normalized(this.convolution.forward(x))));
  }

  private normalized(x: Tensor): Tensor {
    const { norm } = this;
    if (norm instanceof LayerNorm) return transpose(norm.forward(transpose(x, 1, 2)), 1, 2);
    return norm ? norm.forward(x) : x;
  }
}

/**
 * Computes positions from hidden states: a grouped convolution over time and an activation. With an even kernel, the
 * last frame of the padded convolution is dropped, so that there are as many frames as before.
 *
 * | parameter | shape |
 * |---|---|
 * | `convolution.weight` | [width, width / groups, kernel] |
 *
 * Source: A. Baevski et al., "wav2vec 2.0", 2020, section 2.
 */
export class ConvolutionalPositions extends Module<[x: Tensor], Tensor> {
  readonly convolution: Conv1d;
  readonly #activation: Wav2Vec2Description["convolutionActivation"];

  constructor({ width, positions }: Wav2Vec2Description, options: LayerOptions) {
    super();
    const { kernel, groups, activation } = positions;
    this.#activation = activation;
    const padding = Math.floor(kernel / 2);
    this.convolution = new Conv1d(width, width, kernel, { ...layerOptions(options), padding, groups });
  }

  /** @param x [batch, frames, width] @returns [batch, frames, width] */
  override forward(x: Tensor): Tensor {
    const convolved = this.convolution.forward(transpose(x, 1, 2));
    return transpose(headActivations[this.#activation](narrow(convolved, 2, 0, x.shape[1])), 1, 2);
  }
}
