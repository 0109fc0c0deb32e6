/** Attention of a {@link Decoder}. */
import { flashAttention } from "../../ops/attention/flash_attention.ts";
import { unflatten } from "../../ops/view/flatten.ts";
import { transpose } from "../../ops/view/permute.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { split } from "../../ops/view/split.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type AttentionInputs, lastOfMask } from "../attention.ts";
import type { Attend } from "../cache.ts";
import { type LayerOptions, layerOptions } from "../initialization.ts";
import { Linear } from "../linear.ts";
import type { LoraLinear } from "../lora/layer.ts";
import { Module } from "../module.ts";
import { RMSNorm } from "../normalization.ts";
import type { QuantizedLinear } from "../quantized_linear.ts";
import type { AttentionDescription } from "./description.ts";
import { rotate } from "./rotation.ts";

/** What {@link DecoderAttention} is built of. */
export interface DecoderAttentionOptions extends LayerOptions {
  readonly width: number;
  readonly eps: number;
  readonly attention: AttentionDescription;
}

/**
 * Grouped-query attention of a {@link Decoder}: the projections are three modules, or one if the checkpoint has them as
 * one, so that each weight is a tensor of the checkpoint.
 *
 * | parameter | shape |
 * |---|---|
 * | `query.weight` | [heads · headWidth, width] |
 * | `key.weight`, `value.weight` | [keyValueHeads · headWidth, width] |
 * | `queryKeyValue.weight` | instead of these, if they are fused: rows of q, then of k, then of v |
 * | `queryNorm.weight`, `keyNorm.weight` | [headWidth], or that of all heads; null without |
 * | `output.weight` | [width, heads · headWidth] |
 */
export class DecoderAttention extends Module<[x: Tensor, inputs?: AttentionInputs], Tensor> {
  readonly query: Linear | QuantizedLinear | LoraLinear | null;
  readonly key: Linear | QuantizedLinear | LoraLinear | null;
  readonly value: Linear | QuantizedLinear | LoraLinear | null;
  readonly queryKeyValue: Linear | QuantizedLinear | LoraLinear | null;
  readonly queryNorm: RMSNorm | null;
  readonly keyNorm: RMSNorm | null;
  readonly output: Linear | QuantizedLinear | LoraLinear;
  readonly #description: AttentionDescription;

  constructor({ width, eps, attention, ...options }: DecoderAttentionOptions) {
    super();
    const layer = layerOptions(options);
    const { heads, keyValueHeads, headWidth, queryKeyValueBias: bias, outputBias, fused, queryKeyNorm } = attention;
    const projection = (count: number) => new Linear(width, count * headWidth, { ...layer, bias });
    const norm = (count: number) =>
      queryKeyNorm ? new RMSNorm(queryKeyNorm === "head" ? headWidth : count * headWidth, { ...layer, eps }) : null;
    this.#description = attention;
    this.query = fused ? null : projection(heads);
    this.key = fused ? null : projection(keyValueHeads);
    this.value = fused ? null : projection(keyValueHeads);
    this.queryKeyValue = fused ? projection(heads + 2 * keyValueHeads) : null;
    this.queryNorm = norm(heads);
    this.keyNorm = norm(keyValueHeads);
    this.output = new Linear(heads * headWidth, width, { ...layer, bias: outputBias, residual: true });
  }

  /** @param x [batch, tokens, width] @returns [batch, tokens, width] */
  override forward(x: Tensor, { cache, mask, positions: given }: AttentionInputs = {}): Tensor {
    const { heads, headWidth, scale, softcap, window, rope } = this.#description;
    const [q, k, v] = this.project(x);
    const positions = given ?? cache?.positionsOf(x.shape[1]!) ?? 0;
    const length = (cache?.position ?? 0) + x.shape[1]!;
    const rotated = (own: Tensor, norm: RMSNorm | null) => rotate(this.split(own, norm), rope, positions, length);
    const queries = rotated(q, this.queryNorm);
    const appended = { keys: rotated(k, this.keyNorm), values: this.split(v, null) };
    const options = { causal: true, scale, softcap, ...(window && { window: { left: window - 1 } }) } as const;
    const attend: Attend = (own, { keys, values }) =>
      flashAttention(own, keys, values, { ...options, mask: lastOfMask(mask, keys) });
    const attended = cache?.attend(queries, appended, attend) ?? attend(queries, appended);
    return this.output.forward(reshape(transpose(attended, 1, 2), [...x.shape.slice(0, 2), heads * headWidth]));
  }

  private project(x: Tensor): readonly [q: Tensor, k: Tensor, v: Tensor] {
    const { query, key, value, queryKeyValue } = this;
    if (!queryKeyValue) return [query!.forward(x), key!.forward(x), value!.forward(x)];
    const { heads, keyValueHeads, headWidth } = this.#description;
    const sizes = [heads, keyValueHeads, keyValueHeads].map((count) => count * headWidth);
    return split(queryKeyValue.forward(x), sizes, { dim: -1 }) as [Tensor, Tensor, Tensor];
  }

  /** [batch, tokens, heads · headWidth] as [batch, heads, tokens, headWidth], normalized. */
  private split(x: Tensor, norm: RMSNorm | null): Tensor {
    const { headWidth, queryKeyNorm } = this.#description;
    const whole = norm && queryKeyNorm === "all" ? norm.forward(x) : x;
    const heads = unflatten(whole, 2, [x.shape[2]! / headWidth, headWidth]);
    return transpose(norm && queryKeyNorm === "head" ? norm.forward(heads) : heads, 1, 2);
  }

  /** @internal */
  override details(): string {
    const { heads, keyValueHeads, headWidth, window } = this.#description;
    const shared = keyValueHeads === heads ? "" : `, keyValueHeads: ${keyValueHeads}`;
    return `heads: ${heads}${shared}, headWidth: ${headWidth}${window ? `, window: ${window}` : ""}`;
  }
}
