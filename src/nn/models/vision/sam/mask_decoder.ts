/** The mask decoder of a {@link Sam} model. */
import { gelu } from "../../../../ops/activation/gelu.ts";
import { relu } from "../../../../ops/activation/relu.ts";
import { cat, stack } from "../../../../ops/join/cat.ts";
import { matmul } from "../../../../ops/matmul/matmul.ts";
import { flatten } from "../../../../ops/view/flatten.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { select } from "../../../../ops/view/slice.ts";
import { unsqueeze } from "../../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { ConvTranspose2d } from "../../../layers/convolution.ts";
import { Embedding } from "../../../layers/embedding.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { Module } from "../../../layers/module.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import { gridOfPlanes, planesOf, tokensOf } from "../planes.ts";
import type { SamDescription } from "./description.ts";
import { overChannels } from "./image_encoder.ts";
import { TwoWayTransformer } from "./two_way.ts";

/** Linear layers with relu between them. */
export class SamHead extends Module<[x: Tensor], Tensor> {
  readonly layers: readonly (Linear | QuantizedLinear)[];

  /** @param sizes the width of the input, then the output width of each layer */
  constructor(sizes: readonly number[], options: LayerOptions) {
    super();
    this.layers = sizes.slice(1).map((size, at) => new Linear(sizes[at]!, size, layerOptions(options)));
  }

  /** @param x [..., input width] @returns [..., output width] */
  override forward(x: Tensor): Tensor {
    return this.layers.reduce((state, layer, at) => layer.forward(at === 0 ? state : relu(state)), x);
  }
}

/** The masks of one prompt. */
export interface SamMasks {
  /** Logits, above 0 inside the object: [masks, 4 · patch rows, 4 · patch columns]. */
  readonly masks: Tensor;
  /** The predicted quality of each mask, about its overlap with the object (IoU), up to 1: [masks]. */
  readonly scores: Tensor;
}

/**
 * Computes masks from the embeddings of an image and a prompt. The first mask is for unambiguous prompts.
 *
 * | parameter | shape |
 * |---|---|
 * | `scoreToken.weight`, `maskTokens.weight` | [1, width], [masks + 1, width] |
 * | `transformer. …` | see {@link TwoWayTransformer} |
 * | `upscale.weight`, `enlarge.weight` | [width, width / 4, 2, 2], [width / 4, width / 8, 2, 2] |
 * | `upscaleNorm.weight` | [width / 4] |
 * | `maskHeads.0. …`, `scoreHead. …` | see {@link SamHead} |
 */
export class SamMaskDecoder extends Module<[image: Tensor, positions: Tensor, prompt: Tensor], SamMasks> {
  readonly scoreToken: Embedding;
  readonly maskTokens: Embedding;
  readonly transformer: TwoWayTransformer;
  readonly upscale: ConvTranspose2d;
  readonly upscaleNorm: LayerNorm;
  readonly enlarge: ConvTranspose2d;
  readonly maskHeads: readonly SamHead[];
  readonly scoreHead: SamHead;

  constructor(description: SamDescription, options: LayerOptions) {
    super();
    const { width, decoder } = description;
    const shared = layerOptions(options);
    const count = decoder.masks + 1;
    const { width: hidden, layers } = decoder.scores;
    this.scoreToken = new Embedding(1, width, shared);
    this.maskTokens = new Embedding(count, width, shared);
    this.transformer = new TwoWayTransformer(description, shared);
    this.upscale = new ConvTranspose2d(width, width / 4, 2, { ...shared, stride: 2 });
    this.upscaleNorm = new LayerNorm(width / 4, { ...shared, eps: 1e-6 });
    this.enlarge = new ConvTranspose2d(width / 4, width / 8, 2, { ...shared, stride: 2 });
    this.maskHeads = Array.from({ length: count }, () => new SamHead([width, width, width, width / 8], shared));
    this.scoreHead = new SamHead([width, ...new Array<number>(layers - 1).fill(hidden), count], shared);
  }

  /**
   * @param image [1, width, rows, columns]
   * @param positions [1, rows · columns, width]
   * @param prompt [1, tokens, width]
   */
  override forward(image: Tensor, positions: Tensor, prompt: Tensor): SamMasks {
    const own = cat([this.scoreToken.weight, this.maskTokens.weight], 0);
    const tokens = cat([unsqueeze(own, 0), prompt], 1);
    const states = this.transformer.forward({ tokens, places: positions }, tokensOf(image));
    const planes = planesOf(states.places, gridOfPlanes(image));
    const upscaled = gelu(overChannels(this.upscaleNorm, this.upscale.forward(planes)));
    const features = gelu(this.enlarge.forward(upscaled));
    const token = (at: number) => select(states.tokens, 1, at);
    const factors = stack(
      this.maskHeads.map((head, at) => head.forward(token(1 + at))),
      1,
    );
    const masks = matmul(factors, flatten(features, 2));
    return {
      masks: reshape(masks, [this.maskHeads.length, ...gridOfPlanes(features)]),
      scores: reshape(this.scoreHead.forward(token(0)), [-1]),
    };
  }
}
