/** The convolution of LFM2. */
import { tupleOf } from "../../../../core/tuples.ts";
import { mul } from "../../../../ops/elementwise/arithmetic.ts";
import { split } from "../../../../ops/view/split.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { Module } from "../../../layers/module.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import type { LoraLinear } from "../../../quantized/lora_linear.ts";
import type { AttentionInputs } from "../attention.ts";
import type { ShortConvolutionDescription } from "../description.ts";
import { States, TokenConvolution, withoutPadding } from "./mixer.ts";

/**
 * Computes output(c · convolution(b · x)), where b, c and x are parts of input(x).
 *
 * | parameter | shape |
 * |---|---|
 * | `input.weight` | [3 · width, width]: rows of b, of c, and of x |
 * | `convolution.weight` | [width, kernel] |
 * | `output.weight` | [width, width] |
 *
 * Source: Liquid AI, "LFM2 technical report", 2025; Hugging Face's `Lfm2ShortConv`.
 */
export class ShortConvolution extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly input: Linear | QuantizedLinear | LoraLinear;
  readonly convolution: TokenConvolution;
  readonly output: Linear | QuantizedLinear | LoraLinear;

  constructor(width: number, { kernel, bias }: ShortConvolutionDescription, options: LayerOptions) {
    super();
    const layer = { ...layerOptions(options), bias };
    this.input = new Linear(width, 3 * width, layer);
    this.convolution = new TokenConvolution(width, kernel, layer);
    this.output = new Linear(width, width, { ...layer, residual: true });
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, inputs: AttentionInputs = {}): Tensor {
    const states = new States(inputs.cache);
    const parts = split(this.input.forward(withoutPadding(x, inputs)), x.shape[2], { dim: -1 });
    const [b, c, own] = tupleOf(parts, 3);
    const mixed = this.convolution.forward(mul(b, own), states);
    states.advance(x.shape[1]);
    return this.output.forward(mul(c, mixed));
  }
}
