import { flag } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { normalize as toUnit } from "../../ops/distance/normalize.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ImageClassifier } from "../models/vision/classifier/classifier.ts";
import type { DualEncoder } from "../models/vision/dual_encoder.ts";
import type { VisionEncoder } from "../models/vision/vision_encoder.ts";
import { aCount, matrixOf } from "./batches.ts";
import {
  anyVision,
  IMAGE_BATCH,
  type ImageBatchingOptions,
  type ImageInput,
  overImages,
  someImages,
} from "./images.ts";

/** Options of {@link embedImages}. */
export interface EmbedImagesOptions extends ImageBatchingOptions {
  /** Whether each result is scaled to length 1, so that products of results are cosine similarities. Default true. */
  readonly normalize?: boolean | undefined;
}

const readCall = parameters("embedImages", {
  model: operand(anyVision),
  images: operand(someImages),
  normalize: named(flag, true),
  batch: named(aCount, IMAGE_BATCH),
});

/**
 * Computes a vector for each image: similar images get similar vectors. With a model of images and texts such as CLIP,
 * {@link embed} computes vectors of texts in the same space. Images are processed by the model's `processor`.
 *
 * @param images at least one: paths, or tensors [channels, height, width] of uint8, or of floats from 0 to 1
 * @returns float32 [images, width]
 *
 * @example
 * const { model } = await nn.loadModel<nn.DualEncoder>("clip-vit-base-patch32");
 * const images = await nn.embedImages(model, ["cat.jpg", "dog.jpg"]);
 * const texts = await nn.embed(model, ["a photo of a cat"]);
 * matmul(texts, images.T); // cosines, float32 [1, 2]
 *
 * @throws {ArgumentError} `noProcessor` for a model without a processor; for an empty list. @throws {ShapeError}
 * @throws {DTypeError} for other tensors. For paths, the errors of `io.loadImage`.
 */
export function embedImages(
  model: VisionEncoder | DualEncoder | ImageClassifier,
  images: readonly ImageInput[],
  options?: EmbedImagesOptions,
): Promise<Tensor<"float32">>;
export async function embedImages(...values: unknown[]): Promise<Tensor> {
  const { model, images, normalize, batch } = readCall(values);
  const rows = await overImages("embedImages", model, images, batch, (pixels) => {
    const vectors = toDType(model.embedImages(pixels), "float32");
    return normalize ? toUnit(vectors, { dim: 1 }) : vectors;
  });
  return matrixOf(rows);
}
