/** The loss for training RT-DETR, whose labels have independent probabilities. */

import { noGrad } from "../../autograd/modes.ts";
import { lastElement } from "../../core/collections.ts";
import { listOf } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { sigmoid } from "../../ops/activation/sigmoid.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { add, mul, neg, sub } from "../../ops/elementwise/arithmetic.ts";
import { log } from "../../ops/elementwise/logarithm.ts";
import { pow } from "../../ops/elementwise/power.ts";
import { binaryCrossEntropyWithLogits } from "../../ops/loss/binary_cross_entropy.ts";
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
  type Match,
  matchedBoxes,
  matchesOf,
  shareOf,
} from "./detection_matching.ts";

/** Options of {@link focalDetectionLoss}. */
export interface FocalDetectionLossOptions {
  /** The factor of a label's focal cost in the cost of a match. Default 2. */
  readonly labelCost?: number | undefined;
  /** The factor of the distance between boxes in the cost of a match. Default 5. */
  readonly boxCost?: number | undefined;
  /** The factor of the overlap of boxes in the cost of a match. Default 2. */
  readonly overlapCost?: number | undefined;
  /** The weight of present labels in the cost of a match. Absent labels have 1 minus this weight. Default 0.25. */
  readonly costAlpha?: number | undefined;
  /** The exponent of probabilities in the cost of a match. Default 2. */
  readonly costGamma?: number | undefined;
  /** The factor of the loss of labels. Default 1. */
  readonly labelWeight?: number | undefined;
  /** The factor of the distance between boxes in the loss. Default 5. */
  readonly boxWeight?: number | undefined;
  /** The factor of the overlap of boxes in the loss. Default 2. */
  readonly overlapWeight?: number | undefined;
  /** The weight of labels without an object in the loss of labels. Default 0.75. */
  readonly alpha?: number | undefined;
  /** The exponent of probabilities in the loss of labels. Default 2. */
  readonly gamma?: number | undefined;
}

const readCall = parameters("focalDetectionLoss", {
  detections: operand(aDetection),
  targets: operand(listOf(aTarget, "a list with the labels and boxes of each image")),
  labelCost: factor(2),
  boxCost: factor(5),
  overlapCost: factor(2),
  costAlpha: factor(0.25),
  costGamma: factor(2),
  labelWeight: factor(1),
  boxWeight: factor(5),
  overlapWeight: factor(2),
  alpha: factor(0.75),
  gamma: factor(2),
});

/** Added to probabilities before their logarithm. */
const TINY = 1e-8;

/**
 * Computes the loss of RT-DETR's last layer. Objects and queries are matched as in {@link detectionLoss}, with a focal
 * cost of labels, where p is the probability of the object's label:
 *
 *     − costAlpha · (1 − p)^costGamma · ln p + (1 − costAlpha) · p^costGamma · ln(1 − p)
 *
 * The result is the loss of the matched boxes, as in {@link detectionLoss}, plus the varifocal loss of all labels,
 * divided by the number of objects. The target q is the intersection over union of the matched boxes, or 0 for labels
 * without an object:
 *
 *     labelWeight · Σ w · binaryCrossEntropy(p, q), where w = q with an object, and alpha · p^gamma without one
 *
 * Source: Y. Zhao et al., "DETRs Beat YOLOs on Real-time Object Detection", 2024; H. Zhang et al., "VarifocalNet: an
 * IoU-aware dense object detector", 2021. The defaults match `transformers`. Losses of earlier layers and of
 * denoising queries are left out.
 *
 * @param detections the result of an {@link RtDetr}: logits [batch, queries, labels] and boxes [batch, queries, 4]
 * @param targets the objects in each image
 * @returns a scalar
 *
 * @example
 * backward(nn.focalDetectionLoss(model.forward(pixels), [{ labels: [17], boxes: [[0.5, 0.5, 0.2, 0.3]] }]));
 *
 * @throws {ShapeError} `wrongShape` if the number of targets is not the batch size. @throws {ArgumentError}
 * `tooManyObjects` if an image has more objects than queries; `invalidLabel` for a label out of range.
 */
export function focalDetectionLoss(
  detections: Detections,
  targets: readonly DetectionTarget[],
  options?: FocalDetectionLossOptions,
): Tensor;
export function focalDetectionLoss(...values: unknown[]): Tensor {
  const { detections, targets, ...options } = readCall(values);
  checkTargets("focalDetectionLoss", detections, targets, 0);
  const { costAlpha, costGamma } = options;
  return tidy(() => {
    const costs = (logits: Tensor) => focalCosts(sigmoid(logits), costAlpha, costGamma);
    const matches = noGrad(() => matchesOf(detections, targets, options, costs));
    const pairs = matches.length > 0 ? matchedBoxes(detections.boxes, matches) : undefined;
    const shares = pairs ? noGrad(() => Array.from(shareOf(...pairs).dataSync(), Number)) : [];
    const sum = varifocalLoss(detections.logits, matches, shares, options);
    const ofLabels = mul(sum, options.labelWeight / Math.max(1, matches.length));
    return pairs ? add(ofLabels, boxLossOf(pairs, options)) : ofLabels;
  });
}

/** Returns the costs of labels with the probabilities p. */
function focalCosts(p: Tensor, alpha: number, gamma: number): Tensor {
  const part = (factor: number, base: Tensor, other: Tensor) =>
    mul(mul(pow(base, gamma), factor), neg(log(add(other, TINY))));
  const rest = sub(1, p);
  return sub(part(alpha, rest, p), part(1 - alpha, p, rest));
}

function varifocalLoss(
  given: Tensor,
  matches: readonly Match[],
  shares: readonly number[],
  { alpha, gamma }: { readonly alpha: number; readonly gamma: number },
): Tensor {
  const logits = toDType(given, "float32");
  const outputs = lastElement(logits.shape);
  const [target, isPresent] = [new Float32Array(logits.size), new Float32Array(logits.size)];
  for (const [at, { row, label }] of matches.entries()) {
    target[row * outputs + label] = shares[at];
    isPresent[row * outputs + label] = 1;
  }
  const [wanted, present] = [target, isPresent].map((values) => tensor(values, { shape: [...logits.shape] }));
  const weight = noGrad(() => {
    const absent = mul(mul(pow(sigmoid(logits), gamma), alpha), sub(1, present));
    return add(absent, wanted);
  });
  return binaryCrossEntropyWithLogits(logits, wanted, { weight, reduction: "sum" });
}
