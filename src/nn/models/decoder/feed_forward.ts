/** The feed-forward of a {@link Decoder}. */
import { gelu } from "../../../ops/activation/gelu.ts";
import { relu } from "../../../ops/activation/relu.ts";
import { sigmoid } from "../../../ops/activation/sigmoid.ts";
import { silu } from "../../../ops/activation/silu.ts";
import { add, mul, square, sub } from "../../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../../ops/elementwise/clamp.ts";
import { erfinv } from "../../../ops/elementwise/erf.reference.ts";
import { mean } from "../../../ops/reduction/mean.ts";
import { std } from "../../../ops/reduction/variance.ts";
import { split } from "../../../ops/view/split.ts";
import { gatedProduct } from "../../../quant/matmul/swiglu.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import { RMSNorm } from "../../layers/normalization.ts";
import { gatedLayers } from "../../quantized/gated_layers.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import type { LoraLinear } from "../../quantized/lora_linear.ts";
import type { FeedForwardDescription } from "./description.ts";
import { Xielu } from "./xielu.ts";

/** Options of {@link DecoderFeedForward}. */
export interface DecoderFeedForwardOptions extends LayerOptions {
  readonly width: number;
  readonly feedForward: FeedForwardDescription;
}

/** @internal The activations of feed-forwards. */
export const activations = {
  silu: (x: Tensor) => silu(x),
  gelu: (x: Tensor) => gelu(x),
  geluTanh: (x: Tensor) => gelu(x, { approximate: "tanh" }),
  // CLIP's x · sigmoid(1.702 · x). Source: D. Hendrycks and K. Gimpel, "Gaussian Error Linear Units", 2016, section 2.
  quickGelu: (x: Tensor) => mul(x, sigmoid(mul(x, 1.702))),
  relu: (x: Tensor) => relu(x),
  reluSquared: (x: Tensor) => square(relu(x)),
} as const;

/** Returns relu(x − mean − std · quantile), for the quantile of the standard normal distribution at `sparsity`. */
function sparse(x: Tensor, sparsity: number): Tensor {
  const quantile = Math.SQRT2 * erfinv(2 * sparsity - 1);
  const deviation = std(x, { dim: -1, keepdim: true, correction: 0 });
  return relu(sub(x, add(mean(x, { dim: -1, keepdim: true }), mul(deviation, quantile))));
}

/** Returns gate and up. */
const inOrder = ([first, second]: readonly Tensor[], fused: FeedForwardDescription["fused"]) =>
  fused === "upGate" ? ([second, first] as const) : ([first, second] as const);

/**
 * Computes down(activation(gate(x)) · up(x)), or without a gate down(activation(up(x))).
 *
 * | parameter | shape |
 * |---|---|
 * | `gate.weight`, `up.weight` | [hidden, width] |
 * | `gateUp.weight` | replaces these if they are fused: rows of gate, then of up |
 * | `innerNorm.weight` | [hidden]; null without this norm |
 * | `xielu. …` | see {@link Xielu}; null for other activations |
 * | `down.weight` | [width, hidden] |
 */
export class DecoderFeedForward extends Module<[x: Tensor], Tensor> {
  readonly gate: Linear | QuantizedLinear | LoraLinear | null;
  readonly up: Linear | QuantizedLinear | LoraLinear | null;
  readonly gateUp: Linear | QuantizedLinear | LoraLinear | null;
  readonly innerNorm: RMSNorm | null;
  readonly xielu: Xielu | null;
  readonly down: Linear | QuantizedLinear | LoraLinear;
  readonly #description: FeedForwardDescription;

  constructor({ width, feedForward, ...options }: DecoderFeedForwardOptions) {
    super();
    const { hidden, gated, fused, bias, downBias = bias, innerNorm } = feedForward;
    const plain = layerOptions(options);
    const layer = { ...plain, bias };
    this.#description = feedForward;
    this.gate = gated && !fused ? new Linear(width, hidden, layer) : null;
    this.up = fused ? null : new Linear(width, hidden, layer);
    this.gateUp = fused ? new Linear(width, 2 * hidden, layer) : null;
    this.innerNorm = innerNorm === undefined ? null : new RMSNorm(hidden, { ...plain, eps: innerNorm });
    this.xielu = feedForward.xielu ? new Xielu(plain) : null;
    this.down = new Linear(hidden, width, { ...layer, bias: downBias, residual: true });
  }

  /** @param x [..., width] @returns [..., width] */
  override forward(x: Tensor): Tensor {
    const { factors } = this.#description;
    if (!factors) return this.down.forward(this.normed(this.activate(x)));
    const gate = mul(this.gateOf(x), factors.gate);
    const hidden = mul(activations[this.#description.activation](gate), this.upOf(x));
    return mul(this.down.forward(hidden), factors.output);
  }

  private gateOf(x: Tensor): Tensor {
    return this.gate!.forward(x);
  }

  private upOf(x: Tensor): Tensor {
    return this.up!.forward(x);
  }

  private normed(x: Tensor): Tensor {
    return this.innerNorm ? this.innerNorm.forward(x) : x;
  }

  private activate(x: Tensor): Tensor {
    const { activation, gated, hidden, fused, clamped, sparsity } = this.#description;
    if (this.xielu) return this.xielu.forward(this.upOf(x));
    if (!gated) return activations[activation](this.upOf(x));
    if (clamped) return this.clampedProduct(x, clamped);
    if (sparsity) return mul(activations[activation](sparse(this.gateOf(x), sparsity)), this.upOf(x));
    const isApart = activation === "relu" || activation === "reluSquared" || activation === "quickGelu";
    if (!this.gateUp && !isApart) return gatedLayers(x, this.gate!, this.up!, activation);
    const [gate, up] = this.gateUp
      ? inOrder(split(this.gateUp.forward(x), hidden, { dim: -1 }), fused)
      : [this.gateOf(x), this.upOf(x)];
    return isApart ? mul(activations[activation](gate), up) : gatedProduct(activation, gate, up);
  }

  private clampedProduct(x: Tensor, { alpha, limit }: NonNullable<FeedForwardDescription["clamped"]>): Tensor {
    const gate = clamp(this.gateOf(x), { max: limit });
    const up = clamp(this.upOf(x), { min: -limit, max: limit });
    return mul(add(up, 1), mul(gate, sigmoid(mul(gate, alpha))));
  }

  /** @internal */
  override details(): string {
    return `${this.#description.activation}${this.#description.gated ? ", gated" : ""}`;
  }
}
