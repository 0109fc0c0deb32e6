/** What losses have in common: what becomes of the losses of all elements, and checks. */

import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { choice } from "../../core/kinds.ts";
import { named } from "../../core/parameters.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { promoteOperands } from "../elementwise/operands.ts";

/** The result of a loss: that of each element, their sum or their mean. */
export type LossReduction = "none" | "sum" | "mean";

/** Options of every loss. */
export interface LossOptions {
  /** Default `"mean"`. */
  reduction?: LossReduction | undefined;
}

/** A call of `crossEntropy` whose arguments are checked. */
export interface CrossEntropyCall {
  readonly axis: number;
  readonly ignoreIndex: number;
  readonly labelSmoothing: number;
  readonly weight: Tensor | undefined;
  readonly reduction: LossReduction;
}

/** The parameter of every loss. */
export const reductionParameter = named<LossReduction>(
  { ...choice("none", "sum", "mean"), error: [ArgumentError, "unknownReduction"] },
  "mean",
);

/** @throws {DTypeError} for anything but floats. @throws {DisposedError} */
export function checkFloats(operation: string, what: string, x: Tensor): void {
  x.checkAlive(operation);
  if (!isFloat(x.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `expected ${what} to be floats, got ${x.describe()}; convert it with toDType(${what}, "float32")`,
    );
}

/** @throws {ShapeError} for a target of another shape than x: PyTorch repeats it, with a warning that it is wrong */
function checkShape(operation: string, x: Tensor, target: Tensor): void {
  x.checkAlive(operation);
  target.checkAlive(operation);
  if (!sameShape(x.shape, target.shape))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected target to have the shape of x ${x.describe()}, got ${target.describe()}; ` +
        "expand(target, x.shape) repeats it",
    );
}

/**
 * x and a target of its shape in their common dtype: integers and bools beside floats become floats.
 *
 * @param kind `"numbers"`: a loss that integers have, `"floats"`: one for which integers become float32
 *
 * @throws {ShapeError} @throws {DTypeError} where neither is a float, without a kind @throws {DisposedError}
 */
export function withTarget(
  operation: string,
  x: Tensor,
  target: Tensor,
  kind?: "numbers" | "floats",
): readonly [x: Tensor, target: Tensor] {
  checkShape(operation, x, target);
  const [own, its] = promoteOperands(operation, [x, target], kind) as [Tensor, Tensor];
  if (kind === undefined) checkFloats(operation, "x", own);
  return [own, its];
}

/** A target of x's shape and dtype. @throws {ShapeError} @throws {DTypeError} @throws {DisposedError} */
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

/** A factor of losses that broadcasts to x. @throws {ShapeError} @throws {DTypeError} @throws {DisposedError} */
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
