/** Attention with queries, keys and values that may belong to different tokens. */
import { flashAttention } from "../../../ops/attention/flash_attention.ts";
import type { FlashAttentionOptions } from "../../../ops/attention/options.ts";
import { unflatten } from "../../../ops/view/flatten.ts";
import { transpose } from "../../../ops/view/permute.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";

type ScoreOptions = Pick<FlashAttentionOptions, "mask" | "bias">;

/**
 * Applies attention of some tokens to others.
 *
 * | parameter | shape |
 * |---|---|
 * | `query`, `key`, `value` | `weight` [inner width, width], `bias` [inner width] if they have biases |
 * | `output` | `weight` [width, inner width], `bias` [width] |
 */
export class ProjectedAttention extends Module<
  [queries: Tensor, keys: Tensor, values: Tensor, options?: ScoreOptions],
  Tensor
> {
  readonly query: Linear | QuantizedLinear;
  readonly key: Linear | QuantizedLinear;
  readonly value: Linear | QuantizedLinear;
  readonly output: Linear | QuantizedLinear;
  readonly #heads: number;

  /** @param inner the total width of all heads @param bias whether queries, keys and values have biases */
  constructor(width: number, heads: number, options: LayerOptions, inner = width, bias = true) {
    super();
    const layer = layerOptions(options);
    this.#heads = heads;
    this.query = new Linear(width, inner, { ...layer, bias });
    this.key = new Linear(width, inner, { ...layer, bias });
    this.value = new Linear(width, inner, { ...layer, bias });
    this.output = new Linear(inner, width, { ...layer, residual: true });
  }

  /**
   * @param queries [batch, tokens, width]
   * @param keys [batch, others, width]
   * @param values [batch, others, width]
   * @param options the mask and the bias of the scores
   * @returns [batch, tokens, width]
   */
  override forward(queries: Tensor, keys: Tensor, values: Tensor, options: ScoreOptions = {}): Tensor {
    const split = (x: Tensor) => transpose(unflatten(x, 2, [this.#heads, -1]), 1, 2);
    const [q, k, v] = [this.query.forward(queries), this.key.forward(keys), this.value.forward(values)];
    const attended = flashAttention(split(q), split(k), split(v), options);
    return this.output.forward(reshape(transpose(attended, 1, 2), [...q.shape]));
  }

  /** @internal */
  override details(): string {
    return `heads: ${this.#heads}`;
  }
}
