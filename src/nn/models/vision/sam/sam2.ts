/** The part of SAM 2 that finds masks in single images, built from a {@link Sam2Description}. */
import { add } from "../../../../ops/elementwise/arithmetic.ts";
import { interpolate } from "../../../../ops/picture/interpolate.ts";
import { permute } from "../../../../ops/view/permute.ts";
import { reshape } from "../../../../ops/view/reshape.ts";
import { select } from "../../../../ops/view/slice.ts";
import type { Tensor } from "../../../../tensor/tensor.ts";
import { Conv2d } from "../../../layers/convolution.ts";
import { Embedding } from "../../../layers/embedding.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../../layers/initialization.ts";
import type { Sam2Description } from "./description.ts";
import { Hiera } from "./hiera.ts";
import type { SamMasks } from "./mask_decoder.ts";
import { PromptedModel, type SamPrompt } from "./prompted.ts";

/** The features of images. */
export interface Sam2Features {
  /** [batch, width, rows, columns] */
  readonly embedding: Tensor;
  /** Finer grids: [batch, width / 8, 4 · rows, 4 · columns] and [batch, width / 4, 2 · rows, 2 · columns]. */
  readonly finer: readonly [finest: Tensor, fine: Tensor];
}

/**
 * SAM 2 for single images: finds the mask of an object from points and a box. `loadModel` returns it for a folder of
 * SAM 2 or 2.1, and does not load the memory for videos; `segmentImage` runs it. {@link PromptedModel} lists the other
 * parameters.
 *
 * | parameter | shape |
 * |---|---|
 * | `encoder. …` | see {@link Hiera} |
 * | `neck.0.weight` | [width, width of the last stage, kernel, kernel]; then of the stages before it |
 * | `noMemory.weight` | [1, width], added to the embedding of an image without earlier frames |
 * | `pointFrequencies.weight` | [2, width / 2], which encode prompts; `frequencies` encode the grid of the image |
 *
 * Source: N. Ravi et al., "SAM 2", 2024.
 */
export class Sam2 extends PromptedModel<Sam2Features> {
  readonly encoder: Hiera;
  readonly neck: readonly Conv2d[];
  readonly noMemory: Embedding;
  readonly pointFrequencies: Embedding;
  readonly #description: Sam2Description;

  constructor(description: Sam2Description, options: LayerOptions = {}) {
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    super(description, shared);
    const { channels, encoder, neck, width } = description;
    this.#description = description;
    this.encoder = new Hiera(channels, encoder, shared);
    this.neck = encoder.stages
      .toReversed()
      .map((stage) => new Conv2d(stage.width, width, neck.kernel, { ...shared, padding: neck.padding }));
    this.noMemory = new Embedding(1, width, shared);
    this.pointFrequencies = new Embedding(2, width / 2, shared);
  }

  /** The description that the model was built from. */
  override get description(): Sam2Description {
    return this.#description;
  }

  /** @internal */
  override get firstWeight(): Tensor {
    return this.encoder.patch.weight;
  }

  /** @internal */
  override get padsBoxes(): boolean {
    return true;
  }

  /** @internal */
  override get cropsMasks(): boolean {
    return false;
  }

  /** @internal */
  override get promptFrequencies(): Tensor {
    return this.pointFrequencies.weight;
  }

  /**
   * Computes the features of images.
   *
   * @param pixels floats [batch, channels, height, width] of the model's image size, from an {@link ImageProcessor}
   *
   * @throws {ShapeError} for other shapes.
   */
  override forward(pixels: Tensor): Sam2Features {
    this.checkPixels("Sam2", pixels);
    const { width } = this.#description;
    const [finest, fine, coarse] = this.levelsOf(this.encoder.forward(pixels));
    const { finestProjection, fineProjection } = this.decoder;
    return {
      embedding: add(coarse, reshape(this.noMemory.weight, [1, width, 1, 1])),
      finer: [finestProjection!.forward(finest), fineProjection!.forward(fine)],
    };
  }

  /**
   * Computes the masks of an object.
   *
   * @param features the features of one image from {@link forward}
   * @param prompt at least one point, or a box
   * @returns the mask for unambiguous prompts, then the masks for ambiguous ones
   */
  override masks({ embedding, finer }: Sam2Features, prompt: SamPrompt): SamMasks {
    return this.decoded(embedding, prompt, finer);
  }

  /**
   * Returns the index of the mask to use for an unambiguous prompt: 0; or, if that mask is unstable, which means that
   * its area depends on the threshold, the mask with the best score of the others.
   */
  override singleMask({ masks, scores }: SamMasks): number {
    const { stability } = this.#description;
    if (stability === null) return 0;
    const { delta, threshold } = stability;
    const logits = select(masks, 0, 0).dataSync();
    let [inner, outer] = [0, 0];
    for (const logit of logits) {
      if (Number(logit) > delta) inner++;
      if (Number(logit) > -delta) outer++;
    }
    if (outer === 0 || Math.fround(inner / outer) >= Math.fround(threshold)) return 0;
    const others = Array.from(scores.dataSync(), Number).slice(1);
    return 1 + others.indexOf(Math.max(...others));
  }

  /** Gives the stages one width, and adds coarser to finer ones: the three finest, the finest first. */
  private levelsOf(stages: readonly Tensor[]): Tensor[] {
    const { sums } = this.#description.neck;
    const last = stages.length - 1;
    const levels: Tensor[] = [];
    for (const [at, convolution] of this.neck.entries()) {
      const stage = last - at;
      const level = convolution.forward(permute(stages[stage], [0, 3, 1, 2]));
      const coarser = levels[0];
      const isSum = coarser !== undefined && sums.includes(stage);
      levels.unshift(isSum ? add(level, interpolate(coarser, { scaleFactor: 2, mode: "nearest" })) : level);
    }
    return levels.slice(0, 3);
  }
}
