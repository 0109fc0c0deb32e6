/** Models that find the mask of an object from points and boxes, built from a {@link SamDescription}. */
import type { Tensor } from "../../../../tensor/tensor.ts";
import { type LayerOptions, layerOptions, llamaInitialization } from "../../../layers/initialization.ts";
import type { SamDescription } from "./description.ts";
import { SamImageEncoder } from "./image_encoder.ts";
import type { SamMasks } from "./mask_decoder.ts";
import { PromptedModel, type SamPrompt } from "./prompted.ts";

/**
 * SAM, which finds the mask of an object from points and a box. `loadModel` returns it for a folder of such a model;
 * `segmentImage` runs it. `encoder` is a {@link SamImageEncoder}; {@link PromptedModel} lists the other parameters.
 *
 * Source: A. Kirillov et al., "Segment Anything", 2023.
 */
export class Sam extends PromptedModel<Tensor> {
  readonly encoder: SamImageEncoder;
  readonly #description: SamDescription;

  constructor(description: SamDescription, options: LayerOptions = {}) {
    const shared = { ...layerOptions(options), initialization: options.initialization ?? llamaInitialization() };
    super(description, shared);
    this.#description = description;
    this.encoder = new SamImageEncoder(description, shared);
  }

  /** The description that the model was built from. */
  override get description(): SamDescription {
    return this.#description;
  }

  /** @internal */
  override get firstWeight(): Tensor {
    return this.encoder.patch.weight;
  }

  /** @internal */
  override get padsBoxes(): boolean {
    return false;
  }

  /** @internal */
  override get cropsMasks(): boolean {
    return true;
  }

  /**
   * Computes the embeddings of images.
   *
   * @param pixels floats [batch, channels, height, width] of the model's image size, from an {@link ImageProcessor}
   * @returns [batch, width, rows, columns]
   *
   * @throws {ShapeError} for other shapes.
   */
  override forward(pixels: Tensor): Tensor {
    this.checkPixels("Sam", pixels);
    return this.encoder.forward(pixels);
  }

  /**
   * Computes the masks of an object.
   *
   * @param embedding the embedding of one image from {@link forward}, [1, width, rows, columns]
   * @param prompt at least one point, or a box
   * @returns the mask for unambiguous prompts, then the masks for ambiguous ones
   */
  override masks(embedding: Tensor, prompt: SamPrompt): SamMasks {
    return this.decoded(embedding, prompt);
  }
}
