/** The loss for training detectors such as DETR, which predict a set of objects. */
import { noGrad } from "../../autograd/modes.ts";
import { listOf } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { full, ones } from "../../ops/creation/full.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { add, neg } from "../../ops/elementwise/arithmetic.ts";
import { cat } from "../../ops/join/cat.ts";
import { crossEntropy } from "../../ops/loss/cross_entropy.ts";
import { softmax } from "../../ops/softmax/softmax.ts";
import { reshape } from "../../ops/view/reshape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { Detections } from "../models/vision/detector.ts";
import {
  aDetection,
  aTarget,
  boxLossOf,
  checkTargets,
  type DetectionTarget,
  factor,
  matchedBoxes,
  matchesOf,
} from "./detection_matching.ts";

/** Options of {@link detectionLoss}. */
export interface DetectionLossOptions {
  /** The weight of queries without an object in the cross-entropy. Default 0.1. */
  readonly noObject?: number | undefined;
  /** The factor of a label's probability in the cost of a match. Default 1. */
  readonly labelCost?: number | undefined;
  /** The factor of the distance between boxes in the cost of a match. Default 5. */
  readonly boxCost?: number | undefined;
  /** The factor of the overlap of boxes in the cost of a match. Default 2. */
  readonly overlapCost?: number | undefined;
  /** The factor of the distance between boxes in the loss. Default 5. */
  readonly boxWeight?: number | undefined;
  /** The factor of the overlap of boxes in the loss. Default 2. */
  readonly overlapWeight?: number | undefined;
}

const readCall = parameters("detectionLoss", {
  detections: operand(aDetection),
  targets: operand(listOf(aTarget, "a list with the labels and boxes of each image")),
  noObject: factor(0.1),
  labelCost: factor(1),
  boxCost: factor(5),
  overlapCost: factor(2),
  boxWeight: factor(5),
  overlapWeight: factor(2),
});

/**
 * Computes the loss of DETR and YOLOS. The Hungarian algorithm matches each object to a different query so that the sum
 * of the costs is minimal:
 *
 *     − labelCost · p(label) + boxCost · |box − box'|₁ − overlapCost · GIoU(box, box')
 *
 * The loss is the sum of two terms. One is the cross-entropy of the labels of all queries, in which queries without an
 * object have the weight `noObject`. The other is the loss of the matched boxes, divided by the number of objects:
 *
 *     boxWeight · Σ |box − box'|₁ + overlapWeight · Σ (1 − GIoU(box, box')).
 *
 * Source: N. Carion et al., "End-to-End Object Detection with Transformers", 2020; H. Rezatofighi et al., "Generalized
 * Intersection over Union", 2019. The defaults match `transformers`.
 *
 * @param detections the result of a {@link Detr} or an {@link ObjectDetector}: logits [batch, queries, labels + 1] and
 * boxes [batch, queries, 4]
 * @param targets the objects in each image
 * @returns a scalar
 *
 * @example
 * backward(nn.detectionLoss(model.forward(pixels), [{ labels: [17], boxes: [[0.5, 0.5, 0.2, 0.3]] }]));
 *
 * @throws {ShapeError} `wrongShape` if the number of targets is not the batch size. @throws {ArgumentError}
 * `tooManyObjects` if an image has more objects than queries; `invalidLabel` for a label out of range.
 */
export function detectionLoss(
  detections: Detections,
  targets: readonly DetectionTarget[],
  options?: DetectionLossOptions,
): Tensor;
export function detectionLoss(...values: unknown[]): Tensor {
  const { detections, targets, ...options } = readCall(values);
  const { logits, boxes } = detections;
  checkTargets("detectionLoss", detections, targets, 1);
  const [batch, queries, outputs] = logits.shape as readonly [number, number, number];
  return tidy(() => {
    const probabilities = (scores: Tensor) => neg(softmax(scores, { dim: -1 }));
    const matches = noGrad(() => matchesOf(detections, targets, options, probabilities));
    const labels = new Int32Array(batch * queries).fill(outputs - 1);
    for (const { row, label } of matches) labels[row] = label;
    const weight = cat([ones([outputs - 1]), full([1], options.noObject)], 0);
    const scores = reshape(toDType(logits, "float32"), [batch * queries, outputs]);
    const ofLabels = crossEntropy(scores, tensor(labels), { weight });
    if (matches.length === 0) return ofLabels;
    return add(ofLabels, boxLossOf(matchedBoxes(boxes, matches), options));
  });
}
