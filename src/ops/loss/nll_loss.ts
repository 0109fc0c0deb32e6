import { checkElements, underName } from "../../backend/dispatch.ts";
import { aNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { wholeIndices } from "../embedding/rows.ts";
import { checkSomethingToName } from "../indexing/indices.ts";
import { checkClassWeight, checkTargetShape, classAxis } from "./classes.ts";
import { ofLogarithms } from "./cross_entropy_composed.ts";
import { fusedNll, fusesNll } from "./nll_fused.ts";
import { checkFloats, type LossOptions, reductionParameter } from "./options.ts";

/** Options of {@link nllLoss}. */
export interface NllLossOptions extends LossOptions {
  /** A factor for each class. */
  weight?: Tensor | undefined;
  /** Targets with this value are ignored. Default −100. */
  ignoreIndex?: number | undefined;
}

/**
 * Computes the negative log-likelihood of target classes: −w[y] x[y], with log probabilities x, such as results of
 * `logSoftmax`. The mean divides by the sum of the factors of targets that are not ignored.
 *
 * @param x floats, [classes] or [batch, classes, …]
 * @param targets integers of x's shape without the axis of the classes
 * @returns a scalar tensor, or one loss for each target with `reduction: "none"`, in x's dtype
 *
 * @example
 * nllLoss(tensor([[-1, -2], [-3, -4]]), tensor([0n, 1n])); // float32 2.5
 *
 * @throws {ShapeError} if shapes do not match, and `indexOutOfRange` for a target that is not a class (on Metal, when a
 * result is read). @throws {DTypeError} if x is not a float, or targets are not integers. @throws {ArgumentError} for
 * an unknown reduction.
 */
export function nllLoss<D extends DType>(
  x: Tensor<D>,
  targets: Tensor,
  ...options: Given<NllLossOptions, ["weight"]>
): Tensor<D>;
export function nllLoss(...values: unknown[]): Tensor {
  const { x, targets, weight, ignoreIndex, reduction } = nllLossParameters(values);
  checkFloats("nllLoss", "x", x);
  const axis = classAxis("nllLoss", "x", x);
  checkClassWeight("nllLoss", x.shape[axis], weight);
  checkElements("nllLoss", [x, targets]);
  const classes = wholeIndices("nllLoss", "targets", targets);
  checkTargetShape("nllLoss", "x", x, classes, axis);
  checkSomethingToName("nllLoss", classes, x.shape[axis]);
  const call = { axis, weight, ignoreIndex, reduction, labelSmoothing: 0 };
  const compute = fusesNll(x, classes, weight) ? fusedNll : ofLogarithms;
  return underName("nllLoss", () => tidy(() => compute(x, classes, call)));
}
const nllLossParameters = parameters("nllLoss", {
  x: operand(aTensor),
  targets: operand(aTensor),
  weight: optional(aTensor),
  ignoreIndex: named(aNumber({ holds: Number.isSafeInteger, expected: "a whole number" }), -100),
  reduction: reductionParameter,
});
