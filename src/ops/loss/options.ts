/** What losses have in common: what becomes of the losses of all elements, and checks. */
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** What a loss gives: that of each element, their sum or their mean. */
export type LossReduction = "none" | "sum" | "mean";

/** Options of every loss. */
export interface LossOptions {
  /** Default `"mean"`. */
  reduction?: LossReduction | undefined;
}

/** @throws {ArgumentError} for a reduction that there is not. */
export function checkReduction(operation: string, reduction: LossReduction): void {
  if (reduction === "none" || reduction === "sum" || reduction === "mean") return;
  throw new ArgumentError(
    operation,
    "unknownReduction",
    `reduction ${String(reduction)} came, "none", "sum" or "mean" is wanted`,
  );
}

/** @throws {DTypeError} for anything but floats. @throws {DisposedError} */
export function checkFloats(operation: string, what: string, x: Tensor): void {
  x.checkAlive(operation);
  if (!isFloat(x.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `${what} ${x.describe()} came, floats are wanted; toDType(${what}, "float32") converts`,
    );
}

/** A target of x's shape and dtype. @throws {ShapeError} @throws {DTypeError} @throws {DisposedError} */
export function checkTarget(operation: string, x: Tensor, target: Tensor): void {
  checkFloats(operation, "x", x);
  target.checkAlive(operation);
  if (!sameShape(x.shape, target.shape))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `target ${target.describe()} came for x ${x.describe()}; the same shape is wanted, expand() repeats`,
    );
  if (target.dtype !== x.dtype)
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `target is ${target.dtype}, x is ${x.dtype}; both must have one dtype, toDType(target, "${x.dtype}") converts`,
    );
}
