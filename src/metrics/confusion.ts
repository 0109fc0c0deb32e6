/** Accuracy and confusion matrices. */
import { aNumber } from "../core/kinds.ts";
import { count } from "../core/options.ts";
import { named, operand, parameters } from "../core/parameters.ts";
import { tensor } from "../ops/creation/tensor.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { labelsOf } from "./labels.ts";

/** Options of metrics over classes. */
export interface ClassOptions {
  /** The number of classes. Default: one more than the largest class number. */
  classes?: number | undefined;
}

/** @internal The arguments of metrics over classes. */
export const classParameters = {
  predicted: operand(aTensor),
  target: operand(aTensor),
  classes: named(
    aNumber({ holds: (value) => count.holds(value) && value <= 2 ** 16, expected: "a whole number from 1 to 65536" }),
  ),
} as const;

const accuracyParameters = parameters("accuracy", { predicted: operand(aTensor), target: operand(aTensor) });

/**
 * Returns the fraction of correct predictions.
 *
 * @param predicted class numbers of the target's shape, or scores with one more axis, along which the largest score is
 * the prediction
 * @param target class numbers: integers or booleans of any shape
 *
 * @example
 * metrics.accuracy(tensor([1n, 0n, 2n]), tensor([1n, 0n, 0n])); // 0.6666666666666666
 * metrics.accuracy(model.forward(x), y); // logits [n, classes], targets [n]
 *
 * @throws {ShapeError} `shapesDiffer`. @throws {DTypeError} `notClasses`. @throws {ArgumentError}
 */
export function accuracy(predicted: Tensor, target: Tensor): number;
export function accuracy(...values: unknown[]): number {
  const given = accuracyParameters(values);
  const labels = labelsOf("accuracy", given.predicted, given.target, undefined);
  let right = 0;
  for (let at = 0; at < labels.target.length; at++) if (labels.predicted[at] === labels.target[at]) right++;
  return right / labels.target.length;
}

const confusionParameters = parameters("confusionMatrix", classParameters);

/**
 * Counts pairs of target and prediction: int64 [classes, classes], where row i and column j have the number of items of
 * class i that were predicted as class j. Matrices of several batches may be added.
 *
 * @param predicted class numbers of the target's shape, or scores with one more axis, along which the largest score is
 * the prediction
 * @param target class numbers: integers or booleans of any shape
 *
 * @example
 * metrics.confusionMatrix(tensor([1n, 0n, 1n]), tensor([1n, 0n, 0n])).toArray(); // [[1n, 1n], [0n, 1n]]
 *
 * @throws {ShapeError} `shapesDiffer`. @throws {DTypeError} `notClasses`. @throws {ArgumentError} `outOfRange` for an
 * invalid class number.
 */
export function confusionMatrix(predicted: Tensor, target: Tensor, options?: ClassOptions): Tensor<"int64">;
export function confusionMatrix(...values: unknown[]): Tensor<"int64"> {
  const given = confusionParameters(values);
  const { predicted, target, classes } = labelsOf("confusionMatrix", given.predicted, given.target, given.classes);
  const counts = new BigInt64Array(classes * classes);
  for (let at = 0; at < target.length; at++) counts[target[at] * classes + predicted[at]]++;
  return tensor(counts, { shape: [classes, classes] });
}
