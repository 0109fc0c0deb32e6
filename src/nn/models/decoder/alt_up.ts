/** Blocks and projections of Gemma 3n's parallel residual streams. */

import { lastElement } from "../../../core/collections.ts";
import { zerosLike } from "../../../ops/creation/full.ts";
import { add, mul, square, sub } from "../../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../../ops/elementwise/clamp.ts";
import { div } from "../../../ops/elementwise/division.ts";
import { tanh } from "../../../ops/elementwise/hyperbolic.ts";
import { sqrt } from "../../../ops/elementwise/power.ts";
import { cat, stack } from "../../../ops/join/cat.ts";
import { matmul } from "../../../ops/matmul/matmul.ts";
import { mean } from "../../../ops/reduction/mean.ts";
import { expand } from "../../../ops/view/expand.ts";
import { unflatten } from "../../../ops/view/flatten.ts";
import { narrow, select } from "../../../ops/view/slice.ts";
import { unsqueeze } from "../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import { RMSNorm } from "../../layers/normalization.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import type { LoraLinear } from "../../quantized/lora_linear.ts";
import type { AttentionInputs } from "./attention.ts";
import { DecoderBlock, type DecoderBlockOptions } from "./block.ts";
import type { AltUpDescription } from "./description.ts";
import { Parameter } from "./recurrent/mixer.ts";
import { type ResidualStream, sumOf } from "./residual_stream.ts";

/** The minimum mean square of a projected stream. */
const LEAST = 1e-5;

/** Scales y [..., width] to the root mean square of x. */
function asLargeAs(y: Tensor, x: Tensor): Tensor {
  const meanSquare = (z: Tensor) => mean(square(z), { dim: -1, keepdim: true });
  const target = sqrt(meanSquare(x));
  return mul(y, div(target, sqrt(clamp(meanSquare(y), { min: LEAST }))));
}

/**
 * Makes parallel streams of an embedding, and one output of the streams.
 *
 * | parameter | shape |
 * |---|---|
 * | `expand.0.weight`, `collapse.0.weight` … | [width, width], one for each stream but the first |
 */
export class Streams extends Module<[embedded: Tensor], Tensor> {
  readonly expand: readonly Linear[];
  readonly collapse: readonly Linear[];

  constructor(width: number, count: number, options: LayerOptions) {
    super();
    const layers = () =>
      Array.from({ length: count - 1 }, () => new Linear(width, width, { ...layerOptions(options), bias: false }));
    [this.expand, this.collapse] = [layers(), layers()];
  }

  /** @param embedded [batch, tokens, width] @returns [batch, tokens, streams, width] */
  override forward(embedded: Tensor): Tensor {
    const others = this.expand.map((layer) => asLargeAs(layer.forward(embedded), embedded));
    return stack([embedded, ...others], 2);
  }

  /** @param streams [batch, tokens, streams, width] @returns [batch, tokens, width] */
  collapsed(streams: Tensor): Tensor {
    const first = select(streams, 2, 0);
    const others = this.collapse.map((layer, at) => asLargeAs(layer.forward(select(streams, 2, at + 1)), first));
    return mean(stack([first, ...others], 0), { dim: 0 });
  }
}

/**
 * Predicts and corrects streams.
 *
 * | parameter | shape |
 * |---|---|
 * | `router.weight`, `routerNorm.weight` | [streams, width], [width] |
 * | `prediction.weight`, `correction.weight` | [streams², streams], [streams, streams] |
 * | `scale.weight` | [width] |
 */
class AltUp extends Module<[streams: Tensor], Tensor> {
  readonly router: Linear;
  readonly routerNorm: RMSNorm;
  readonly prediction: Linear;
  readonly correction: Linear;
  readonly scale: Parameter;
  readonly #description: AltUpDescription;

  constructor(width: number, description: AltUpDescription, options: LayerOptions & { readonly eps: number }) {
    super();
    const { count } = description;
    const layer = { ...layerOptions(options), bias: false };
    this.#description = description;
    this.router = new Linear(width, count, layer);
    this.routerNorm = new RMSNorm(width, { ...layerOptions(options), eps: options.eps });
    this.prediction = new Linear(count, count ** 2, layer);
    this.correction = new Linear(count, count, layer);
    this.scale = new Parameter(width, layerOptions(options));
  }

  /** Returns the weights of streams for x [batch, tokens, width]: [batch, tokens, streams]. */
  private weightsOf(x: Tensor): Tensor {
    return tanh(this.router.forward(mul(this.routerNorm.forward(x), 1 / lastElement(x.shape))));
  }

  /** @param streams [batch, tokens, streams, width] @returns predictions, the same shape */
  override forward(streams: Tensor): Tensor {
    const { count, active } = this.#description;
    const factors = this.prediction.forward(this.weightsOf(select(streams, 2, active)));
    return add(matmul(unflatten(factors, 2, [count, count]), streams), streams);
  }

  /** Corrects predictions by the computed stream [batch, tokens, width]. */
  corrected(predictions: Tensor, computed: Tensor): Tensor {
    const factors = add(this.correction.forward(this.weightsOf(computed)), 1);
    const difference = sub(computed, select(predictions, 2, this.#description.active));
    return add(predictions, mul(unsqueeze(difference, 2), unsqueeze(factors, -1)));
  }
}

/**
 * A residual of low rank: x + norm(right(left(x))).
 *
 * | parameter | shape |
 * |---|---|
 * | `left.weight`, `right.weight` | [rank, width], [width, rank] |
 * | `norm.weight` | [width] |
 */
class LowRank extends Module<[x: Tensor], Tensor> {
  readonly left: Linear | QuantizedLinear | LoraLinear;
  readonly right: Linear | QuantizedLinear | LoraLinear;
  readonly norm: RMSNorm;

  constructor(width: number, rank: number, options: LayerOptions & { readonly eps: number }) {
    super();
    const layer = { ...layerOptions(options), bias: false };
    this.left = new Linear(width, rank, layer);
    this.right = new Linear(rank, width, layer);
    this.norm = new RMSNorm(width, { ...layerOptions(options), eps: options.eps });
  }

  /** @param x [..., width] @returns the same shape */
  override forward(x: Tensor): Tensor {
    return add(x, this.norm.forward(this.right.forward(this.left.forward(x))));
  }
}

/** A block of Gemma 3n. Its input and output are streams [batch, tokens, streams, width]. */
export class AltUpBlock extends DecoderBlock {
  readonly altUp: AltUp;
  readonly lowRank: LowRank;
  readonly #description: AltUpDescription;

  constructor({ width, norm, layer, ...options }: DecoderBlockOptions) {
    super({ width, norm, layer, ...options });
    const settings = { ...layerOptions(options), eps: norm.eps };
    this.#description = layer.altUp!;
    this.altUp = new AltUp(width, this.#description, settings);
    this.lowRank = new LowRank(width, this.#description.rank, settings);
  }

  /** @internal */
  override advance(stream: ResidualStream, inputs: AttentionInputs = {}): Required<ResidualStream> {
    return tidy(() => {
      const { active, scaled } = this.#description;
      const predictions = this.altUp.forward(sumOf(stream));
      const corrected = this.altUp.corrected(predictions, this.computed(select(predictions, 2, active), inputs));
      const computed = select(corrected, 2, active);
      const input = scaled ? mul(computed, this.altUp.scale.forward()) : computed;
      const added = unsqueeze(this.layerInput!.forward(input, inputs.layerInput!), 2);
      // the layer input is added to all streams but the first
      const others = expand(added, [...corrected.shape.with(2, corrected.shape[2] - 1)]);
      return { residual: corrected, addition: cat([zerosLike(narrow(corrected, 2, 0, 1)), others], { dim: 2 }) };
    });
  }

  /** Computes the active stream. */
  private computed(x: Tensor, inputs: AttentionInputs): Tensor {
    const normed = this.attentionNorm!.forward(x);
    const attended = add(x, this.attentionPostNorm!.forward(this.attention!.forward(normed, inputs)));
    const joined = mul(add(attended, this.lowRank.forward(normed)), Math.SQRT1_2);
    const output = this.feedForward!.forward(this.feedForwardNorm!.forward(joined));
    return add(joined, this.feedForwardPostNorm!.forward(output));
  }
}
