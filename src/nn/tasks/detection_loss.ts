/** The loss for training detectors such as DETR, which predict a set of objects. */
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { aNumber, isArray, listOf } from "../../core/kinds.ts";
import { type Kind, named, operand, parameters } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { full, ones } from "../../ops/creation/full.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { abs, add, mul, sub } from "../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../ops/elementwise/clamp.ts";
import { div } from "../../ops/elementwise/division.ts";
import { maximum, minimum } from "../../ops/elementwise/extrema.ts";
import { indexSelect } from "../../ops/indexing/gather.ts";
import { cat } from "../../ops/join/cat.ts";
import { crossEntropy } from "../../ops/loss/cross_entropy.ts";
import { prod } from "../../ops/reduction/prod.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { softmax } from "../../ops/softmax/softmax.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { narrow, select } from "../../ops/view/slice.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { Detections } from "../models/vision/detector.ts";
import { assign } from "./assignment.ts";

/** The objects in an image. */
export interface DetectionTarget {
  /** The index of each object's label. */
  readonly labels: readonly number[];
  /** Each object's horizontal and vertical center, width and height, as fractions of the image. */
  readonly boxes: readonly (readonly [x: number, y: number, width: number, height: number])[];
}

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

const isNumberList = (value: unknown, count?: number): value is number[] =>
  isArray(value) && (count === undefined || value.length === count) && value.every((each) => typeof each === "number");

const aTarget: Kind<DetectionTarget> = {
  expected: "an object with as many labels as boxes of four numbers",
  parse(value) {
    const { labels, boxes } = (value ?? {}) as Partial<Record<string, unknown>>;
    const isFine = isNumberList(labels) && isArray(boxes) && boxes.every((box) => isNumberList(box, 4));
    return isFine && labels.length === boxes.length ? (value as DetectionTarget) : undefined;
  },
};
const aDetection: Kind<Detections> = {
  expected: "the logits and boxes that a detector returned",
  parse(value) {
    const { logits, boxes } = (value ?? {}) as Partial<Detections>;
    return Tensor.isTensor(logits) && Tensor.isTensor(boxes) ? (value as Detections) : undefined;
  },
};
const factor = (value: number) =>
  named(aNumber({ holds: (given) => given >= 0 && given < Infinity, expected: "a number of at least 0" }), value);

const readCall = parameters("detectionLoss", {
  detections: operand(aDetection),
  targets: operand(listOf(aTarget, "a list with the labels and boxes of each image")),
  ...{ noObject: factor(0.1), labelCost: factor(1), boxCost: factor(5), overlapCost: factor(2) },
  ...{ boxWeight: factor(5), overlapWeight: factor(2) },
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
 * Intersection over Union", 2019. The defaults are those of `transformers`.
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
  checkTargets(detections, targets);
  const [batch, queries, outputs] = tupleOf(logits.shape, 3);
  return tidy(() => {
    const matches = noGrad(() => matchesOf(detections, targets, options));
    const labels = new Int32Array(batch * queries).fill(outputs - 1);
    for (const { row, label } of matches) labels[row] = label;
    const weight = cat([ones([outputs - 1]), full([1], options.noObject)], 0);
    const scores = reshape(toDType(logits, "float32"), [batch * queries, outputs]);
    const ofLabels = crossEntropy(scores, tensor(labels), { weight });
    if (matches.length === 0) return ofLabels;
    const rows = tensor(Int32Array.from(matches, ({ row }) => row));
    const found = indexSelect(reshape(toDType(boxes, "float32"), [batch * queries, 4]), 0, rows);
    const wanted = tensor(Float32Array.from(matches.flatMap(({ box }) => box)), { shape: [matches.length, 4] });
    const distances = sum(abs(sub(found, wanted)));
    const overlaps = sum(sub(1, overlapOf(found, wanted)) as Tensor);
    const ofBoxes = add(mul(distances, options.boxWeight), mul(overlaps, options.overlapWeight));
    return add(ofLabels, div(ofBoxes, matches.length)) as Tensor;
  });
}

type Costs = Required<{ readonly [Key in "labelCost" | "boxCost" | "overlapCost"]: number }>;

interface Match {
  /** The index of the query among the queries of all images. */
  readonly row: number;
  readonly label: number;
  readonly box: readonly number[];
}

function checkTargets({ logits, boxes }: Detections, targets: readonly DetectionTarget[]): void {
  const [batch, queries = 0, outputs = 0] = logits.shape;
  if (logits.rank !== 3 || boxes.rank !== 3 || targets.length !== batch)
    throw new ShapeError(
      "detectionLoss",
      "wrongShape",
      `expected logits [batch, queries, labels + 1] and one target per image, got ${logits.describe()} and ` +
        `${targets.length} targets`,
    );
  for (const { labels } of targets) {
    if (labels.length > queries)
      throw new ArgumentError(
        "detectionLoss",
        "tooManyObjects",
        `expected at most ${queries} objects per image, one for each query, got ${labels.length}`,
      );
    const other = labels.find((label) => !Number.isSafeInteger(label) || label < 0 || label >= outputs - 1);
    if (other !== undefined)
      throw new ArgumentError(
        "detectionLoss",
        "invalidLabel",
        `expected labels from 0 to ${outputs - 2}, got ${other}`,
      );
  }
}

/** Matches each object to a query. Costs that are not finite count as very large. */
function matchesOf({ logits, boxes }: Detections, targets: readonly DetectionTarget[], costs: Costs): Match[] {
  const [, queries, outputs] = tupleOf(logits.shape, 3);
  return targets.flatMap(({ labels, boxes: wanted }, image) => {
    if (labels.length === 0) return [];
    const probabilities = softmax(toDType(select(logits, 0, image), "float32"), { dim: -1 }).dataSync();
    const found = toDType(select(boxes, 0, image), "float32");
    const matrix = labels.flatMap((label, object) => {
      const target = tensor(Float32Array.from(wanted[object]!), { shape: [1, 4] });
      const distances = sum(abs(sub(found, target)), { dim: 1 }).dataSync();
      const overlaps = overlapOf(found, target).dataSync();
      return Array.from({ length: queries }, (_, query) => {
        const ofLabel = costs.labelCost * Number(probabilities[query * outputs + label]);
        const cost = costs.boxCost * Number(distances[query]) - ofLabel - costs.overlapCost * Number(overlaps[query]);
        return Number.isFinite(cost) ? cost : LARGEST;
      });
    });
    const columns = assign(matrix, labels.length, queries);
    return columns.map((query, object) => ({
      ...{ row: image * queries + query, label: labels[object]!, box: wanted[object]! },
    }));
  });
}

const LARGEST = 1e30;

/** Computes the generalized intersection over union (GIoU) of each pair of boxes: [count]. */
function overlapOf(a: Tensor, b: Tensor): Tensor {
  const corners = (x: Tensor): [Tensor, Tensor] => {
    const [center, half] = [narrow(x, 1, 0, 2), mul(narrow(x, 1, 2, 2), 0.5)];
    return [sub(center, half), add(center, half)];
  };
  const [[firstA, lastA], [firstB, lastB]] = [corners(a), corners(b)];
  const areaOf = (first: Tensor, last: Tensor): Tensor => prod(clamp(sub(last, first), { min: 0 }), { dim: 1 });
  const common = areaOf(maximum(firstA, firstB), minimum(lastA, lastB));
  const union = sub(add(areaOf(firstA, lastA), areaOf(firstB, lastB)), common);
  const around = areaOf(minimum(firstA, firstB), maximum(lastA, lastB));
  return sub(div(common, union), div(sub(around, union), around));
}
