/** The matching of objects and queries, and the loss of boxes, for training detectors. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { aNumber, isArray } from "../../core/kinds.ts";
import { type Kind, named } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { abs, add, mul, sub } from "../../ops/elementwise/arithmetic.ts";
import { clamp } from "../../ops/elementwise/clamp.ts";
import { div } from "../../ops/elementwise/division.ts";
import { maximum, minimum } from "../../ops/elementwise/extrema.ts";
import { indexSelect } from "../../ops/indexing/gather.ts";
import { prod } from "../../ops/reduction/prod.ts";
import { sum } from "../../ops/reduction/sum.ts";
import { reshape } from "../../ops/view/reshape.ts";
import { narrow, select } from "../../ops/view/slice.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { Detections } from "../models/vision/detector.ts";
import { assign } from "./assignment.ts";

/** The objects in an image. */
export interface DetectionTarget {
  /** The index of each object's label. */
  readonly labels: readonly number[];
  /** Each object's horizontal and vertical center, width and height, as fractions of the image. */
  readonly boxes: readonly (readonly [x: number, y: number, width: number, height: number])[];
}

const isNumberList = (value: unknown, count?: number): value is number[] =>
  isArray(value) && (count === undefined || value.length === count) && value.every((each) => typeof each === "number");

/** @internal */
export const aTarget: Kind<DetectionTarget> = {
  expected: "an object with as many labels as boxes of four numbers",
  parse(value) {
    const { labels, boxes } = (value ?? {}) as Partial<Record<string, unknown>>;
    const isFine = isNumberList(labels) && isArray(boxes) && boxes.every((box) => isNumberList(box, 4));
    return isFine && labels.length === boxes.length ? (value as DetectionTarget) : undefined;
  },
};
/** @internal */
export const aDetection: Kind<Detections> = {
  expected: "the logits and boxes that a detector returned",
  parse(value) {
    const { logits, boxes } = (value ?? {}) as Partial<Detections>;
    return Tensor.isTensor(logits) && Tensor.isTensor(boxes) ? (value as Detections) : undefined;
  },
};
/** @internal A factor of at least 0 with a default. */
export const factor = (value: number) =>
  named(aNumber({ holds: (given) => given >= 0 && given < Infinity, expected: "a number of at least 0" }), value);

/** The factors of the parts of a cost. */
type Costs = Required<{ readonly [Key in "labelCost" | "boxCost" | "overlapCost"]: number }>;

/** A query that is matched to an object. */
export interface Match {
  /** The index of the query among the queries of all images. */
  readonly row: number;
  readonly label: number;
  readonly box: readonly number[];
}

/**
 * @internal Checks targets. @param without the number of outputs that are not labels
 */
export function checkTargets(
  operation: string,
  { logits, boxes }: Detections,
  targets: readonly DetectionTarget[],
  without: number,
): void {
  const [batch, queries = 0, outputs = 0] = logits.shape;
  const count = outputs - without;
  if (logits.rank !== 3 || boxes.rank !== 3 || targets.length !== batch)
    throw new ShapeError(
      operation,
      "wrongShape",
      `expected logits [batch, queries, labels${without === 0 ? "" : " + 1"}] and one target per image, got ` +
        `${logits.describe()} and ${targets.length} targets`,
    );
  for (const { labels } of targets) {
    if (labels.length > queries)
      throw new ArgumentError(
        operation,
        "tooManyObjects",
        `expected at most ${queries} objects per image, one for each query, got ${labels.length}`,
      );
    const other = labels.find((label) => !Number.isSafeInteger(label) || label < 0 || label >= count);
    if (other !== undefined)
      throw new ArgumentError(operation, "invalidLabel", `expected labels from 0 to ${count - 1}, got ${other}`);
  }
}

/**
 * @internal Matches each object to a query. Costs that are not finite count as very large.
 *
 * @param labelCosts the cost of each label of the queries of an image [queries, outputs]
 */
export function matchesOf(
  { logits, boxes }: Detections,
  targets: readonly DetectionTarget[],
  costs: Costs,
  labelCosts: (logits: Tensor) => Tensor,
): Match[] {
  const [, queries, outputs] = logits.shape as readonly [number, number, number];
  return targets.flatMap(({ labels, boxes: wanted }, image) => {
    if (labels.length === 0) return [];
    const ofLabels = labelCosts(toDType(select(logits, 0, image), "float32")).dataSync();
    const found = toDType(select(boxes, 0, image), "float32");
    const matrix = labels.flatMap((label, object) => {
      const target = tensor(Float32Array.from(wanted[object]), { shape: [1, 4] });
      const distances = sum(abs(sub(found, target)), { dim: 1 }).dataSync();
      const overlaps = overlapOf(found, target).dataSync();
      return Array.from({ length: queries }, (_, query) => {
        const ofLabel = costs.labelCost * Number(ofLabels[query * outputs + label]);
        const cost = costs.boxCost * Number(distances[query]) + ofLabel - costs.overlapCost * Number(overlaps[query]);
        return Number.isFinite(cost) ? cost : LARGEST;
      });
    });
    const columns = assign(matrix, labels.length, queries);
    return columns.map((query, object) => ({
      row: image * queries + query,
      label: labels[object],
      box: wanted[object],
    }));
  });
}

const LARGEST = 1e30;

/** Boxes as corners, [count, 2] each, and the areas of their intersections and unions. */
function comparedBoxes(a: Tensor, b: Tensor) {
  const corners = (x: Tensor): [Tensor, Tensor] => {
    const [center, half] = [narrow(x, 1, 0, 2), mul(narrow(x, 1, 2, 2), 0.5)];
    return [sub(center, half), add(center, half)];
  };
  const [[firstA, lastA], [firstB, lastB]] = [corners(a), corners(b)];
  const common = areaOf(maximum(firstA, firstB), minimum(lastA, lastB));
  const union = sub(add(areaOf(firstA, lastA), areaOf(firstB, lastB)), common);
  return { firstA, lastA, firstB, lastB, common, union };
}

const areaOf = (first: Tensor, last: Tensor): Tensor => prod(clamp(sub(last, first), { min: 0 }), { dim: 1 });

/** @internal Computes the intersection over union (IoU) of each pair of boxes: [count]. */
export function shareOf(a: Tensor, b: Tensor): Tensor {
  const { common, union } = comparedBoxes(a, b);
  return div(common, union);
}

/** Computes the generalized intersection over union (GIoU) of each pair of boxes: [count]. */
function overlapOf(a: Tensor, b: Tensor): Tensor {
  const { firstA, lastA, firstB, lastB, common, union } = comparedBoxes(a, b);
  const around = areaOf(minimum(firstA, firstB), maximum(lastA, lastB));
  return sub(div(common, union), div(sub(around, union), around));
}

/** @internal Returns the boxes of matched queries and of their objects: [matches, 4] each. */
export function matchedBoxes(boxes: Tensor, matches: readonly Match[]): readonly [found: Tensor, wanted: Tensor] {
  const rows = tensor(Int32Array.from(matches, ({ row }) => row));
  const found = indexSelect(reshape(toDType(boxes, "float32"), [-1, 4]), 0, rows);
  return [found, tensor(Float32Array.from(matches.flatMap(({ box }) => box)), { shape: [matches.length, 4] })];
}

/** @internal Returns the loss of matched boxes, divided by their number. */
export function boxLossOf(
  [found, wanted]: readonly [Tensor, Tensor],
  { boxWeight, overlapWeight }: { readonly boxWeight: number; readonly overlapWeight: number },
): Tensor {
  const distances = sum(abs(sub(found, wanted)));
  const overlaps = sum(sub(1, overlapOf(found, wanted)));
  return div(add(mul(distances, boxWeight), mul(overlaps, overlapWeight)), found.shape[0]);
}
