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
import { where } from "../elementwise/where.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { checkBroadcast, composedLoss } from "./composed_loss.ts";
import { type LossOptions, reductionParameter, withTarget } from "./options.ts";

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
 * @throws {ShapeError} if shapes differ. @throws {ArgumentError} for an unknown reduction, or a negative eps.
 */
export function poissonNllLoss<D extends DType, E extends DType>(
  x: Tensor<D>,
  target: Tensor<E>,
  options?: PoissonNllLossOptions,
): Tensor<Promote<D, E>>;
export function poissonNllLoss(...values: unknown[]): Tensor {
  const { x, target, logInput, full, eps, reduction } = poissonParameters(values);
  const operands = withTarget("poissonNllLoss", x, target, "floats");
  return composedLoss({ operation: "poissonNllLoss", reduction }, operands, (a, t) => {
    const losses = (logInput ? sub(exp(a!), mul(t!, a!)) : sub(a!, mul(t!, log(add(a!, eps) as Tensor)))) as Tensor;
    return full ? (add(losses, stirling(t!)) as Tensor) : losses;
  });
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
  const t = where(isLarge, target, 1) as Tensor;
  const approximation = add(sub(mul(t, log(t)), t), mul(log(mul(t, 2 * Math.PI) as Tensor), 0.5));
  return where(isLarge, approximation, 0) as Tensor;
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
 * target)² / v) / 2 with v = max(variance, eps). The variance's gradient is that of v, also below eps.
 *
 * Source: D. Nix and A. Weigend, "Estimating the Mean and Variance of the Target Probability Distribution", 1994.
 *
 * @param x means, floats of any shape
 * @param target of x's shape, promoted with x to one dtype; also differentiable
 * @param variance of x's dtype and of x's shape, x's shape without its last axis, or a shape that broadcasts to x's
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in x's dtype
 *
 * @example
 * gaussianNllLoss(tensor([0, 1]), tensor([1, 1]), tensor([1, 4]), { reduction: "none" }); // float32 [0.5, 0.69314718]
 *
 * @throws {ShapeError} if shapes do not match. @throws {DTypeError} if neither x nor target is a float, or the variance
 * has a different dtype. @throws {ArgumentError} for an unknown reduction, or an eps that is not above 0.
 */
export function gaussianNllLoss<D extends DType, E extends DType>(
  x: Tensor<D>,
  target: Tensor<E>,
  variance: Tensor<D>,
  options?: GaussianNllLossOptions,
): Tensor<Promote<D, E>>;
export function gaussianNllLoss(...values: unknown[]): Tensor {
  const { x, target, variance, full, eps, reduction } = gaussianParameters(values);
  const [mean, promotedTarget] = withTarget("gaussianNllLoss", x, target);
  const isOfRows = variance.rank === x.rank - 1 && variance.shape.every((size, axis) => size === x.shape[axis]);
  const variances = isOfRows && variance.rank > 0 ? unsqueeze(variance, -1) : variance;
  checkBroadcast("gaussianNllLoss", { x: mean, variance: variances });
  return composedLoss({ operation: "gaussianNllLoss", reduction }, [mean, promotedTarget, variances], (a, t, v) => {
    const least = atLeast(v!, eps);
    const losses = mul(add(log(least), div(square(sub(a!, t!)), least)), 0.5) as Tensor;
    return full ? (add(losses, 0.5 * Math.log(2 * Math.PI)) as Tensor) : losses;
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
