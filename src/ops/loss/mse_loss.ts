import { underName } from "../../backend/dispatch.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { square, sub } from "../elementwise/arithmetic.ts";
import { fusedLoss } from "./loss_function.ts";
import { type LossOptions, type LossReduction, reductionParameter, withTarget } from "./options.ts";
import { reduced } from "./reduced.ts";

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
  const [promotedX, promotedTarget] = withTarget("mseLoss", x, target);
  const composed = (a: Tensor, t: Tensor) => composedLoss(a, t, reduction);
  const loss = { operation: "mseLoss", loss: "squaredError", reduction, composed } as const;
  return underName("mseLoss", () => tidy(() => fusedLoss(promotedX, promotedTarget, [], loss)));
}
const mseLossParameters = parameters("mseLoss", {
  x: operand(aTensor),
  target: operand(aTensor),
  reduction: reductionParameter,
});

/** Composes the loss of other operations. */
function composedLoss(x: Tensor, target: Tensor, reduction: LossReduction): Tensor {
  const [a, t] = [x, target].map((operand) => toDType(operand, accumulationDType(operand.dtype)));
  return toDType(reduced(square(sub(a, t)), reduction), x.dtype);
}
