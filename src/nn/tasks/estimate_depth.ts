import { either, instanceOf } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { interpolate } from "../../ops/picture/interpolate.ts";
import { reshape } from "../../ops/view/reshape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { DepthEstimator } from "../models/vision/depth/estimator.ts";
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

const readCall = parameters("estimateDepth", {
  model: operand(instanceOf(DepthEstimator, "a depth estimator")),
  image: operand(either(anImage, someImages)),
  batch: named(aCount, IMAGE_BATCH),
});

/**
 * Estimates the depth of each pixel of an image. Images are processed by the model's `processor`; depths are resized to
 * the size of the image (bicubic).
 *
 * @param model a model such as Depth Anything
 * @param image a path, or a tensor [channels, height, width] of uint8, or of floats from 0 to 1; or a list of them
 * @returns float32 [height, width], or a list of them: metric models return distances in meters; relative models return
 * inverse distances without a unit, larger for nearer pixels
 *
 * @example
 * const { model } = await nn.loadModel<nn.DepthEstimator>("depth-anything/Depth-Anything-V2-Small-hf");
 * const depth = await nn.estimateDepth(model, "street.jpg");
 * await io.saveImage("depth.png", nn.drawDepth(depth));
 *
 * @throws {ArgumentError} `noProcessor` for a model without a processor; for an empty list. @throws {ShapeError}
 * @throws {DTypeError} for other tensors. For paths, the errors of `io.loadImage`.
 */
export function estimateDepth(
  model: DepthEstimator,
  image: ImageInput,
  options?: ImageBatchingOptions,
): Promise<Tensor<"float32">>;
export function estimateDepth(
  model: DepthEstimator,
  image: readonly ImageInput[],
  options?: ImageBatchingOptions,
): Promise<Tensor<"float32">[]>;
export async function estimateDepth(...values: unknown[]): Promise<Tensor | Tensor[]> {
  const { model, image, batch } = readCall(values);
  return overPlanes("estimateDepth", model, image, batch, resized);
}

const resized = (row: Float32Array, grid: Sides, size: Sides): Tensor =>
  tidy(() => {
    const whole = interpolate(tensor(row, { shape: [1, 1, ...grid] }), {
      size: [...size],
      mode: "bicubic",
      alignCorners: false,
    });
    return reshape(whole, [...size]);
  });
