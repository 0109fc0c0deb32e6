import { ArgumentError } from "../../core/errors.ts";
import { either, flag, instanceOf, listOf } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { interpolate } from "../../ops/picture/interpolate.ts";
import { argmax } from "../../ops/reduction/extrema.ts";
import { select } from "../../ops/view/slice.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { SamPrompt } from "../models/vision/sam/prompted.ts";
import { Sam } from "../models/vision/sam/sam.ts";
import { Sam2 } from "../models/vision/sam/sam2.ts";
import { SemanticSegmenter } from "../models/vision/segformer/segmenter.ts";
import { aCount } from "./batches.ts";
import {
  anImage,
  IMAGE_BATCH,
  type ImageBatchingOptions,
  type ImageInput,
  overPlanes,
  type Sides,
  someImages,
} from "./images.ts";

import { aPrompt, type ObjectMask, type PromptOptions, promptedMasks } from "./prompted_masks.ts";

/** The labels of an image's pixels. */
export interface Segmentation {
  /** The number of the label of each pixel: int32 [height, width]. */
  readonly map: Tensor<"int32">;
  /** The labels that occur, each with its fraction of the pixels; the largest first. */
  readonly segments: readonly { readonly label: string; readonly index: number; readonly share: number }[];
}

const readCall = parameters("segmentImage", {
  model: operand(
    either(
      instanceOf(SemanticSegmenter, "a semantic segmenter"),
      either(instanceOf(Sam, "a model that reads prompts"), instanceOf(Sam2, "SAM 2")),
    ),
  ),
  image: operand(either(anImage, someImages)),
  batch: named(aCount, IMAGE_BATCH),
  objects: named(listOf(aPrompt, "a list of prompts: points, outside or a box, in pixels")),
  several: named(flag, true),
});

/**
 * Finds the label of each pixel of an image. Images are processed by the model's `processor`; scores are resized to
 * the size of the image (bilinear), and the label with the highest score wins.
 *
 * A model with prompts, such as SAM, finds the masks of objects from points and boxes.
 *
 * @param model a model for semantic segmentation, such as SegFormer; or SAM or SAM 2
 * @param image a path, or a tensor [channels, height, width] of uint8, or of floats from 0 to 1; or a list of them. SAM
 * takes only one image
 * @returns the labels of the pixels, or a list of them; for SAM, a list of masks for each object, the best first
 *
 * @example
 * const { model } = await nn.loadModel<nn.SemanticSegmenter>("nvidia/segformer-b0-finetuned-ade-512-512");
 * const { map, segments } = await nn.segmentImage(model, "street.jpg");
 * segments[0]; // { label: "road", index: 6, share: 0.41 }
 * await io.saveImage("map.png", nn.drawSegmentation(map));
 *
 * const { model: sam } = await nn.loadModel<nn.Sam>("facebook/sam-vit-base");
 * const [masks] = await nn.segmentImage(sam, "street.jpg", { objects: [{ points: [[120, 80]] }] });
 * masks![0]!.mask; // bool [height, width]
 *
 * @throws {ArgumentError} `noProcessor` for a model without a processor; `noPrompts` for SAM without objects or with a
 * list of images; `unusedPrompts` for objects with another model; for an empty list. @throws {ShapeError}
 * @throws {DTypeError} for other tensors. For paths, the errors of `io.loadImage`.
 */
export function segmentImage(
  model: SemanticSegmenter,
  image: ImageInput,
  options?: ImageBatchingOptions,
): Promise<Segmentation>;
export function segmentImage(
  model: SemanticSegmenter,
  image: readonly ImageInput[],
  options?: ImageBatchingOptions,
): Promise<Segmentation[]>;
export function segmentImage(model: Sam | Sam2, image: ImageInput, options: PromptOptions): Promise<ObjectMask[][]>;
export async function segmentImage(...values: unknown[]): Promise<Segmentation | Segmentation[] | ObjectMask[][]> {
  const { model, image, batch, objects, several } = readCall(values);
  if (model instanceof Sam || model instanceof Sam2) {
    const isOne = !Array.isArray(image);
    if (objects === undefined || objects.length === 0 || !isOne) throw noPrompts(isOne);
    return promptedMasks("segmentImage", model, image as ImageInput, { objects: objects as SamPrompt[], several });
  }
  if (objects !== undefined)
    throw new ArgumentError(
      "segmentImage",
      "unusedPrompts",
      "expected no objects for a semantic segmentation model; omit the option objects",
    );
  return overPlanes("segmentImage", model, image, batch, (row, grid, size) => segmentationOf(model, row, grid, size));
}

const noPrompts = (isOne: boolean): ArgumentError =>
  new ArgumentError(
    "segmentImage",
    "noPrompts",
    `expected one image and objects for a model that reads prompts, got ${isOne ? "no objects" : "a list of images"}`,
  );

function segmentationOf(model: SemanticSegmenter, row: Float32Array, grid: Sides, size: Sides): Segmentation {
  const { labels, description } = model;
  const map = tidy(() => {
    const scores = tensor(row, { shape: [1, description.labels, ...grid] });
    const resized = interpolate(scores, { size: [...size], mode: "bilinear", alignCorners: false });
    return toDType(select(argmax(resized, { dim: 1 }), 0, 0), "int32");
  });
  const counts = new Map<number, number>();
  const values = map.dataSync();
  for (const index of values) counts.set(index, (counts.get(index) ?? 0) + 1);
  const segments = [...counts].map(([index, count]) => ({
    label: labels?.names[index] ?? `LABEL_${index}`,
    index,
    share: count / values.length,
  }));
  return { map, segments: segments.sort((a, b) => b.share - a.share || a.index - b.index) };
}
