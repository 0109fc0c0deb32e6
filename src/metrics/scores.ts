/** Precision, recall and F1, per class or averaged. */
import { ArgumentError } from "../core/errors.ts";
import { aNumber, choice } from "../core/kinds.ts";
import { named, parameters } from "../core/parameters.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type ClassOptions, classParameters } from "./confusion.ts";
import { type Labels, labelsOf } from "./labels.ts";

/**
 * How classes are averaged: `"binary"` is only class 1, `"macro"` the mean of all classes, `"weighted"` their mean
 * weighted by the number of targets, `"micro"` counts all classes together, and `"none"` returns each class.
 */
export type Average = "binary" | "macro" | "weighted" | "micro" | "none";

/** Options of {@link precision}, {@link recall} and {@link f1Score}. */
export interface ScoreOptions<A extends Average = Average> extends ClassOptions {
  /** How classes are averaged. Default `"binary"`. */
  average?: A | undefined;
  /** The score of a class without predictions or targets, which would be 0 / 0. Default 0. */
  zeroDivision?: 0 | 1 | undefined;
}

type Score<A extends Average> = A extends "none" ? number[] : number;

/** The numbers of correct predictions, of predictions and of targets of one class. */
interface Counts {
  readonly hits: number;
  readonly predicted: number;
  readonly target: number;
}

type Formula = (counts: Counts) => readonly [numerator: number, denominator: number];

const scoreParameters = {
  ...classParameters,
  average: named(choice("binary", "macro", "weighted", "micro", "none"), "binary"),
  zeroDivision: named(aNumber({ holds: (value) => value === 0 || value === 1, expected: "0 or 1" }), 0),
} as const;

const precisionParameters = parameters("precision", scoreParameters);

/**
 * Returns the fraction of predictions of a class that are correct: hits / predicted, as scikit-learn's
 * `precision_score`. Without `classes`, the averages are over the classes that occur in predictions or targets.
 *
 * @param predicted class numbers of the target's shape, or scores with one more axis, along which the largest score is
 * the prediction
 * @param target class numbers: integers or booleans of any shape
 *
 * @example
 * metrics.precision(tensor([true, true, false]), tensor([true, false, true])); // 0.5
 *
 * @throws {ArgumentError} `notBinary` for `"binary"` with class numbers above 1. @throws {ShapeError}
 * @throws {DTypeError}
 */
export function precision<A extends Average = "binary">(
  predicted: Tensor,
  target: Tensor,
  options?: ScoreOptions<A>,
): Score<A>;
export function precision(...values: unknown[]): number | number[] {
  return score("precision", precisionParameters(values), ({ hits, predicted }) => [hits, predicted]);
}

const recallParameters = parameters("recall", scoreParameters);

/**
 * Returns the fraction of a class's targets that were predicted: hits / targets, as scikit-learn's `recall_score`.
 * Arguments, averages and errors are the same as for {@link precision}.
 *
 * @example
 * metrics.recall(model.forward(x), y, { average: "macro" }); // logits [n, classes], targets [n]
 *
 * @throws {ArgumentError} @throws {ShapeError} @throws {DTypeError}
 */
export function recall<A extends Average = "binary">(
  predicted: Tensor,
  target: Tensor,
  options?: ScoreOptions<A>,
): Score<A>;
export function recall(...values: unknown[]): number | number[] {
  return score("recall", recallParameters(values), ({ hits, target }) => [hits, target]);
}

const f1Parameters = parameters("f1Score", scoreParameters);

/**
 * Returns the harmonic mean of precision and recall: 2 hits / (predicted + targets), as scikit-learn's `f1_score`.
 * Arguments, averages and errors are the same as for {@link precision}.
 *
 * @example
 * metrics.f1Score(predicted, target, { average: "none", classes: 3 }); // [0.8, 0, 0.5]
 *
 * @throws {ArgumentError} @throws {ShapeError} @throws {DTypeError}
 */
export function f1Score<A extends Average = "binary">(
  predicted: Tensor,
  target: Tensor,
  options?: ScoreOptions<A>,
): Score<A>;
export function f1Score(...values: unknown[]): number | number[] {
  return score("f1Score", f1Parameters(values), ({ hits, predicted, target }) => [2 * hits, predicted + target]);
}

interface Given {
  readonly predicted: Tensor;
  readonly target: Tensor;
  readonly classes: number | undefined;
  readonly average: Average;
  readonly zeroDivision: number;
}

function score(operation: string, given: Given, formula: Formula): number | number[] {
  const labels = labelsOf(operation, given.predicted, given.target, given.classes);
  const all = countsOf(labels);
  const of = (counts: Counts): number => {
    const [numerator, denominator] = formula(counts);
    return denominator === 0 ? given.zeroDivision : numerator / denominator;
  };
  const occurs = ({ predicted, target }: Counts) => given.classes !== undefined || predicted + target > 0;
  const counted = all.filter(occurs);
  const averages: Readonly<Record<Average, () => number | number[]>> = {
    binary: () => of(positives(operation, all)),
    macro: () => sum(counted.map(of)) / counted.length,
    weighted: () => sum(counted.map((counts) => of(counts) * counts.target)) / labels.target.length,
    micro: () => of(together(all)),
    none: () => all.map(of),
  };
  return averages[given.average]();
}

function countsOf({ predicted, target, classes }: Labels): Counts[] {
  const [hits, predictions, targets] = Array.from({ length: 3 }, () => new Float64Array(classes)) as [
    ...[Float64Array, Float64Array, Float64Array],
  ];
  for (let at = 0; at < target.length; at++) {
    if (predicted[at] === target[at]) hits[target[at]]++;
    predictions[predicted[at]]++;
    targets[target[at]]++;
  }
  return Array.from(hits, (hit, at) => ({ hits: hit, predicted: predictions[at], target: targets[at] }));
}

/** The counts of class 1. */
function positives(operation: string, all: readonly Counts[]): Counts {
  if (all.slice(2).some(({ predicted, target }) => predicted + target > 0))
    throw new ArgumentError(
      operation,
      "notBinary",
      `expected the classes 0 and 1, got class numbers up to ${all.length - 1}; pass average: "macro", "weighted", ` +
        '"micro" or "none"',
    );
  return all[1] ?? { hits: 0, predicted: 0, target: 0 };
}

const together = (all: readonly Counts[]): Counts => ({
  hits: sum(all.map(({ hits }) => hits)),
  predicted: sum(all.map(({ predicted }) => predicted)),
  target: sum(all.map(({ target }) => target)),
});

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
