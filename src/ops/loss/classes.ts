/** Validation for losses whose targets are classes. */
import { ShapeError } from "../../core/errors.ts";
import { formatShape, normalizeAxis, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkFloats } from "./options.ts";

/** Returns the axis of the classes: by default 1, or 0 for rank 1. @throws {ShapeError} */
export function classAxis(operation: string, what: string, x: Tensor, dim?: number): number {
  if (x.rank === 0)
    throw new ShapeError(operation, "wrongRank", `expected ${what} to have an axis of classes, got ${x.describe()}`);
  return normalizeAxis(operation, dim ?? (x.rank === 1 ? 0 : 1), x.rank);
}

/** Checks the factors of the classes. @throws {ShapeError} @throws {DTypeError} */
export function checkClassWeight(operation: string, classes: number, weight: Tensor | undefined): void {
  if (!weight) return;
  checkFloats(operation, "weight", weight);
  if (!sameShape(weight.shape, [classes]))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected weight to be a vector with one factor for each of ${classes} classes, got ${weight.describe()}`,
    );
}

/** Checks that targets have x's shape without the axis of the classes. @throws {ShapeError} */
export function checkTargetShape(operation: string, what: string, x: Tensor, targets: Tensor, axis: number): void {
  const expected = x.shape.toSpliced(axis, 1);
  if (!sameShape(targets.shape, expected))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected targets of shape ${formatShape(expected)}, that of ${what} ${x.describe()} without axis ${axis}, ` +
        `got ${targets.describe()}`,
    );
}
