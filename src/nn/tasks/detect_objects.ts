import { aNumber } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { cat } from "../../ops/join/cat.ts";
import { softmax } from "../../ops/softmax/softmax.ts";
import type { ObjectDetector } from "../models/vision/detector.ts";
import type { Detr } from "../models/vision/detr/detr.ts";
import { aCount } from "./batches.ts";
import {
  aDetector,
  IMAGE_BATCH,
  type ImageBatchingOptions,
  type ImageInput,
  overImages,
  type Sides,
  someImages,
} from "./images.ts";

/** Options of {@link detectObjects}. */
export interface DetectObjectsOptions extends ImageBatchingOptions {
  /** The least probability of an object. Default 0.5. */
  readonly threshold?: number | undefined;
}

/** An object in an image. */
export interface DetectedObject {
  /** The name of the label: `id2label` in the model's `config.json`. */
  readonly label: string;
  /** The probability. */
  readonly score: number;
  /** The sides of its box in pixels of the image; they may be a little outside. */
  readonly box: { readonly left: number; readonly top: number; readonly right: number; readonly bottom: number };
}

const readCall = parameters("detectObjects", {
  model: operand(aDetector),
  images: operand(someImages),
  threshold: named(aNumber({ holds: (value) => value >= 0 && value <= 1, expected: "a number from 0 to 1" }), 0.5),
  batch: named(aCount, IMAGE_BATCH),
});

/**
 * Finds objects in images. Images are processed by the model's `processor`.
 *
 * @param model a detector (`…ForObjectDetection`): YOLOS or DETR
 * @param images at least one: paths, or tensors [channels, height, width] of uint8, or of floats from 0 to 1
 * @returns for each image its objects, the most probable first
 *
 * @example
 * const { model } = await nn.loadModel<nn.ObjectDetector>("hustvl/yolos-tiny");
 * const [objects] = await nn.detectObjects(model, ["street.jpg"], { threshold: 0.9 });
 * objects[0]; // { label: "car", score: 0.99, box: { left: 12, top: 40, right: 96, bottom: 80 } }
 *
 * @throws {ArgumentError} `noProcessor` for a model without a processor; for an empty list. @throws {ShapeError}
 * @throws {DTypeError} for other tensors. For paths, the errors of `io.loadImage`.
 */
export function detectObjects(
  model: ObjectDetector | Detr,
  images: readonly ImageInput[],
  options?: DetectObjectsOptions,
): Promise<DetectedObject[][]>;
export async function detectObjects(...values: unknown[]): Promise<DetectedObject[][]> {
  const { model, images, threshold, batch } = readCall(values);
  const sizes: Sides[] = [];
  const compute = (pixels: Parameters<ObjectDetector["forward"]>[0]) => {
    const { logits, boxes } = model.forward(pixels);
    return cat([softmax(logits, { dim: -1 }), boxes], -1);
  };
  const rows = await overImages("detectObjects", model, images, batch, compute, { sizes });
  return rows.map((row, at) => objectsIn(model, row, sizes[at]!, threshold));
}

/** Each token or query has the probabilities of labels and of "no object", then the box. */
function objectsIn(
  { description, labels }: ObjectDetector | Detr,
  row: Float32Array,
  [height, width]: Sides,
  threshold: number,
): DetectedObject[] {
  const size = description.labels + 5;
  const found = Array.from({ length: row.length / size }, (_, at): DetectedObject => {
    const scores = row.subarray(at * size, at * size + description.labels);
    const score = Math.max(...scores);
    const [x = 0, y = 0, across = 0, down = 0] = row.subarray((at + 1) * size - 4, (at + 1) * size);
    const label = scores.indexOf(score);
    const [left, right] = [(x - across / 2) * width, (x + across / 2) * width];
    const [top, bottom] = [(y - down / 2) * height, (y + down / 2) * height];
    return { label: labels?.names[label] ?? `LABEL_${label}`, score, box: { left, top, right, bottom } };
  });
  return found.filter(({ score }) => score > threshold).sort((a, b) => b.score - a.score);
}
