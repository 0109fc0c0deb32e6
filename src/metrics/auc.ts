/** The area under the ROC curve. */
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { choice } from "../core/kinds.ts";
import { named, operand, parameters } from "../core/parameters.ts";
import { isFloat } from "../tensor/dtype.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { numbersOf } from "./labels.ts";

/** Options of {@link rocAuc}. */
export interface AucOptions {
  /** For several classes: their mean, or their mean weighted by the number of targets. Default `"macro"`. */
  average?: "macro" | "weighted" | undefined;
}

const aucParameters = parameters("rocAuc", {
  scores: operand(aTensor),
  target: operand(aTensor),
  average: named(choice("macro", "weighted"), "macro"),
});

/**
 * Returns the area under the ROC curve: the probability that an item of the class has a higher score than an item of
 * another class, where equal scores count half. It is NaN if a class has no targets, or all of them. For several
 * classes it is the average of each class against the rest. It matches scikit-learn's `roc_auc_score` with
 * `multi_class="ovr"`.
 *
 * @param scores floating-point: [n], of class 1; or [n, classes]
 * @param target class numbers: integers or booleans [n]
 *
 * @example
 * metrics.rocAuc(tensor([0.1, 0.4, 0.35, 0.8]), tensor([false, false, true, true])); // 0.75
 *
 * @throws {ShapeError} `shapesDiffer`. @throws {DTypeError} `notClasses`, `notScores`. @throws {ArgumentError}
 * `outOfRange` for an invalid class number, `noItems`, `notANumber` for a NaN among the scores.
 */
export function rocAuc(scores: Tensor, target: Tensor, options?: AucOptions): number;
export function rocAuc(...values: unknown[]): number {
  const { scores, target, average } = aucParameters(values);
  checkOperands(scores, target);
  const classes = scores.rank === 1 ? 2 : scores.shape[1];
  const labels = numbersOf("rocAuc", "target", target);
  const wrong = labels.find((label) => !(label >= 0 && label < classes));
  if (wrong !== undefined) fail("outOfRange", `expected class numbers in target below ${classes}, got ${wrong}`);
  const all = Float64Array.from(scores.dataSync() as Float32Array);
  if (all.some(Number.isNaN)) fail("notANumber", "expected scores that are numbers, got NaN");
  if (scores.rank === 1) return areaOf(all, (at) => labels[at] === 1);
  const areas = Array.from({ length: classes }, (_, which) =>
    areaOf(
      all.filter((_score, at) => at % classes === which),
      (at) => labels[at] === which,
    ),
  );
  const weightOf = (which: number) => (average === "macro" ? 1 : labels.filter((label) => label === which).length);
  const weights = areas.map((_, which) => weightOf(which));
  return sum(areas.map((area, which) => area * weights[which])) / sum(weights);
}

function checkOperands(scores: Tensor, target: Tensor): void {
  if (!isFloat(scores.dtype))
    throw new DTypeError("rocAuc", "notScores", `expected floating-point scores, got ${scores.describe()}`);
  const fits = target.rank === 1 && (scores.rank === 1 || scores.rank === 2) && scores.shape[0] === target.shape[0];
  if (!fits)
    throw new ShapeError(
      "rocAuc",
      "shapesDiffer",
      `expected scores [n] or [n, classes] and a target [n], got ${scores.describe()} and ${target.describe()}`,
    );
  if (scores.size === 0) fail("noItems", "expected at least one score, got none");
}

/**
 * Computes the Mann-Whitney U of the positives from the sum of their ranks, with averaged ties, divided by the number
 * of pairs.
 */
function areaOf(scores: Float64Array, isPositive: (at: number) => boolean): number {
  const order = Array.from(scores.keys()).sort((a, b) => scores[a] - scores[b] || 0); // ∞ − ∞ is NaN
  let [ranks, positives] = [0, 0];
  for (let start = 0, end = 0; start < order.length; start = end) {
    while (end < order.length && scores[order[end]] === scores[order[start]]) end++;
    const tied = order.slice(start, end).filter(isPositive).length;
    ranks += tied * ((start + 1 + end) / 2);
    positives += tied;
  }
  return (ranks - (positives * (positives + 1)) / 2) / (positives * (scores.length - positives));
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function fail(code: string, message: string): never {
  throw new ArgumentError("rocAuc", code, message);
}
