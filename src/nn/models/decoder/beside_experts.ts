/** Experts that run in parallel with a layer's feed-forward, as in Gemma 4. */
import { lastElement } from "../../../core/collections.ts";
import { add, mul } from "../../../ops/elementwise/arithmetic.ts";
import { rmsNorm } from "../../../ops/normalization/rms_norm.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions } from "../../layers/initialization.ts";
import { Module } from "../../layers/module.ts";
import { RMSNorm } from "../../layers/normalization.ts";
import type { FeedForwardDescription } from "./description.ts";
import { Experts } from "./experts.ts";
import { Parameter } from "./recurrent/mixer.ts";

/**
 * Computes mlpNorm(y) + outputNorm(experts(inputNorm(x))), where x is the residual stream and y is the feed-forward's
 * output. The router reads x / rms(x) · routerScale / √width.
 *
 * | parameter | shape |
 * |---|---|
 * | `mlpNorm.weight`, `inputNorm.weight`, `outputNorm.weight`, `routerScale.weight` | [width] |
 * | `experts. …` | see {@link Experts} |
 */
export class BesideExperts extends Module<[y: Tensor, x: Tensor], Tensor> {
  readonly mlpNorm: RMSNorm;
  readonly inputNorm: RMSNorm;
  readonly outputNorm: RMSNorm;
  readonly routerScale: Parameter;
  readonly experts: Experts;
  readonly #eps: number;

  constructor(width: number, feedForward: FeedForwardDescription, options: LayerOptions & { readonly eps: number }) {
    super();
    const layer = layerOptions(options);
    const norm = () => new RMSNorm(width, { ...layer, eps: options.eps });
    [this.mlpNorm, this.inputNorm, this.outputNorm] = [norm(), norm(), norm()];
    this.routerScale = new Parameter(width, layer);
    this.experts = new Experts({ ...layer, width, feedForward });
    this.#eps = options.eps;
  }

  /** @param y [batch, tokens, width] @param x the same shape @returns the same shape */
  override forward(y: Tensor, x: Tensor): Tensor {
    const scale = mul(this.routerScale.forward(), lastElement(x.shape) ** -0.5);
    const routed = mul(rmsNorm(x, { eps: this.#eps }), scale);
    const chosen = this.outputNorm.forward(this.experts.forward(this.inputNorm.forward(x), routed));
    return add(this.mlpNorm.forward(y), chosen);
  }
}
