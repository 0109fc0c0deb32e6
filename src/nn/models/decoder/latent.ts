/** Projections of multi-head latent attention in a {@link Decoder}. */
import { cat } from "../../../ops/join/cat.ts";
import { expand } from "../../../ops/view/expand.ts";
import { unflatten } from "../../../ops/view/flatten.ts";
import { reshape } from "../../../ops/view/reshape.ts";
import { split } from "../../../ops/view/split.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Linear } from "../../layers/linear.ts";
import { Module } from "../../layers/module.ts";
import { RMSNorm } from "../../layers/normalization.ts";
import type { QuantizedLinear } from "../../quantized/linear.ts";
import type { LoraLinear } from "../../quantized/lora_linear.ts";
import type { AttentionDescription } from "./description.ts";

/** Options of {@link LatentProjection}. */
export interface LatentProjectionOptions extends LayerOptions {
  readonly width: number;
  readonly attention: AttentionDescription;
}

type Projected = readonly [q: Tensor, k: Tensor, v: Tensor];

/** The eps of the norms in latent attention, which no config changes. */
const EPS = 1e-6;

/**
 * Computes queries, keys and values from latent vectors of fewer elements. The elements of a head that rotate come
 * first in the results, and last in the weights; those of keys are the same for all heads.
 *
 * | parameter | shape |
 * |---|---|
 * | `queryDown.weight`, `queryNorm.weight` | [queryRank, width], [queryRank]; null without a query rank |
 * | `query.weight` | [heads · headWidth, queryRank or width] |
 * | `keyValueDown.weight`, `keyValueNorm.weight` | [rank + rotated, width], [rank] |
 * | `keyValue.weight` | [heads · (headWidth − rotated + valueWidth), rank] |
 *
 * Source: DeepSeek-AI, "DeepSeek-V2: a strong, economical, and efficient mixture-of-experts language model", 2024,
 * section 2.1.
 */
export class LatentProjection extends Module<[x: Tensor, narrowed?: Tensor], Projected> {
  readonly queryDown: Linear | QuantizedLinear | LoraLinear | null;
  readonly queryNorm: RMSNorm | null;
  readonly query: Linear | QuantizedLinear | LoraLinear;
  readonly keyValueDown: Linear | QuantizedLinear | LoraLinear;
  readonly keyValueNorm: RMSNorm;
  readonly keyValue: Linear | QuantizedLinear | LoraLinear;
  readonly #description: AttentionDescription;

  constructor({ width, attention, ...options }: LatentProjectionOptions) {
    super();
    const layer = layerOptions(options);
    const { heads, headWidth, queryKeyValueBias: bias } = attention;
    const { queryRank, rank, rotated, valueWidth } = attention.latent!;
    this.#description = attention;
    this.queryDown = queryRank === undefined ? null : new Linear(width, queryRank, { ...layer, bias });
    this.queryNorm = queryRank === undefined ? null : new RMSNorm(queryRank, { ...layer, eps: EPS });
    this.query = new Linear(queryRank ?? width, heads * headWidth, { ...layer, bias: false });
    this.keyValueDown = new Linear(width, rank + rotated, { ...layer, bias });
    this.keyValueNorm = new RMSNorm(rank, { ...layer, eps: EPS });
    this.keyValue = new Linear(rank, heads * (headWidth - rotated + valueWidth), { ...layer, bias: false });
  }

  /** @param x [batch, tokens, width] @returns the latent vectors of queries [batch, tokens, queryRank], or x */
  narrowed(x: Tensor): Tensor {
    return this.queryDown ? this.queryNorm!.forward(this.queryDown.forward(x)) : x;
  }

  /**
   * @param x [batch, tokens, width]
   * @param narrowed the latent vectors of queries: see {@link narrowed}
   * @returns queries and keys [batch, tokens, heads · headWidth], values [batch, tokens, heads · valueWidth]
   */
  override forward(x: Tensor, narrowed = this.narrowed(x)): Projected {
    const { heads, headWidth } = this.#description;
    const { rank, rotated, valueWidth } = this.#description.latent!;
    const still = headWidth - rotated;
    const joined = (parts: readonly Tensor[]) => reshape(cat(parts, { dim: -1 }), [...x.shape.slice(0, 2), -1]);
    const parted = (x: Tensor, sizes: readonly number[]) =>
      split(unflatten(x, 2, [heads, -1]), [...sizes], { dim: -1 });
    const [queryStill, queryRotated] = parted(this.query.forward(narrowed), [still, rotated]);
    const [latent, shared] = split(this.keyValueDown.forward(x), [rank, rotated], { dim: -1 });
    const [keyStill, value] = parted(this.keyValue.forward(this.keyValueNorm.forward(latent)), [still, valueWidth]);
    const keyRotated = expand(unflatten(shared, 2, [1, rotated]), [...x.shape.slice(0, 2), heads, rotated]);
    return [joined([queryRotated, queryStill]), joined([keyRotated, keyStill]), joined([value])];
  }
}
