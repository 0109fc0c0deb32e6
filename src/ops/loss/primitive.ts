/** The primitives of losses: elementwise losses, and the cross entropy of classes. */
import { cpuCall, nest } from "../../backend/cpu/call.ts";
import { slices } from "../../backend/cpu/slices.ts";
import { enumeration, type NameOf } from "../../backend/enumeration.ts";
import { array, dtype, flag, oneOf, real, whole } from "../../backend/fields.ts";
import { loopNestOf } from "../../backend/metal/loop.ts";
import { slicesFor } from "../../backend/metal/slices.ts";
import { struct } from "../../backend/metal/struct.ts";

/** Losses of single elements. Their formulas are in `loss.reference.ts`. */
export const losses = enumeration("Loss", [
  ...(["squaredError", "absoluteError", "huber", "binaryCrossEntropy", "weightedBinaryCrossEntropy"] as const),
  ...(["probabilityCrossEntropy", "weightedProbabilityCrossEntropy", "softMargin", "hinge", "ranking"] as const),
  ...(["divergence", "logDivergence", "poissonOfLog", "poisson", "gaussian"] as const),
]);
export type LossName = NameOf<typeof losses>;

/** Inputs, all of x's shape and dtype: x, the target, and up to two further operands. */
export interface LossAttributes {
  readonly loss: LossName;
  /** Whether the result is one number: the sum of all losses times the factor, in the accumulation dtype. */
  readonly isSummed: boolean;
  readonly factor: number;
  /** The parameters of the formula. */
  readonly parameters: readonly [number, number];
}

/**
 * Inputs: the gradient of each loss, in the accumulation dtype, then the inputs of {@link LossAttributes}. Outputs: the
 * gradients that are needed.
 */
export interface LossGradientAttributes {
  readonly loss: LossName;
  /** Whether the gradients of x, of the target and of the third operand are needed; at least one is. */
  readonly needs: readonly [boolean, boolean, boolean];
  /** Factor of every gradient. */
  readonly factor: number;
  readonly parameters: readonly [number, number];
}

/**
 * Operands: x, target, third and fourth operand, and the result; the gradient replaces the result by the gradient of
 * each loss and the gradients of the first three operands.
 */
const LOSS_OPERANDS = 5;
const LOSS_GRADIENT_OPERANDS = 8;

export const lossParameters = struct("LossParameters", {
  loop: loopNestOf(LOSS_GRADIENT_OPERANDS),
  sequence: whole,
  factor: real,
  parameters: array(real, 2),
});

const lossFields = { loss: oneOf(losses), dtype };

export const lossCall = cpuCall(
  "loss",
  {
    ...lossFields,
    isSummed: flag,
    factor: real,
    parameters: array(real, 2),
    offsets: array(whole, LOSS_OPERANDS),
    nest: nest(LOSS_OPERANDS),
  },
  ["x", "target", "third", "fourth", "out"],
);

export const lossGradientCall = cpuCall(
  "lossGradient",
  {
    ...lossFields,
    needs: array(flag, 3),
    factor: real,
    parameters: array(real, 2),
    offsets: array(whole, LOSS_GRADIENT_OPERANDS),
    nest: nest(LOSS_GRADIENT_OPERANDS),
  },
  ["x", "target", "third", "fourth", "scale", "gradient", "targetGradient", "thirdGradient"],
);

/**
 * Inputs: logits, targets and, if classes have factors, the factors and their sum, contiguous, in the accumulation
 * dtype. Outputs in that dtype, one number for each target: the loss, and the factor of the target's class (0 if it is
 * ignored); then log Σ exp(logits) as two numbers: the largest logit, and log Σ exp(logits − largest).
 *
 * Inputs of the gradient: logits, targets, log Σ exp(logits), the gradient of each loss, and the factors and their sum
 * as above. Output: the gradient of the logits.
 */
export interface CrossEntropyAttributes {
  /** The axis of the classes. */
  readonly axis: number;
  readonly ignoreIndex: number;
  readonly labelSmoothing: number;
}

/**
 * Operands with slices along the classes: logits, targets and losses; or logits, targets, the largest logits, scales
 * and gradients.
 */
const CLASS_OPERANDS = 3;
const CLASS_GRADIENT_OPERANDS = 5;

export const crossEntropyParameters = struct("CrossEntropyParameters", {
  slices: slicesFor(CLASS_GRADIENT_OPERANDS),
  ignoreIndex: whole,
  chunk: whole,
  labelSmoothing: real,
});

const classFields = {
  dtype,
  indexDType: dtype,
  ignoreIndex: whole,
  labelSmoothing: real,
  hasFactors: flag,
  factorsOffset: whole,
  factorSum: real,
};

export const crossEntropyCall = cpuCall("crossEntropy", { ...classFields, slices: slices(CLASS_OPERANDS) }, [
  "logits",
  "targets",
  "factors",
  "losses",
  "used",
  "logSums",
]);

/** The third operand of the slices is a dense array with one number for each slice. */
export const crossEntropySumCall = cpuCall(
  "crossEntropySum",
  { ...classFields, isMean: flag, slices: slices(CLASS_OPERANDS) },
  ["logits", "targets", "factors", "result"],
);

export const crossEntropyGradientCall = cpuCall(
  "crossEntropyGradient",
  { ...classFields, slices: slices(CLASS_GRADIENT_OPERANDS) },
  ["logits", "targets", "factors", "logSums", "scales", "gradient"],
);
