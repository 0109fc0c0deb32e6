import { aNumber } from "../../core/kinds.ts";
import { notNegative, positive } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { abs, mul, sub } from "../elementwise/arithmetic.ts";
import { clampAs } from "../elementwise/clamp.ts";
import { elementLoss } from "./loss_function.ts";
import { checkFloats, type LossOptions, reductionParameter, withTarget } from "./options.ts";

/** Options of {@link huberLoss}. */
export interface HuberLossOptions extends LossOptions {
  /** The difference above which the loss is linear; must be above 0. Default 1. */
  delta?: number | undefined;
}

/**
 * Computes the Huber loss, averaged over all elements. With d = |x − target|, it is d² / 2 up to δ and δ (d − δ / 2)
 * beyond. The gradient's magnitude is at most δ.
 *
 * Source: P. Huber, "Robust Estimation of a Location Parameter", 1964.
 *
 * @param x floats of any shape
 * @param target of x's shape, promoted with x to one dtype; also differentiable
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in x's dtype; the mean of an empty tensor is
 * NaN
 *
 * @example
 * huberLoss(tensor([1, 2]), tensor([1.5, 5]), { reduction: "none" }); // float32 [0.125, 2.5]
 *
 * @throws {ShapeError} if shapes differ. @throws {DTypeError} if x is not a float. @throws {ArgumentError} for an
 * unknown reduction, or a δ that is not above 0.
 */
export function huberLoss<D extends DType>(x: Tensor<D>, target: Tensor, options?: HuberLossOptions): Tensor<D>;
export function huberLoss(...values: unknown[]): Tensor {
  const { x, target, delta, reduction } = huberLossParameters(values);
  checkFloats("huberLoss", "x", x);
  const operands = withTarget("huberLoss", x, target);
  const loss = { operation: "huberLoss", loss: "huber", reduction, parameters: [delta, 1] } as const;
  return tidy(() =>
    toDType(
      elementLoss(loss, operands, (a, t) => linearFrom(delta, a, t)),
      x.dtype,
    ),
  );
}
const huberLossParameters = parameters("huberLoss", {
  x: operand(aTensor),
  target: operand(aTensor),
  delta: named(aNumber(positive), 1),
  reduction: reductionParameter,
});

/** Options of {@link smoothL1Loss}. */
export interface SmoothL1LossOptions extends LossOptions {
  /** The difference above which the loss is linear; at least 0. Default 1. */
  beta?: number | undefined;
}

/**
 * Computes the smooth L1 loss, averaged over all elements. With d = |x − target|, it is d² / 2β up to β and d − β / 2
 * beyond. It equals `huberLoss` divided by β, and `l1Loss` for β = 0.
 *
 * Source: R. Girshick, "Fast R-CNN", 2015.
 *
 * @param x floats of any shape
 * @param target of x's shape, promoted with x to one dtype; also differentiable
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in x's dtype; the mean of an empty tensor is
 * NaN
 *
 * @example
 * smoothL1Loss(tensor([1, 2]), tensor([1.5, 5]), { reduction: "none" }); // float32 [0.125, 2.5]
 *
 * @throws {ShapeError} if shapes differ. @throws {DTypeError} if neither is a float. @throws {ArgumentError} for an
 * unknown reduction, or a negative β.
 */
export function smoothL1Loss<D extends DType, E extends DType>(
  x: Tensor<D>,
  target: Tensor<E>,
  options?: SmoothL1LossOptions,
): Tensor<Promote<D, E>>;
export function smoothL1Loss(...values: unknown[]): Tensor {
  const { x, target, beta, reduction } = smoothL1LossParameters(values);
  const operands = withTarget("smoothL1Loss", x, target);
  const loss = { operation: "smoothL1Loss", reduction } as const;
  if (beta === 0) return elementLoss({ ...loss, loss: "absoluteError" }, operands, (a, t) => abs(sub(a, t)));
  return elementLoss({ ...loss, loss: "huber", parameters: [beta, 1 / beta] }, operands, (a, t) =>
    mul(linearFrom(beta, a, t), 1 / beta),
  );
}
const smoothL1LossParameters = parameters("smoothL1Loss", {
  x: operand(aTensor),
  target: operand(aTensor),
  beta: named(aNumber(notNegative), 1),
  reduction: reductionParameter,
});

/**
 * Computes d² / 2 up to δ and δ (|d| − δ / 2) beyond, for the difference d: c (d − c / 2) with c, d limited to ±δ. This
 * form has the right gradient.
 */
function linearFrom(delta: number, x: Tensor, target: Tensor): Tensor {
  const difference = sub(x, target);
  const limited = clampAs("huberLoss", difference, { min: -delta, max: delta });
  return mul(limited, sub(difference, mul(limited, 0.5)));
}
