import { needsGradient } from "../../autograd/record.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { relu } from "../activation/relu.ts";
import { toDType } from "../copy/cast.ts";
import { full } from "../creation/full.ts";
import { abs, add, mul, neg, sub } from "../elementwise/arithmetic.ts";
import { exp } from "../elementwise/exponential.ts";
import { log1p } from "../elementwise/logarithm.ts";
import { promoteOperands } from "../elementwise/operands.ts";
import { expand } from "../view/expand.ts";
import { type ComposedLoss, composedLoss } from "./composed_loss.ts";
import { elementLoss } from "./loss_function.ts";
import { checkFactor, checkFloatTarget, type LossOptions, reductionParameter } from "./options.ts";

/** Options of {@link binaryCrossEntropyWithLogits}. */
export interface BinaryCrossEntropyOptions extends LossOptions {
  /** A factor for each loss, broadcast to x's shape and rounded to its dtype. */
  weight?: Tensor | undefined;
  /** A factor for the positive term of each loss, broadcast to x's shape and rounded to its dtype. */
  posWeight?: Tensor | undefined;
}

/**
 * Computes the binary cross entropy of logits x and targets t: −weight · (posWeight · t · log σ(x) + (1 − t) · log(1 −
 * σ(x))), averaged over all elements. It does not overflow: log σ(x) = −log(1 + exp(−|x|)) − max(−x, 0).
 *
 * @param x logits, floats of any shape
 * @param target floats of x's shape, from 0 to 1; also differentiable
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in the target's dtype
 *
 * @example
 * binaryCrossEntropyWithLogits(tensor([0, 0]), tensor([0, 1])); // float32 0.69314718
 *
 * @throws {ShapeError} if shapes differ, or a weight can't be broadcast to x's shape. @throws {DTypeError} unless all
 * are floats. @throws {ArgumentError} for an unknown reduction.
 */
export function binaryCrossEntropyWithLogits<E extends DType>(
  x: Tensor,
  target: Tensor<E>,
  ...options: Given<BinaryCrossEntropyOptions, ["weight"]>
): Tensor<E>;
export function binaryCrossEntropyWithLogits(...values: unknown[]): Tensor {
  const { weight, posWeight, reduction, ...given } = binaryCrossEntropyParameters(values);
  checkFloatTarget("binaryCrossEntropyWithLogits", given.x, given.target);
  const [x, target] = promoteOperands("binaryCrossEntropyWithLogits", [given.x, given.target]);
  checkFactor("binaryCrossEntropyWithLogits", "weight", x, weight);
  checkFactor("binaryCrossEntropyWithLogits", "posWeight", x, posWeight);
  const loss = { operation: "binaryCrossEntropyWithLogits", weight, posWeight, reduction };
  return tidy(() => toDType(entropyOfLogits(loss, x, target), given.target.dtype));
}
const binaryCrossEntropyParameters = parameters("binaryCrossEntropyWithLogits", {
  x: operand(aTensor),
  target: operand(aTensor),
  weight: optional(aTensor),
  posWeight: named(aTensor),
  reduction: reductionParameter,
});

/** Expands a factor to x's shape and dtype without a copy; 1 if there is no factor. */
const factorFor = ({ shape, dtype }: Tensor, factor: Tensor | undefined): Tensor =>
  expand(factor ? toDType(factor, dtype) : full([], 1, { dtype }), shape);

/** Computes the binary cross entropy of logits and a target of one float dtype. */
export function entropyOfLogits(
  { operation, reduction, weight, posWeight }: ComposedLoss & Pick<BinaryCrossEntropyOptions, "weight" | "posWeight">,
  x: Tensor,
  target: Tensor,
): Tensor {
  const wide = (factor: Tensor) => toDType(factor, accumulationDType(x.dtype));
  const losses = (a: Tensor, t: Tensor) => {
    const softplus = add(log1p(exp(neg(abs(a)))), relu(neg(a)));
    const share = posWeight ? add(mul(sub(wide(posWeight), 1), t), 1) : 1;
    const each = add(mul(sub(1, t), a), mul(softplus, share));
    return weight ? mul(each, wide(weight)) : each;
  };
  const factors = [weight, posWeight].filter((factor) => factor !== undefined);
  if (needsGradient(...factors)) return composedLoss({ operation, reduction }, [x, target], losses);
  const constants = factors.length === 0 ? [] : [weight, posWeight].map((factor) => factorFor(x, factor));
  const loss = factors.length === 0 ? "binaryCrossEntropy" : "weightedBinaryCrossEntropy";
  return elementLoss({ operation, loss, reduction, constants }, [x, target], losses);
}
