import { needsGradient } from "../../autograd/record.ts";
import { checkElements, underName } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { axis as axisKind, someNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { wholeIndices } from "../embedding/rows.ts";
import { checkSomethingToName } from "../indexing/indices.ts";
import { checkClassWeight, checkTargetShape, classAxis } from "./classes.ts";
import { fromClasses, fromProbabilities } from "./cross_entropy_composed.ts";
import { fusedCrossEntropy } from "./cross_entropy_function.ts";
import { type CrossEntropyCall, checkFloats, type LossOptions, reductionParameter } from "./options.ts";

/** Options of {@link crossEntropy}. */
export interface CrossEntropyOptions extends LossOptions {
  /** The axis of the classes; negative counts from the end. Default 1, or 0 for logits of rank 1. */
  dim?: number | undefined;
  /** Targets with this value are ignored. Default −100. */
  ignoreIndex?: number | undefined;
  /** The share ε of each target that is spread evenly over all classes, from 0 to 1. Default 0. */
  labelSmoothing?: number | undefined;
  /** A factor for each class. */
  weight?: Tensor | undefined;
}

/**
 * Computes the cross entropy of target classes y and p = softmax(logits), with class factors w: −(1 − ε) w[y] log p[y]
 * − ε / classes · Σ w[c] log p[c]. The mean divides by the sum of the factors of targets that are not ignored; it is
 * NaN if all are ignored, as in PyTorch.
 *
 * @param logits floats, with the classes along axis `dim`
 * @param targets integers, with the logits' shape without that axis; or class probabilities q with the logits' shape.
 * Their loss is −Σ w[c] ((1 − ε) q[c] + ε / classes) log p[c], and the mean divides by the number of losses
 * @returns a scalar tensor, or one loss for each target with `reduction: "none"`, in the logits' dtype
 *
 * @example
 * crossEntropy(tensor([[0, 0], [0, 0]]), tensor([0n, 1n]), { reduction: "none" }); // float32 [0.693147, 0.693147]
 *
 * @throws {ShapeError} if shapes do not match, and `indexOutOfRange` for a target that is not a class (on Metal, when a
 * result is read).
 * @throws {DTypeError} if logits are not floats. @throws {ArgumentError} for an unknown reduction, a labelSmoothing
 * outside 0 to 1, or an ignoreIndex of at least 0 with class probabilities.
 */
export function crossEntropy<D extends DType>(
  logits: Tensor<D>,
  targets: Tensor,
  ...options: Given<CrossEntropyOptions, ["weight"]>
): Tensor<D>;
export function crossEntropy(...values: unknown[]): Tensor {
  const {
    logits,
    targets,
    dim,
    weight,
    labelSmoothing,
    ignoreIndex: ignored,
    reduction,
  } = crossEntropyParameters(values);
  const ignoreIndex = ignored ?? -100;
  checkFloats("crossEntropy", "logits", logits);
  const axis = classAxis("crossEntropy", "logits", logits, dim);
  checkNumbers(labelSmoothing, ignoreIndex);
  checkClassWeight("crossEntropy", logits.shape[axis], weight);
  checkElements("crossEntropy", [logits]);
  const call: CrossEntropyCall = { axis, ignoreIndex, labelSmoothing, weight, reduction };
  if (isFloat(targets.dtype)) {
    checkProbabilities(logits, targets, ignored);
    return underName("crossEntropy", () => tidy(() => fromProbabilities(logits, targets, call)));
  }
  const classes = wholeIndices("crossEntropy", "targets", targets);
  checkTargetShape("crossEntropy", "logits", logits, classes, axis);
  checkSomethingToName("crossEntropy", classes, logits.shape[axis]);
  const isComposed = weight && (needsGradient(weight) || weight.storage.batch); // vmap has no rule for these weights
  const compute = isComposed ? fromClasses : fusedCrossEntropy;
  return underName("crossEntropy", () => tidy(() => compute(logits, classes, call)));
}
const crossEntropyParameters = parameters("crossEntropy", {
  logits: operand(aTensor),
  targets: operand(aTensor),
  weight: optional(aTensor),
  dim: named(axisKind),
  ignoreIndex: named(someNumber),
  labelSmoothing: named(someNumber, 0),
  reduction: reductionParameter,
});

function checkNumbers(labelSmoothing: number, ignoreIndex: number): void {
  if (!(labelSmoothing >= 0 && labelSmoothing <= 1))
    throw new ArgumentError(
      "crossEntropy",
      "invalidSmoothing",
      `expected labelSmoothing to be a number from 0 to 1, got ${labelSmoothing}`,
    );
  if (!Number.isSafeInteger(ignoreIndex))
    throw new ArgumentError(
      "crossEntropy",
      "invalidIndex",
      `expected ignoreIndex to be a whole number, got ${ignoreIndex}`,
    );
}

function checkProbabilities(logits: Tensor, targets: Tensor, ignoreIndex: number | undefined): void {
  if (!sameShape(targets.shape, logits.shape))
    throw new ShapeError(
      "crossEntropy",
      "shapesDiffer",
      `expected class probabilities to have the shape of logits ${logits.describe()}, got ${targets.describe()}; ` +
        "class indices must be integers",
    );
  if (targets.dtype !== logits.dtype)
    throw new DTypeError(
      "crossEntropy",
      "dtypesDiffer",
      `expected targets to have the dtype of logits, ${logits.dtype}, got ${targets.dtype}; ` +
        `convert them with toDType(targets, "${logits.dtype}")`,
    );
  if (ignoreIndex !== undefined && ignoreIndex >= 0)
    throw new ArgumentError(
      "crossEntropy",
      "nothingToIgnore",
      `expected no ignoreIndex with class probabilities, got ${ignoreIndex}; ` +
        "multiply the losses by a mask instead",
    );
}
