import { aNumber } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { sigmoid } from "../../ops/activation/sigmoid.ts";
import { cat } from "../../ops/join/cat.ts";
import { softmax } from "../../ops/softmax/softmax.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { ObjectDetector } from "../models/vision/detector.ts";
import type { Detr } from "../models/vision/detr/detr.ts";
import { RtDetr } from "../models/vision/rt_detr/rt_detr.ts";
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
  /** The minimum probability of an object. Default 0.5. */
  readonly threshold?: number | undefined;
}

/** An object in an image. */
export interface DetectedObject {
  /** The name of the label: `id2label` in the model's `config.json`. */
  readonly label: string;
  /** The probability. */
  readonly score: number;
  /** The sides of its box in pixels of the image; they may lie slightly outside the image. */
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
 * @param model a detector (`…ForObjectDetection`): YOLOS, DETR or RT-DETR
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
  model: ObjectDetector | Detr | RtDetr,
  images: readonly ImageInput[],
  options?: DetectObjectsOptions,
): Promise<DetectedObject[][]>;
export async function detectObjects(...values: unknown[]): Promise<DetectedObject[][]> {
  const { model, images, threshold, batch } = readCall(values);
  const sizes: Sides[] = [];
  const isFocal = model instanceof RtDetr;
  const compute = (pixels: Tensor) => {
    const { logits, boxes } = model.forward(pixels);
    return cat([isFocal ? sigmoid(logits) : softmax(logits, { dim: -1 }), boxes], -1);
  };
  const rows = await overImages("detectObjects", model, images, batch, compute, { sizes });
  const { labels, description } = model;
  const nameOf = (label: number) => labels?.names[label] ?? `LABEL_${label}`;
  return rows.map((row, at) => {
    const candidates = isFocal ? bestOf(row, description.labels) : likeliestOf(row, description.labels);
    const found = candidates.map(
      ({ label, score, box }): DetectedObject => ({ label: nameOf(label), score, box: inPixels(box, sizes[at]) }),
    );
    return found.filter(({ score }) => score > threshold).sort((a, b) => b.score - a.score);
  });
}

/** A label of a query, and the query's box: center and size as fractions of the image. */
interface Candidate {
  readonly label: number;
  readonly score: number;
  readonly box: Float32Array;
}

/** Each token or query has the probabilities of labels and of "no object", then the box. */
function likeliestOf(row: Float32Array, labels: number): Candidate[] {
  const size = labels + 5;
  return Array.from({ length: row.length / size }, (_, at) => {
    const scores = row.subarray(at * size, at * size + labels);
    const score = Math.max(...scores);
    return { label: scores.indexOf(score), score, box: row.subarray((at + 1) * size - 4, (at + 1) * size) };
  });
}

/**
 * Each query has independent probabilities of labels, then the box. Returns the (query, label) pairs with the highest
 * probabilities, as many as there are queries. A query may have several labels.
 */
function bestOf(row: Float32Array, labels: number): Candidate[] {
  const size = labels + 4;
  const queries = row.length / size;
  const all = Array.from({ length: queries * labels }, (_, at): Candidate => {
    const [query, label] = [Math.floor(at / labels), at % labels];
    const box = row.subarray((query + 1) * size - 4, (query + 1) * size);
    return { label, score: row[query * size + label], box };
  });
  return all.sort((a, b) => b.score - a.score).slice(0, queries);
}

function inPixels([x = 0, y = 0, across = 0, down = 0]: Float32Array, [height, width]: Sides): DetectedObject["box"] {
  return {
    left: (x - across / 2) * width,
    top: (y - down / 2) * height,
    right: (x + across / 2) * width,
    bottom: (y + down / 2) * height,
  };
}
