import { aNumber } from "../../core/kinds.ts";
import { notNegative, positive } from "../../core/options.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { abs, mul, neg, sub } from "../elementwise/arithmetic.ts";
import { type ClampOptions, clampAs } from "../elementwise/clamp.ts";
import { defineTernary, type Ternary } from "../elementwise/define.ts";
import { scalarTensor } from "../elementwise/operands.ts";
import { composedLoss } from "./composed_loss.ts";
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
  const loss = { operation: "huberLoss", reduction } as const;
  return tidy(() =>
    toDType(
      composedLoss(loss, operands, (a, t) => linearFrom(delta, a, t)),
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
  const [promotedX, promotedTarget] = withTarget("smoothL1Loss", x, target);
  return composedLoss({ operation: "smoothL1Loss", reduction }, [promotedX, promotedTarget], (a, t) =>
    beta === 0 ? abs(sub(a, t)) : mul(linearFrom(beta, a, t), 1 / beta),
  );
}
const smoothL1LossParameters = parameters("smoothL1Loss", {
  x: operand(aTensor),
  target: operand(aTensor),
  beta: named(aNumber(notNegative), 1),
  reduction: reductionParameter,
});

/** Computes d² / 2 up to δ and δ (d − δ / 2) beyond, with d = |x − target|. */
const huberOf: Ternary = defineTernary("huber", {
  reference: {
    float(x, target, delta) {
      const difference = Math.abs(x - target);
      return difference <= delta ? (difference * difference) / 2 : delta * (difference - delta / 2);
    },
  },
  gradient: (g, [x, target, delta], needs) => derivatives(g, sub(x, target), { min: neg(delta), max: delta }, needs),
});

/** The derivative with respect to x is x − target, bounded by ±δ. */
function derivatives(
  g: Tensor,
  difference: Tensor,
  bounds: ClampOptions,
  needs: readonly boolean[],
): (Tensor | null)[] {
  const slope = mul(g, clampAs("huberLoss", difference, bounds));
  return [needs[0] ? slope : null, needs[1] ? neg(slope) : null, null];
}

const linearFrom = (delta: number, x: Tensor, target: Tensor): Tensor =>
  huberOf([x, target, scalarTensor(delta, x.dtype)], (g, [a, t], needs) =>
    derivatives(g, sub(a, t), { min: -delta, max: delta }, needs),
  );
