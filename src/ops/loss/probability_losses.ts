/** Losses between probabilities. */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { ArgumentError } from "../../core/errors.ts";
import { choice, flag } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul, neg, sub } from "../elementwise/arithmetic.ts";
import { clamp } from "../elementwise/clamp.ts";
import { div } from "../elementwise/division.ts";
import { exp } from "../elementwise/exponential.ts";
import { log, log1p } from "../elementwise/logarithm.ts";
import { promoteOperands } from "../elementwise/operands.ts";
import { xlogy } from "../elementwise/xlogy.ts";
import { checkSameDType } from "../matmul/checks.ts";
import { sum } from "../reduction/sum.ts";
import { composedLoss } from "./composed_loss.ts";
import { elementLoss } from "./loss_function.ts";
import {
  checkFactor,
  checkFloatTarget,
  checkTarget,
  type LossOptions,
  type LossReduction,
  reductionParameter,
} from "./options.ts";

/** Options of {@link binaryCrossEntropy}. */
export interface ProbabilityLossOptions extends LossOptions {
  /** A factor for each loss, broadcast to x's shape. */
  weight?: Tensor | undefined;
}

/**
 * Computes the binary cross entropy of probabilities p and targets t: −weight · (t log p + (1 − t) log(1 − p)),
 * averaged over all elements. Logarithms are clamped to at least −100, as in PyTorch. `binaryCrossEntropyWithLogits`
 * takes logits, and is accurate for probabilities near 0 or 1.
 *
 * @param x probabilities, floats of any shape
 * @param target of x's shape and dtype, from 0 to 1; also differentiable
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in x's dtype
 *
 * @example
 * binaryCrossEntropy(tensor([0.5, 0.5]), tensor([0, 1])); // float32 0.69314718
 *
 * @throws {ShapeError} if shapes differ, or a weight can't be broadcast to x's shape. @throws {DTypeError} if dtypes
 * differ or are not floats. @throws {ArgumentError} for an unknown reduction.
 */
export function binaryCrossEntropy<D extends DType>(
  x: Tensor<D>,
  target: Tensor<D>,
  ...options: Given<ProbabilityLossOptions, ["weight"]>
): Tensor<D>;
export function binaryCrossEntropy(...values: unknown[]): Tensor {
  const { x, target, weight, reduction } = binaryCrossEntropyParameters(values);
  checkTarget("binaryCrossEntropy", x, target);
  checkFactor("binaryCrossEntropy", "weight", x, weight);
  checkSameDType("binaryCrossEntropy", weight ? [x, weight] : [x]);
  const operation = "binaryCrossEntropy";
  if (!weight) return elementLoss({ operation, loss: "probabilityCrossEntropy", reduction }, [x, target], entropies);
  const loss = { operation, loss: "weightedProbabilityCrossEntropy", reduction } as const;
  return elementLoss(loss, [x, target, weight], (p, t, w) => mul(entropies(p, t), w));
}
const binaryCrossEntropyParameters = parameters("binaryCrossEntropy", {
  x: operand(aTensor),
  target: operand(aTensor),
  weight: optional(aTensor),
  reduction: reductionParameter,
});

const LEAST_LOGARITHM = -100;
/** Lower bound of p (1 − p), by which the gradient is divided. */
const LEAST_PRODUCT = 1e-12;

/**
 * Computes −t log p − (1 − t) log(1 − p), with the gradient (p − t) / (p (1 − p)), which clamped logarithms would not
 * give.
 */
function entropies(p: Tensor, t: Tensor): Tensor {
  const losses = noGrad(() => {
    const [ofOne, ofZero] = [log(p), log1p(neg(p))].map((logarithm) => clamp(logarithm, { min: LEAST_LOGARITHM }));
    return sub(mul(sub(t, 1), ofZero), mul(t, ofOne));
  });
  record("binaryCrossEntropy", [p, t], [losses], [p, t], ([g], [savedP, savedT], needs) => {
    const product = clamp(mul(savedP, sub(1, savedP)), { min: LEAST_PRODUCT });
    return [
      needs[0] ? mul(g, div(sub(savedP, savedT), product)) : null,
      needs[1] ? mul(g, sub(log1p(neg(savedP)), log(savedP))) : null,
    ];
  });
  return losses;
}

/** Options of {@link klDiv}. */
export interface KlDivOptions {
  /** Whether the target holds log probabilities. Default false. */
  logTarget?: boolean | undefined;
  /**
   * `"batchmean"` divides the sum by the size of the first axis, which gives the mathematical divergence. Default
   * `"mean"`.
   */
  reduction?: LossReduction | "batchmean" | undefined;
}

/**
 * Computes the pointwise Kullback–Leibler divergence t (log t − x), averaged over all elements. A target of 0 gives 0.
 *
 * Source: S. Kullback and R. Leibler, "On Information and Sufficiency", 1951.
 *
 * @param x log probabilities, such as results of `logSoftmax`
 * @param target probabilities, or log probabilities with `logTarget`, of x's shape; floats, promoted with x to one
 * dtype; also differentiable
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in that dtype
 *
 * @example
 * klDiv(tensor([[-1, -2]]), tensor([[0.25, 0.75]]), { reduction: "batchmean" }); // float32 1.18766487
 *
 * @throws {ShapeError} if shapes differ. @throws {DTypeError} unless both are floats. @throws {ArgumentError} for an
 * unknown reduction, or `"batchmean"` for a scalar tensor.
 */
export function klDiv<D extends DType, E extends DType>(
  x: Tensor<D>,
  target: Tensor<E>,
  options?: KlDivOptions,
): Tensor<Promote<D, E>>;
export function klDiv(...values: unknown[]): Tensor {
  const { x, target, logTarget, reduction } = klDivParameters(values);
  checkFloatTarget("klDiv", x, target);
  if (reduction === "batchmean" && x.rank === 0)
    throw new ArgumentError("klDiv", "noBatch", `expected x to have a first axis for "batchmean", got ${x.describe()}`);
  const divergences = (a: Tensor, t: Tensor): Tensor =>
    logTarget ? mul(exp(t), sub(t, a)) : sub(xlogy(t, t), mul(t, a));
  const operands = promoteOperands("klDiv", [x, target]);
  const operation = "klDiv";
  if (reduction === "batchmean")
    return composedLoss({ operation, reduction: "none" }, operands, (a, t) =>
      mul(sum(divergences(a, t)), 1 / x.shape[0]),
    );
  return elementLoss({ operation, loss: logTarget ? "logDivergence" : "divergence", reduction }, operands, divergences);
}
const klDivParameters = parameters("klDiv", {
  x: operand(aTensor),
  target: operand(aTensor),
  logTarget: named(flag, false),
  reduction: named<LossReduction | "batchmean">(
    { ...choice("none", "sum", "mean", "batchmean"), error: [ArgumentError, "unknownReduction"] },
    "mean",
  ),
});
