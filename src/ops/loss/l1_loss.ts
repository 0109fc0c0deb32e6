import { operand, parameters } from "../../core/parameters.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { abs, sub } from "../elementwise/arithmetic.ts";
import { checkNoBools } from "../elementwise/operands.ts";
import { plainLoss } from "./composed_loss.ts";
import { elementLoss } from "./loss_function.ts";
import { type LossOptions, reductionParameter, withTarget } from "./options.ts";

/**
 * Computes the mean absolute error: |x − target|, averaged over all elements. The gradient is 0 if both are equal.
 *
 * @param x floats or integers of any shape; `"mean"` requires floats
 * @param target of x's shape, promoted with x to one dtype; also differentiable
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in that dtype; the mean of an empty tensor is
 * NaN
 *
 * @example
 * l1Loss(tensor([1, 2]), tensor([1, 4])); // float32 1
 *
 * @throws {ShapeError} if shapes differ. @throws {DTypeError} for bools, and for the mean of integers.
 * @throws {ArgumentError} for an unknown reduction.
 */
export function l1Loss<D extends DType, E extends DType>(
  x: Tensor<D>,
  target: Tensor<E>,
  options?: LossOptions,
): Tensor<Promote<D, E>>;
export function l1Loss(...values: unknown[]): Tensor {
  const { x, target, reduction } = l1LossParameters(values);
  checkNoBools("l1Loss", { x, target });
  const operands = withTarget("l1Loss", x, target, "numbers");
  const difference = (a: Tensor, t: Tensor) => abs(sub(a, t));
  if (!isFloat(operands[0].dtype)) return plainLoss({ operation: "l1Loss", reduction }, operands, difference);
  return elementLoss({ operation: "l1Loss", loss: "absoluteError", reduction }, operands, difference);
}
const l1LossParameters = parameters("l1Loss", {
  x: operand(aTensor),
  target: operand(aTensor),
  reduction: reductionParameter,
});
