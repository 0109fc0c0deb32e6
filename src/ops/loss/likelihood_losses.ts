/** Negative log-likelihoods. */
import { aNumber, flag } from "../../core/kinds.ts";
import { notNegative, positive } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { atLeast } from "../distance/at_least.ts";
import { add, mul, square, sub } from "../elementwise/arithmetic.ts";
import { gt } from "../elementwise/comparison.ts";
import { div } from "../elementwise/division.ts";
import { exp } from "../elementwise/exponential.ts";
import { log } from "../elementwise/logarithm.ts";
import { checkNoBools, promoteOperands } from "../elementwise/operands.ts";
import { where } from "../elementwise/where.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { checkBroadcast, composedLoss } from "./composed_loss.ts";
import { elementLoss } from "./loss_function.ts";
import { asFloat, checkFloats, type LossOptions, reductionParameter, withTarget } from "./options.ts";

/** Options of {@link poissonNllLoss}. */
export interface PoissonNllLossOptions extends LossOptions {
  /** Whether x is the logarithm of the rate. Default true. */
  logInput?: boolean | undefined;
  /** Whether to add Stirling's approximation of log t! for targets above 1. Default false. */
  full?: boolean | undefined;
  /** Added to a rate before taking its logarithm. Default 1e-8. */
  eps?: number | undefined;
}

/**
 * Computes the negative log-likelihood of counts t under Poisson distributions, averaged over all elements: exp(x) − t
 * x, or x − t log(x + eps) without `logInput`.
 *
 * @param x log rates, or rates without `logInput`, of any shape; integers become float32
 * @param target of x's shape, promoted with x to one dtype; also differentiable
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in x's dtype
 *
 * @example
 * poissonNllLoss(tensor([0, 1]), tensor([1, 2]), { reduction: "none" }); // float32 [1, 0.71828183]
 *
 * @throws {ShapeError} if shapes differ. @throws {DTypeError} for bools in a difference, as in PyTorch.
 * @throws {ArgumentError} for an unknown reduction, or a negative eps.
 */
export function poissonNllLoss<D extends DType, E extends DType>(
  x: Tensor<D>,
  target: Tensor<E>,
  options?: PoissonNllLossOptions,
): Tensor<Promote<D, E>>;
export function poissonNllLoss(...values: unknown[]): Tensor {
  const { x, target, logInput, full, eps, reduction } = poissonParameters(values);
  if (!logInput || target.dtype === "bool") checkNoBools("poissonNllLoss", { x });
  if (full) checkNoBools("poissonNllLoss", { target });
  const operands = withTarget("poissonNllLoss", asFloat(x), target);
  const losses = (a: Tensor, t: Tensor) => (logInput ? sub(exp(a), mul(t, a)) : sub(a, mul(t, log(add(a, eps)))));
  const call = { operation: "poissonNllLoss", reduction } as const;
  if (full) return composedLoss(call, operands, (a, t) => add(losses(a, t), stirling(t)));
  return elementLoss({ ...call, loss: logInput ? "poissonOfLog" : "poisson", parameters: [eps, 0] }, operands, losses);
}
const poissonParameters = parameters("poissonNllLoss", {
  x: operand(aTensor),
  target: operand(aTensor),
  logInput: named(flag, true),
  full: named(flag, false),
  eps: named(aNumber(notNegative), 1e-8),
  reduction: reductionParameter,
});

/** Computes t log t − t + log(2πt) / 2 for t above 1, else 0. */
function stirling(target: Tensor): Tensor {
  const isLarge = gt(target, 1);
  const t = where(isLarge, target, 1);
  const approximation = add(sub(mul(t, log(t)), t), mul(log(mul(t, 2 * Math.PI)), 0.5));
  return where(isLarge, approximation, 0);
}

/** Options of {@link gaussianNllLoss}. */
export interface GaussianNllLossOptions extends LossOptions {
  /** Whether to add the constant log(2π) / 2. Default false. */
  full?: boolean | undefined;
  /** Lower bound of the variance. Default 1e-6. */
  eps?: number | undefined;
}

/**
 * Computes the negative log-likelihood of targets under normal distributions, averaged over all elements: (log v + (x −
 * target)² / v) / 2 with v = max(variance, eps). The variance's gradient is the gradient of v, even below eps.
 *
 * Source: D. Nix and A. Weigend, "Estimating the Mean and Variance of the Target Probability Distribution", 1994.
 *
 * @param x means, floats or integers of any shape
 * @param target floats or integers of x's shape; also differentiable
 * @param variance floats of x's shape, x's shape without its last axis, or a shape that broadcasts to x's
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in the common dtype
 *
 * @example
 * gaussianNllLoss(tensor([0, 1]), tensor([1, 1]), tensor([1, 4]), { reduction: "none" }); // float32 [0.5, 0.69314718]
 *
 * @throws {ShapeError} if shapes do not match. @throws {DTypeError} for bools, and for a variance of integers.
 * @throws {ArgumentError} for an unknown reduction, or an eps that is not above 0.
 */
export function gaussianNllLoss<D extends DType, E extends DType, F extends DType>(
  x: Tensor<D>,
  target: Tensor<E>,
  variance: Tensor<F>,
  options?: GaussianNllLossOptions,
): Tensor<Promote<Promote<D, E>, F>>;
export function gaussianNllLoss(...values: unknown[]): Tensor {
  const { x, target, variance, full, eps, reduction } = gaussianParameters(values);
  checkNoBools("gaussianNllLoss", { x, target });
  checkFloats("gaussianNllLoss", "variance", variance);
  const [mean, promotedTarget] = withTarget("gaussianNllLoss", x, target, "numbers");
  const isOfRows = variance.rank === x.rank - 1 && variance.shape.every((size, axis) => size === x.shape[axis]);
  const variances = isOfRows && variance.rank > 0 ? unsqueeze(variance, -1) : variance;
  const operands = promoteOperands("gaussianNllLoss", [mean, promotedTarget, variances]);
  checkBroadcast("gaussianNllLoss", { x: operands[0], variance: operands[2] });
  const constant = full ? 0.5 * Math.log(2 * Math.PI) : 0;
  const loss = { operation: "gaussianNllLoss", loss: "gaussian", reduction, parameters: [eps, constant] } as const;
  return elementLoss(loss, operands, (a, t, v) => {
    const least = atLeast(v, eps);
    return add(mul(add(log(least), div(square(sub(a, t)), least)), 0.5), constant);
  });
}
const gaussianParameters = parameters("gaussianNllLoss", {
  x: operand(aTensor),
  target: operand(aTensor),
  variance: operand(aTensor),
  full: named(flag, false),
  eps: named(aNumber(positive), 1e-6),
  reduction: reductionParameter,
});
