/** Options and validation shared by losses. */

import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { choice } from "../../core/kinds.ts";
import { named } from "../../core/parameters.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { promoteOperands } from "../elementwise/operands.ts";

/** The result of a loss function: each loss (`"none"`), their sum or their mean. */
export type LossReduction = "none" | "sum" | "mean";

/** Options of every loss. */
export interface LossOptions {
  /** How the losses are reduced. Default `"mean"`. */
  reduction?: LossReduction | undefined;
}

/** The validated arguments of `crossEntropy`. */
export interface CrossEntropyCall {
  readonly axis: number;
  readonly ignoreIndex: number;
  readonly labelSmoothing: number;
  readonly weight: Tensor | undefined;
  readonly reduction: LossReduction;
}

/** The `reduction` parameter of every loss. */
export const reductionParameter = named<LossReduction>(
  { ...choice("none", "sum", "mean"), error: [ArgumentError, "unknownReduction"] },
  "mean",
);

/** Checks that x is alive and holds floats. @throws {DTypeError} @throws {DisposedError} */
export function checkFloats(operation: string, what: string, x: Tensor): void {
  x.checkAlive(operation);
  if (!isFloat(x.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `expected ${what} to be floats, got ${x.describe()}; convert it with toDType(${what}, "float32")`,
    );
}

/**
 * Checks the target's shape. @throws {ShapeError} if the shapes of target and x differ. PyTorch broadcasts and warns
 * that results are likely wrong
 */
export function checkShape(operation: string, x: Tensor, target: Tensor): void {
  x.checkAlive(operation);
  target.checkAlive(operation);
  if (!sameShape(x.shape, target.shape))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected target to have the shape of x ${x.describe()}, got ${target.describe()}; ` +
        "broadcast it with expand(target, x.shape)",
    );
}

/** Converts integers and bools to float32, the dtype of their exponentials and norms. */
export const asFloat = (x: Tensor): Tensor => (isFloat(x.dtype) ? x : toDType(x, "float32"));

/**
 * Converts x and a target of its shape to their common dtype: integers and bools become floats if the other is a float.
 *
 * @param kind `"numbers"`: the loss supports integers; `"floats"`: integers become float32
 *
 * @throws {ShapeError} @throws {DTypeError} if neither is a float and no kind is given @throws {DisposedError}
 */
export function withTarget(
  operation: string,
  x: Tensor,
  target: Tensor,
  kind?: "numbers" | "floats",
): readonly [x: Tensor, target: Tensor] {
  checkShape(operation, x, target);
  const [promotedX, promotedTarget] = promoteOperands(operation, [x, target], kind);
  if (kind === undefined) checkFloats(operation, "x", promotedX);
  return [promotedX, promotedTarget];
}

/** Checks that x and a target of its shape are floats. @throws {ShapeError} @throws {DTypeError} */
export function checkFloatTarget(operation: string, x: Tensor, target: Tensor): void {
  checkFloats(operation, "x", x);
  checkShape(operation, x, target);
  checkFloats(operation, "target", target);
}

/** Checks that a target has x's shape and dtype. @throws {ShapeError} @throws {DTypeError} @throws {DisposedError} */
export function checkTarget(operation: string, x: Tensor, target: Tensor): void {
  checkFloats(operation, "x", x);
  checkShape(operation, x, target);
  if (target.dtype !== x.dtype)
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `expected target to have the dtype of x, ${x.dtype}, got ${target.dtype}; ` +
        `convert it with toDType(target, "${x.dtype}")`,
    );
}

/** Checks that a factor of losses broadcasts to x. @throws {ShapeError} @throws {DTypeError} @throws {DisposedError} */
export function checkFactor(operation: string, what: string, x: Tensor, factor: Tensor | undefined): void {
  if (!factor) return;
  checkFloats(operation, what, factor);
  const lead = x.rank - factor.rank;
  if (lead >= 0 && factor.shape.every((size, axis) => size === 1 || size === x.shape[axis + lead])) return;
  throw new ShapeError(
    operation,
    "shapesDiffer",
    `expected ${what} to broadcast to x ${x.describe()}, sizes equal or 1, got ${factor.describe()}`,
  );
}
