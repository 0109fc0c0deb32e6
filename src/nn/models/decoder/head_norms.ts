/** The norms of queries and keys in the attention of a {@link Decoder}. */
import { mul } from "../../../ops/elementwise/arithmetic.ts";
import { stack } from "../../../ops/join/cat.ts";
import { layerNorm } from "../../../ops/normalization/layer_norm.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import type { LayerOptions } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";
import { LayerNorm, RMSNorm } from "../../layers/normalization.ts";
import type { AttentionDescription } from "./description.ts";

/**
 * Applies LayerNorm without bias to each head, with a weight for each head, as in Command R+ and StableLM 2 12B.
 *
 * | parameter | shape |
 * |---|---|
 * | `norms.0.weight` | [headWidth] |
 */
export class HeadNorms extends Module<[x: Tensor], Tensor> {
  readonly norms: readonly LayerNorm[];
  readonly #eps: number | undefined;

  constructor(heads: number, headWidth: number, options: LayerOptions & { readonly eps?: number | undefined }) {
    super();
    this.norms = Array.from({ length: heads }, () => new LayerNorm(headWidth, { ...options, bias: false }));
    this.#eps = options.eps;
  }

  /** @param x [batch, tokens, heads, headWidth] @returns the same shape */
  override forward(x: Tensor): Tensor {
    const weights = this.norms.map(({ weight }) => weight!);
    return mul(layerNorm(x, { eps: this.#eps }), stack(weights));
  }
}

/** A norm of queries or keys. */
export type HeadNorm = RMSNorm | LayerNorm | HeadNorms;

/** Creates a norm of queries or keys. */
export function newHeadNorm(
  kind: NonNullable<AttentionDescription["queryKeyNorm"]>,
  heads: number,
  headWidth: number,
  options: LayerOptions & { readonly eps?: number | undefined },
): HeadNorm {
  switch (kind) {
    case "head":
    case "rotatedHead":
      return new RMSNorm(headWidth, options);
    case "all":
      return new RMSNorm(heads * headWidth, options);
    case "headLayerNorm":
      return new LayerNorm(headWidth, options);
    case "headLayerNorms":
      return new HeadNorms(heads, headWidth, options);
  }
}
