/** The head of an {@link Encoder}. */
import { relu } from "../../../ops/activation/relu.ts";
import { add } from "../../../ops/elementwise/arithmetic.ts";
import { tanh } from "../../../ops/elementwise/hyperbolic.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { Embedding } from "../../layers/embedding.ts";
import { type LayerOptions, layerOptions, zeroParameter } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { Normalization } from "../../layers/normalization.ts";
import type { QuantizedEmbedding } from "../../quantized/embedding.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import { newNorm } from "../decoder/block.ts";
import type { NormDescription } from "../decoder/description.ts";
import { activations } from "../decoder/feed_forward.ts";
import type { EncoderActivation, HeadDescription } from "./description.ts";

/** @internal The activations of heads. */
export const headActivations: Readonly<Record<EncoderActivation, (x: Tensor) => Tensor>> = {
  ...activations,
  relu: (x) => relu(x),
  tanh: (x) => tanh(x),
};

/** Options of {@link EncoderHead}. */
export interface EncoderHeadOptions extends LayerOptions {
  readonly width: number;
  readonly norm: NormDescription;
  readonly head: HeadDescription;
}

/** The bias of an output whose weight is the token embedding. */
export class TiedOutput extends Module<[x: Tensor, embedding: Embedding | QuantizedEmbedding], Tensor> {
  readonly bias: Tensor | null;

  constructor(outputs: number, { bias, ...options }: LayerOptions & { readonly bias: boolean }) {
    super();
    this.bias = bias ? zeroParameter([outputs], options) : null;
  }

  /** @param x [..., width] @param embedding [outputs, width] @returns [..., outputs] */
  override forward(x: Tensor, embedding: Embedding | QuantizedEmbedding): Tensor {
    const products = embedding.asLinear(x);
    return this.bias ? add(products, this.bias) : products;
  }
}

/**
 * Computes output(norm(activation(dense(x)))). Without a dense layer, it is output(x).
 *
 * | parameter | shape |
 * |---|---|
 * | `dense.weight` | [dense width, width] |
 * | `norm.weight` | [dense width] |
 * | `output.weight` | [outputs, dense width], if it is not tied |
 */
export class EncoderHead extends Module<[x: Tensor, embedding?: Embedding | QuantizedEmbedding], Tensor> {
  readonly dense: Linear | QuantizedLinear | null;
  readonly norm: Normalization | null;
  readonly output: Linear | QuantizedLinear | TiedOutput;
  readonly #activation: EncoderActivation | undefined;

  constructor({ width, norm, head, ...options }: EncoderHeadOptions) {
    super();
    const { dense, outputs, bias, tied } = head;
    const settings = layerOptions(options);
    this.dense = dense ? new Linear(width, dense.width, { ...settings, bias: dense.bias }) : null;
    this.norm = dense?.norm ? newNorm(dense.width, norm, settings) : null;
    this.output = tied
      ? new TiedOutput(outputs, { ...settings, bias })
      : new Linear(dense?.width ?? width, outputs, { ...settings, bias });
    this.#activation = dense?.activation;
  }

  /** @param x [..., width] @param embedding for a tied output @returns [..., outputs] */
  override forward(x: Tensor, embedding?: Embedding | QuantizedEmbedding): Tensor {
    const activated = this.dense ? headActivations[this.#activation!](this.dense.forward(x)) : x;
    const normalized = this.norm ? this.norm.forward(activated) : activated;
    return this.output instanceof TiedOutput
      ? this.output.forward(normalized, embedding!)
      : this.output.forward(normalized);
  }
}
