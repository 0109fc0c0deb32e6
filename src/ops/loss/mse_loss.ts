import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { square, sub } from "../elementwise/arithmetic.ts";
import { elementLoss } from "./loss_function.ts";
import { type LossOptions, reductionParameter, withTarget } from "./options.ts";

/**
 * Computes the mean squared error: (x − target)², averaged over all elements.
 *
 * @param x floats of any shape
 * @param target of x's shape, promoted with x to one dtype; also differentiable
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in x's dtype; the mean of an empty tensor is
 * NaN
 *
 * @example
 * mseLoss(tensor([1, 2]), tensor([1, 4])); // float32 2
 *
 * @throws {ShapeError} if shapes differ. @throws {DTypeError} if neither is a float. @throws {ArgumentError} for an
 * unknown reduction.
 */
export function mseLoss<D extends DType, E extends DType>(
  x: Tensor<D>,
  target: Tensor<E>,
  options?: LossOptions,
): Tensor<Promote<D, E>>;
export function mseLoss(...values: unknown[]): Tensor {
  const { x, target, reduction } = mseLossParameters(values);
  const operands = withTarget("mseLoss", x, target);
  return elementLoss({ operation: "mseLoss", loss: "squaredError", reduction }, operands, (a, t) => square(sub(a, t)));
}
const mseLossParameters = parameters("mseLoss", {
  x: operand(aTensor),
  target: operand(aTensor),
  reduction: reductionParameter,
});
