import { choice, flag } from "../../core/kinds.ts";
import { type Needed, named, parameters, required } from "../../core/parameters.ts";
import type { GeluOptions } from "../../ops/activation/gelu.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../layers/initialization.ts";
import { layerParameters, size } from "../layers/kinds.ts";
import type { Linear } from "../layers/linear.ts";
import type { QuantizedLinear } from "../quantized/linear.ts";
import type { FeedForwardDescription } from "./decoder/description.ts";
import { DecoderFeedForward } from "./decoder/feed_forward.ts";

/** Options of {@link MLP} and {@link SwiGLU}. */
export interface FeedForwardOptions extends LayerOptions {
  /** The size of the last axis of the input and the output. */
  width: number;
  /** The hidden size. Default 4 · width. */
  hidden?: number | undefined;
  /** Whether the projections have biases. Default true for {@link MLP}, false for {@link SwiGLU}. */
  bias?: boolean | undefined;
}

/** Options of {@link MLP}. */
export interface MLPOptions extends FeedForwardOptions {
  /** `"tanh"` for GPT-2's approximation of gelu, `"none"` for the exact formula with erf. Default `"none"`. */
  approximate?: GeluOptions["approximate"];
}

const mlpParameters = parameters("MLP", {
  width: required(size),
  hidden: named(size),
  bias: named(flag, true),
  approximate: named(choice("none", "tanh"), "none"),
  ...layerParameters,
});

/**
 * Computes y = down(gelu(up(x))).
 *
 * | parameter | shape |
 * |---|---|
 * | `up.weight`, `up.bias` | [hidden, width], [hidden] |
 * | `down.weight`, `down.bias` | [width, hidden], [width] |
 *
 * @example
 * new MLP({ width: 64, approximate: "tanh" }).forward(randn([2, 16, 64]));
 *
 * @throws {ArgumentError} for sizes below 1.
 */
export class MLP extends DecoderFeedForward {
  declare readonly up: Linear | QuantizedLinear;
  declare readonly down: Linear | QuantizedLinear;
  readonly approximate: NonNullable<GeluOptions["approximate"]>;

  constructor(...values: Needed<MLPOptions, "width">);
  constructor(...values: unknown[]) {
    const options = mlpParameters(values);
    super({ ...layerOptions(options), width: options.width, feedForward: describeMLP(options) });
    this.approximate = options.approximate;
  }

  /** @param x [..., width] @returns [..., width] */
  override forward(x: Tensor): Tensor {
    return super.forward(x);
  }

  /** @internal */
  override details(): string {
    return this.approximate === "none" ? "gelu" : `gelu, approximate: "${this.approximate}"`;
  }
}

/** @internal Converts options to a description. */
export function describeMLP({ width, approximate, ...options }: MLPOptions): FeedForwardDescription {
  const { hidden = 4 * width, bias = true } = options;
  return { hidden, bias, activation: approximate === "tanh" ? "geluTanh" : "gelu", gated: false };
}

const swigluParameters = parameters("SwiGLU", {
  width: required(size),
  hidden: named(size),
  bias: named(flag, false),
  ...layerParameters,
});

/**
 * Computes y = down(silu(gate(x)) · up(x)).
 *
 * | parameter | shape |
 * |---|---|
 * | `gate.weight`, `up.weight` | [hidden, width] |
 * | `down.weight` | [width, hidden] |
 * | `gate.bias`, `up.bias`, `down.bias` | [hidden], [hidden], [width]; null without `bias` |
 *
 * @example
 * new SwiGLU({ width: 64, hidden: 172 }).forward(randn([2, 16, 64]));
 *
 * @throws {ArgumentError} for sizes below 1.
 *
 * Source: N. Shazeer, "GLU variants improve transformer", 2020.
 */
export class SwiGLU extends DecoderFeedForward {
  declare readonly gate: Linear | QuantizedLinear;
  declare readonly up: Linear | QuantizedLinear;
  declare readonly down: Linear | QuantizedLinear;

  constructor(...values: Needed<FeedForwardOptions, "width">);
  constructor(...values: unknown[]) {
    const options = swigluParameters(values);
    super({ ...layerOptions(options), width: options.width, feedForward: describeSwiGLU(options) });
  }

  /** @param x [..., width] @returns [..., width] */
  override forward(x: Tensor): Tensor {
    return super.forward(x);
  }

  /** @internal */
  override details(): string {
    return "";
  }
}

/** @internal Converts options to a description. */
export function describeSwiGLU({ width, ...options }: FeedForwardOptions): FeedForwardDescription {
  const { hidden = 4 * width, bias = false } = options;
  return { hidden, bias, activation: "silu", gated: true };
}
