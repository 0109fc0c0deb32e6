/** Runs images through an image encoder in batches of equal sizes. */
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { either, instanceOf, isArray, listOf, text } from "../../core/kinds.ts";
import type { Kind } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { cat } from "../../ops/join/cat.ts";
import { type FloatDType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { inEvaluation } from "../layers/module.ts";
import { ImageClassifier } from "../models/vision/classifier/classifier.ts";
import { ObjectDetector } from "../models/vision/detector.ts";
import { Detr } from "../models/vision/detr/detr.ts";
import { DualEncoder } from "../models/vision/dual_encoder.ts";
import { ImageModel } from "../models/vision/image_model.ts";
import type { ImageProcessor } from "../models/vision/processor/processor.ts";
import { RtDetr } from "../models/vision/rt_detr/rt_detr.ts";
import { VisionEncoder } from "../models/vision/vision_encoder.ts";
import { MOST_TEXTS, valuesOfRows } from "./batches.ts";

/** An image: a path, or a tensor [channels, height, width] of uint8, or of floats from 0 to 1. */
export type ImageInput = string | Tensor;

/** Options of all functions that run an image encoder. */
export interface ImageBatchingOptions {
  /** The maximum number of images in a batch. The images of a batch have the same size after processing. Default 16. */
  readonly batch?: number | undefined;
}

/** @internal */
export type VisionModel = VisionEncoder | DualEncoder | ObjectDetector | ImageModel<unknown>;
/** @internal Height and width of an image. */
export type Sides = readonly [height: number, width: number];

/** @internal The default of `batch`. */
export const IMAGE_BATCH = 16;
/** @internal */
export const aVisionEncoder: Kind<VisionEncoder> = instanceOf(VisionEncoder, "an image encoder");
/** @internal */
export const aDualEncoder: Kind<DualEncoder> = instanceOf(DualEncoder, "a model of images and texts");
/** @internal */
export const aDetector: Kind<ObjectDetector | Detr | RtDetr> = either(
  instanceOf(ObjectDetector, "a detector of objects"),
  instanceOf(Detr, "a detector of objects"),
  instanceOf(RtDetr, "a detector of objects"),
);
/** @internal */
export const anyVision: Kind<VisionEncoder | DualEncoder | ImageClassifier> = either(
  aVisionEncoder,
  aDualEncoder,
  instanceOf(ImageClassifier, "a classifier of images"),
);

/** @internal */
export const anImage: Kind<ImageInput> = either(text, aTensor);
const list = listOf(anImage, "a list of images: paths, or tensors [channels, height, width]");
/** @internal */
export const someImages: Kind<ImageInput[]> = {
  expected: list.expected,
  parse(value, operation, name) {
    const parsed = list.parse(value, operation, name);
    return parsed && parsed.length > 0 && parsed.length <= MOST_TEXTS ? parsed : undefined;
  },
};

/** @internal Records that {@link overImages} keeps for each image. */
export interface SeenImages {
  readonly sizes?: Sides[] | undefined;
  readonly grids?: Sides[] | undefined;
}

/** @internal Returns the model's processor. @throws {ArgumentError} `noProcessor` if it has none */
export function processorOf(operation: string, model: VisionModel): ImageProcessor {
  if (model.processor) return model.processor;
  throw new ArgumentError(
    operation,
    "noProcessor",
    "expected a model with an image processor; load a folder with preprocessor_config.json, or set model.processor",
  );
}

/**
 * @internal Computes a list of numbers for each image, in batches. The model runs in evaluation mode without gradients;
 * the event loop runs between batches.
 *
 * @param compute computes a tensor whose first axis is the batch
 * @param seen lists that receive the size of each image before processing, and the last two sizes of its result
 *
 * @throws {ArgumentError} `noProcessor`, and the errors of `io.loadImage`.
 */
export async function overImages(
  operation: string,
  model: VisionModel,
  images: readonly ImageInput[],
  size: number,
  compute: (pixels: Tensor) => Tensor,
  { sizes, grids }: SeenImages = {},
): Promise<Float32Array[]> {
  const processor = processorOf(operation, model);
  const found = new Array<Float32Array>(images.length);
  const waiting = new Map<string, { at: number; pixels: Tensor }[]>();
  const flush = async (key: string) => {
    const members = waiting.get(key)!;
    waiting.delete(key);
    await yieldToEventLoop();
    const run = () =>
      toDType(
        compute(
          inDTypeOf(
            model,
            cat(
              members.map(({ pixels }) => pixels),
              0,
            ),
          ),
        ),
        "float32",
      );
    const result = tidy(() => noGrad(() => inEvaluation(model, run)));
    for (const { pixels } of members) pixels.dispose();
    const rows = await valuesOfRows(result);
    result.dispose();
    for (const [row, { at }] of members.entries()) {
      found[at] = rows[row];
      if (grids) grids[at] = tupleOf(result.shape.slice(-2), 2);
    }
  };
  try {
    for (const [at, image] of images.entries()) {
      const pixels = await pixelsOf(processor, image, (size) => {
        if (sizes) sizes[at] = size;
      });
      const key = pixels.shape.join();
      const members = waiting.get(key) ?? [];
      waiting.set(key, [...members, { at, pixels }]);
      if (members.length + 1 === size) await flush(key);
    }
    for (const key of [...waiting.keys()]) await flush(key);
  } finally {
    for (const members of waiting.values()) for (const { pixels } of members) pixels.dispose();
  }
  return found;
}

/**
 * @internal Runs a model that computes planes, such as depth maps, on an image or a list of images.
 *
 * @param resultOf converts an image's output, given the size of its planes and of the image
 * @returns one result, or a list of them
 */
export async function overPlanes<Result>(
  operation: string,
  model: ImageModel,
  image: ImageInput | readonly ImageInput[],
  batch: number,
  resultOf: (row: Float32Array, grid: Sides, size: Sides) => Result,
): Promise<Result | Result[]> {
  const images = isArray(image) ? image : [image];
  const [sizes, grids]: [Sides[], Sides[]] = [[], []];
  const compute = (pixels: Tensor) => model.forward(pixels);
  const rows = await overImages(operation, model, images, batch, compute, { sizes, grids });
  const found = rows.map((row, at) => resultOf(row, grids[at], sizes[at]));
  return isArray(image) ? found : found[0]!;
}

/** @internal Reads an image and processes it. */
export async function pixelsOf(
  processor: ImageProcessor,
  image: ImageInput,
  onSize: (size: Sides) => void,
): Promise<Tensor> {
  if (typeof image !== "string") {
    const pixels = processor.process(image);
    onSize(tupleOf(image.shape.slice(1), 2));
    return pixels;
  }
  const { loadImage } = await import("../../io/image/load.ts");
  const loaded = await loadImage(image);
  const pixels = processor.process(loaded);
  onSize(tupleOf(loaded.shape.slice(1), 2));
  loaded.dispose();
  return pixels;
}

function inDTypeOf(model: VisionModel, pixels: Tensor): Tensor {
  const { dtype } = firstWeightOf(model);
  return isFloat(dtype as FloatDType) ? toDType(pixels, dtype as FloatDType) : pixels;
}

const firstWeightOf = (model: VisionModel): { readonly dtype: string } =>
  model instanceof ImageModel ? model.firstWeight : ("vision" in model ? model.vision : model).embeddings.patch.weight;
