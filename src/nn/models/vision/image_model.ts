/** Base classes of image models. */
import type { Tensor } from "../../../tensor/tensor.ts";
import { Module } from "../../layers/module.ts";
import type { EncoderLabels } from "../encoder/labels.ts";
import type { ImageProcessor } from "./processor/processor.ts";

/** @internal The base class of models with results for parts of images. */
export abstract class ImageModel<Result = Tensor> extends Module<[pixels: Tensor], Result> {
  /**
   * Where the weights were loaded from: `owner/name` for a model in Hugging Face's cache, else the path. Undefined for
   * a model that was not loaded.
   */
  origin: string | undefined = undefined;
  #processor: ImageProcessor | undefined;

  /** @internal There is no cache. */
  get cacheElements(): number {
    return 0;
  }

  /** @internal There is no token embedding. */
  get usesWholeEmbedding(): boolean {
    return true;
  }

  /** @internal The weight whose dtype the pixels must have. */
  abstract get firstWeight(): Tensor;

  /** Converts images to the model's input; undefined if the folder has no settings for it. */
  get processor(): ImageProcessor | undefined {
    return this.#processor;
  }

  set processor(processor: ImageProcessor | undefined) {
    this.#processor = processor;
  }
}

/** @internal The base class of image models that score labels. */
export abstract class LabelledImageModel<Result = Tensor> extends ImageModel<Result> {
  #labels: EncoderLabels | undefined;

  /** The names of the labels; undefined if the model was not loaded from a folder that names them. */
  get labels(): EncoderLabels | undefined {
    return this.#labels;
  }

  set labels(labels: EncoderLabels | undefined) {
    this.#labels = labels;
  }
}
