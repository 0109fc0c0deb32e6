/** WavLM's gate of the scores of distances. */
import { sigmoid } from "../../../ops/activation/sigmoid.ts";
import { add, mul, sub } from "../../../ops/elementwise/arithmetic.ts";
import { sum } from "../../../ops/reduction/sum.ts";
import { unflatten } from "../../../ops/view/flatten.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { narrow } from "../../../ops/view/slice.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions, oneParameter } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";

/** One factor for each head. */
class HeadFactors extends Module<[], Tensor> {
  readonly weight: Tensor;

  constructor(heads: number, options: LayerOptions) {
    super();
    this.weight = oneParameter([heads], options);
  }

  /** @returns [1, heads, 1, 1] */
  override forward(): Tensor {
    return reshape(this.weight, [1, -1, 1, 1]);
  }
}

/** The number of rows whose sum is a gate. */
const ROWS = 4;

/**
 * Multiplies the scores of distances by a · (b · factor − 1) + 2, where the gates a and b depend on the query's token.
 *
 * | parameter | shape |
 * |---|---|
 * | `projection.weight` | [8, headWidth]: four rows for a, whose results are added, then four for b |
 * | `factors.weight` | [heads] |
 *
 * Source: S. Chen et al., "WavLM: large-scale self-supervised pre-training for full stack speech processing", 2022.
 */
export class DistanceGate extends Module<[x: Tensor, scores: Tensor], Tensor> {
  readonly projection: Linear | QuantizedLinear;
  readonly factors: HeadFactors;
  readonly #heads: number;

  constructor(heads: number, headWidth: number, options: LayerOptions) {
    super();
    const shared = layerOptions(options);
    this.#heads = heads;
    this.projection = new Linear(headWidth, 2 * ROWS, shared);
    this.factors = new HeadFactors(heads, shared);
  }

  /** @param x [batch, tokens, heads · headWidth] @param scores [1, heads, tokens, tokens] @returns [batch, …] */
  override forward(x: Tensor, scores: Tensor): Tensor {
    const perHead = transpose(unflatten(x, 2, [this.#heads, x.shape[2] / this.#heads]), 1, 2);
    const gates = sigmoid(sum(unflatten(this.projection.forward(perHead), 3, [2, ROWS]), { dim: -1 }));
    const [a, b] = [narrow(gates, 3, 0, 1), narrow(gates, 3, 1, 1)];
    return mul(add(mul(a, sub(mul(b, this.factors.forward()), 1)), 2), scores);
  }
}
