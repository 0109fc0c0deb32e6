/** Class numbers of predictions and targets. */
import { noGrad } from "../autograd/modes.ts";
import { ArgumentError, DTypeError, ShapeError } from "../core/errors.ts";
import { argmax } from "../ops/reduction/extrema.ts";
import { isFloat } from "../tensor/dtype.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** Pairs of class numbers. */
export interface Labels {
  readonly predicted: ArrayLike<number>;
  readonly target: ArrayLike<number>;
  /** The number of classes: the given number, or else one more than the largest class number. */
  readonly classes: number;
}

/**
 * Reads class numbers. Predictions are class numbers too, or scores with one more axis, along which the largest score
 * is the prediction.
 *
 * @throws {ShapeError} `shapesDiffer`. @throws {DTypeError} `notClasses`. @throws {ArgumentError} `outOfRange` for an
 * invalid class number, `noItems`.
 */
export function labelsOf(operation: string, predicted: Tensor, target: Tensor, classes: number | undefined): Labels {
  const chosen = isScored(predicted, target) ? noGrad(() => argmax(predicted, -1)) : predicted;
  if (chosen.shape.join() !== target.shape.join())
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected predictions of the target's shape, or scores with one more axis for the classes, got ` +
        `${predicted.describe()} and ${target.describe()}`,
    );
  const [classNumbers, others] = [numbersOf(operation, "predicted", chosen), numbersOf(operation, "target", target)];
  if (classNumbers.length === 0)
    throw new ArgumentError(operation, "noItems", "expected at least one prediction, got none");
  const least = Math.max(
    largest(operation, "predicted", classNumbers, classes),
    largest(operation, "target", others, classes),
  );
  return { predicted: classNumbers, target: others, classes: classes ?? least + 1 };
}

const isScored = (predicted: Tensor, target: Tensor): boolean =>
  predicted.rank === target.rank + 1 && predicted.shape.slice(0, -1).join() === target.shape.join();

/** Reads the elements of a tensor of integers or booleans as numbers. @throws {DTypeError} `notClasses` */
export function numbersOf(operation: string, name: string, x: Tensor): Float64Array {
  if (isFloat(x.dtype))
    throw new DTypeError(
      operation,
      "notClasses",
      `expected ${name} to have class numbers (integers or booleans), got ${x.describe()}; compare scores of two ` +
        "classes with a threshold first",
    );
  return Float64Array.from(x.dataSync(), Number);
}

/** Checks all class numbers, and returns the largest. */
function largest(operation: string, name: string, values: Float64Array, classes: number | undefined): number {
  const limit = classes ?? MOST_CLASSES;
  let most = 0;
  for (const value of values) {
    if (!(value >= 0 && value < limit))
      throw new ArgumentError(
        operation,
        "outOfRange",
        `expected class numbers in ${name} of at least 0 and below ${limit}, got ${value}`,
      );
    most = Math.max(most, value);
  }
  return most;
}
/** A confusion matrix of this many classes has 2³² elements. */
const MOST_CLASSES = 2 ** 16;
