/** The mask decoder of a {@link Sam} model. */
import { gelu } from "../../../../ops/activation/gelu.ts";
import { relu } from "../../../../ops/activation/relu.ts";
import { sigmoid } from "../../../../ops/activation/sigmoid.ts";
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import { cat, stack } from "../../../../ops/join/cat.ts";
import { matmul } from "../../../../ops/matmul/matmul.ts";
import { flatten } from "../../../../ops/view/flatten.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { select } from "../../../../ops/view/slice.ts";
import { unsqueeze } from "../../../../ops/view/squeeze.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { Conv2d, ConvTranspose2d } from "../../../layers/convolution.ts";
import { Embedding } from "../../../layers/embedding.ts";
import { type LayerOptions, layerOptions } from "../../../layers/initialization.ts";
import { Linear } from "../../../layers/linear.ts";
import { Module } from "../../../layers/module.ts";
import { LayerNorm } from "../../../layers/normalization.ts";
import type { QuantizedLinear } from "../../../quantized/linear.ts";
import { gridOfPlanes, planesOf, tokensOf } from "../planes.ts";
import type { PromptedDescription } from "./description.ts";
import { overChannels } from "./image_encoder.ts";
import { TwoWayTransformer } from "./two_way.ts";

/** Linear layers with relu between them. */
export class SamHead extends Module<[x: Tensor], Tensor> {
  readonly layers: readonly (Linear | QuantizedLinear)[];

  /** @param sizes the width of the input, then the output width of each layer */
  constructor(sizes: readonly number[], options: LayerOptions) {
    super();
    this.layers = sizes.slice(1).map((size, at) => new Linear(sizes[at], size, layerOptions(options)));
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
  /** A logit, above 0 if there is an object: [1]. Only SAM 2 computes it. */
  readonly presence?: Tensor | undefined;
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
 * | `presenceToken.weight`, `presenceHead. …` | [1, width]; null except in SAM 2 |
 * | `fineProjection.weight` | [width / 4, width, 1, 1]; null except in SAM 2 |
 * | `finestProjection.weight` | [width / 8, width, 1, 1]; null except in SAM 2 |
 */
export class SamMaskDecoder extends Module<
  [image: Tensor, positions: Tensor, prompt: Tensor, finer?: readonly [finest: Tensor, fine: Tensor]],
  SamMasks
> {
  readonly scoreToken: Embedding;
  readonly maskTokens: Embedding;
  readonly transformer: TwoWayTransformer;
  readonly upscale: ConvTranspose2d;
  readonly upscaleNorm: LayerNorm;
  readonly enlarge: ConvTranspose2d;
  readonly maskHeads: readonly SamHead[];
  readonly scoreHead: SamHead;
  readonly presenceToken: Embedding | null;
  readonly presenceHead: SamHead | null;
  readonly fineProjection: Conv2d | null;
  readonly finestProjection: Conv2d | null;

  constructor(description: PromptedDescription, options: LayerOptions) {
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
    const { readsFiner } = decoder;
    this.presenceToken = readsFiner ? new Embedding(1, width, shared) : null;
    this.presenceHead = readsFiner ? new SamHead([width, width, width, 1], shared) : null;
    this.fineProjection = readsFiner ? new Conv2d(width, width / 4, 1, shared) : null;
    this.finestProjection = readsFiner ? new Conv2d(width, width / 8, 1, shared) : null;
  }

  /**
   * @param image [1, width, rows, columns]
   * @param positions [1, rows · columns, width]
   * @param prompt [1, tokens, width]
   * @param finer finer grids of the image, with the channels of the last two steps
   */
  override forward(
    image: Tensor,
    positions: Tensor,
    prompt: Tensor,
    finer?: readonly [finest: Tensor, fine: Tensor],
  ): SamMasks {
    const { presenceToken, presenceHead } = this;
    const before = presenceToken ? [presenceToken.weight] : [];
    const own = cat([...before, this.scoreToken.weight, this.maskTokens.weight], 0);
    const tokens = cat([unsqueeze(own, 0), prompt], 1);
    const states = this.transformer.forward({ tokens, places: positions }, tokensOf(image));
    const planes = planesOf(states.places, gridOfPlanes(image));
    const upscaled = this.upscale.forward(planes);
    const normed = gelu(overChannels(this.upscaleNorm, finer ? add(upscaled, finer[1]) : upscaled));
    const enlarged = this.enlarge.forward(normed);
    const features = gelu(finer ? add(enlarged, finer[0]) : enlarged);
    const token = (at: number) => select(states.tokens, 1, before.length + at);
    const factors = stack(
      this.maskHeads.map((head, at) => head.forward(token(1 + at))),
      1,
    );
    const masks = matmul(factors, flatten(features, 2));
    const scores = reshape(this.scoreHead.forward(token(0)), [-1]);
    return {
      masks: reshape(masks, [this.maskHeads.length, ...gridOfPlanes(features)]),
      scores: presenceHead ? sigmoid(scores) : scores,
      presence: presenceHead ? reshape(presenceHead.forward(select(states.tokens, 1, 0)), [-1]) : undefined,
    };
  }
}
