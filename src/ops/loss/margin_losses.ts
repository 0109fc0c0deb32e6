/** Losses that separate scores by a margin. Targets that select a side are 1 or −1. */
import { lastElement } from "../../core/collections.ts";
import { ShapeError } from "../../core/errors.ts";
import { aNumber, someNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Promote } from "../../tensor/promotion.ts";
import { sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { logSigmoid } from "../activation/log_sigmoid.ts";
import { relu } from "../activation/relu.ts";
import { toDType } from "../copy/cast.ts";
import { zerosLike } from "../creation/full.ts";
import { add, mul, neg, square, sub } from "../elementwise/arithmetic.ts";
import { ge, gt, ne } from "../elementwise/comparison.ts";
import { logicalAnd, logicalNot } from "../elementwise/logic.ts";
import { checkNoBools } from "../elementwise/operands.ts";
import { where } from "../elementwise/where.ts";
import { wholeIndices } from "../embedding/rows.ts";
import { detach } from "../gradient/backward.ts";
import { gather, indexSelect } from "../indexing/gather.ts";
import { checkSomethingToName } from "../indexing/indices.ts";
import { scatter } from "../indexing/scatter.ts";
import { scatterAdd } from "../indexing/scatter_add.ts";
import { checkSameDType } from "../matmul/checks.ts";
import { mean } from "../reduction/mean.ts";
import { sum } from "../reduction/sum.ts";
import { cumprod } from "../scan/cumsum.ts";
import { flatten } from "../view/flatten.ts";
import { reshape } from "../view/reshape.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { entropyOfLogits } from "./binary_cross_entropy.ts";
import { checkClassWeight, checkTargetShape } from "./classes.ts";
import { checkBroadcast, checkScores, composedLoss, plainLoss, type Weighted } from "./composed_loss.ts";
import { elementLoss } from "./loss_function.ts";
import { fusesMargin, marginLoss } from "./margin.cpu.ts";
import {
  asFloat,
  checkFactor,
  checkFloats,
  checkShape,
  type LossOptions,
  reductionParameter,
  withTarget,
} from "./options.ts";
import type { ProbabilityLossOptions } from "./probability_losses.ts";

/** Options of losses with a margin. */
export interface MarginLossOptions extends LossOptions {
  /** The margin between scores. */
  margin?: number | undefined;
}

/**
 * Computes the hinge embedding loss, averaged over all elements: x for a target of 1, max(margin − x, 0) for −1. Use it
 * for distances that should be small or large.
 *
 * @param x floats or integers of any shape; integers have no mean, and truncate the margin
 * @param target 1 or −1, of x's shape and any dtype
 * @param options the default margin is 1
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in x's dtype
 *
 * @example
 * hingeEmbeddingLoss(tensor([0.5, 0.25]), tensor([1, -1]), { reduction: "none" }); // float32 [0.5, 0.75]
 *
 * @throws {ShapeError} if shapes differ. @throws {DTypeError} for bools, and for the mean of integers.
 * @throws {ArgumentError} for an unknown reduction.
 */
export function hingeEmbeddingLoss<D extends DType>(
  x: Tensor<D>,
  target: Tensor,
  options?: MarginLossOptions,
): Tensor<D>;
export function hingeEmbeddingLoss(...values: unknown[]): Tensor {
  const { x, target, margin, reduction } = hingeParameters(values);
  checkNoBools("hingeEmbeddingLoss", { x });
  checkShape("hingeEmbeddingLoss", x, target);
  const sides = isFloat(target.dtype) ? target : toDType(target, "int64"); // uint8 has no −1
  const losses = (a: Tensor, t: Tensor) => {
    const least = isFloat(x.dtype) ? margin : BigInt(Math.trunc(margin));
    const far = where(ne(t, 1), relu(sub(least, a)), 0);
    return toDType(add(far, where(ne(t, -1), a, 0)), a.dtype);
  };
  const call = { operation: "hingeEmbeddingLoss", reduction } as const;
  if (!isFloat(x.dtype)) return plainLoss(call, [x, sides], losses);
  // a conversion must not round a target to ±1
  if (isFloat(target.dtype) && target.dtype !== x.dtype) return composedLoss(call, [x, sides], losses);
  const operands = [x, detach(toDType(target, x.dtype))] as const;
  return elementLoss({ ...call, loss: "hinge", parameters: [margin, 0] }, operands, losses);
}
const hingeParameters = parameters("hingeEmbeddingLoss", {
  x: operand(aTensor),
  target: operand(aTensor),
  margin: named(someNumber, 1),
  reduction: reductionParameter,
});

/**
 * Computes max(margin − target (x1 − x2), 0), averaged over all elements: x1 should be larger for a target of 1, x2 for
 * −1. Shapes broadcast.
 *
 * @param x1 floats or integers; losses of integers are float32
 * @param x2 promoted with x1 to one dtype
 * @param target 1 or −1
 * @param options the default margin is 0
 * @returns a scalar tensor, or one of the common shape with `reduction: "none"`, in the common dtype
 *
 * @example
 * marginRankingLoss(tensor([1, 2]), tensor([2, 1]), tensor([1, 1]), { reduction: "none" }); // float32 [1, 0]
 *
 * @throws {ShapeError} if shapes can't be broadcast. @throws {DTypeError} for bools.
 * @throws {ArgumentError} for an unknown reduction.
 */
export function marginRankingLoss<D extends DType, E extends DType, F extends DType>(
  x1: Tensor<D>,
  x2: Tensor<E>,
  target: Tensor<F>,
  options?: MarginLossOptions,
): Tensor<Promote<Promote<D, E>, F>>;
export function marginRankingLoss(...values: unknown[]): Tensor {
  const { x1, x2, target, margin, reduction } = rankingParameters(values);
  const operation = "marginRankingLoss";
  checkNoBools(operation, { x1, x2, target });
  const operands = [x1, x2, target] as const;
  const loss = (a: Tensor, b: Tensor, t: Tensor): Tensor => relu(add(asFloat(mul(neg(t), sub(a, b))), margin));
  if (!isFloat(x1.dtype) || operands.some(({ dtype }) => dtype !== x1.dtype))
    return plainLoss({ operation, reduction }, operands, (a, b, t) => loss(a, b, t));
  checkBroadcast(operation, { x1, x2, target });
  return elementLoss({ operation, loss: "ranking", reduction, parameters: [margin, 0] }, operands, loss);
}
const rankingParameters = parameters("marginRankingLoss", {
  x1: operand(aTensor),
  x2: operand(aTensor),
  target: operand(aTensor),
  margin: named(someNumber, 0),
  reduction: reductionParameter,
});

/**
 * Computes log(1 + exp(−target x)), averaged over all elements, without overflow.
 *
 * @param x floats of any shape
 * @param target 1 or −1, of x's shape, promoted with x to one dtype
 * @returns a scalar tensor, or one of x's shape with `reduction: "none"`, in x's dtype
 *
 * @example
 * softMarginLoss(tensor([0, 100]), tensor([1, -1]), { reduction: "none" }); // float32 [0.69314718, 100]
 *
 * @throws {ShapeError} if shapes differ. @throws {DTypeError} if x is not a float. @throws {ArgumentError} for an
 * unknown reduction.
 */
export function softMarginLoss<D extends DType>(x: Tensor<D>, target: Tensor, options?: LossOptions): Tensor<D>;
export function softMarginLoss(...values: unknown[]): Tensor {
  const { x, target, reduction } = softMarginParameters(values);
  checkFloats("softMarginLoss", "x", x);
  const operands = withTarget("softMarginLoss", x, target);
  return tidy(() =>
    toDType(
      elementLoss({ operation: "softMarginLoss", loss: "softMargin", reduction }, operands, (a, t) =>
        neg(logSigmoid(mul(t, a))),
      ),
      x.dtype,
    ),
  );
}
const softMarginParameters = parameters("softMarginLoss", {
  x: operand(aTensor),
  target: operand(aTensor),
  reduction: reductionParameter,
});

/** Options of {@link multiMarginLoss}. */
export interface MultiMarginLossOptions extends MarginLossOptions {
  /** The power applied to margin violations. Default 1. */
  p?: 1 | 2 | undefined;
  /** A factor for each class. */
  weight?: Tensor | undefined;
}

/**
 * Computes Σ max(margin − x[y] + x[c], 0)ᵖ w[y] / classes over all classes c except the target y, averaged over the
 * batch.
 *
 * @param x scores, [classes] or [batch, classes], floats
 * @param targets classes, integers of x's shape without its last axis
 * @param options p and the margin default to 1
 * @returns a scalar tensor, or one loss for each target with `reduction: "none"`, in x's dtype
 *
 * @example
 * multiMarginLoss(tensor([[0.5, 1, 0.25, 0]]), tensor([1n])); // float32 0.1875
 *
 * @throws {ShapeError} if shapes do not match, and `indexOutOfRange` for a target that is not a class (on Metal, when a
 * result is read). @throws {DTypeError} if x is not a float, or targets are not integers. @throws {ArgumentError} for
 * an unknown reduction, or a p other than 1 and 2.
 */
export function multiMarginLoss<D extends DType>(
  x: Tensor<D>,
  targets: Tensor,
  ...options: Given<MultiMarginLossOptions, ["p", "margin", "weight"]>
): Tensor<D>;
export function multiMarginLoss(...values: unknown[]): Tensor {
  const { x, targets, p, margin, weight, reduction } = multiMarginParameters(values);
  checkScores("multiMarginLoss", x);
  const count = lastElement(x.shape);
  checkClassWeight("multiMarginLoss", count, weight);
  const classes = wholeIndices("multiMarginLoss", "targets", targets);
  checkTargetShape("multiMarginLoss", "x", x, classes, x.rank - 1);
  checkSomethingToName("multiMarginLoss", classes, count);
  const loss = (scores: Tensor): Tensor => {
    const index = unsqueeze(classes, -1);
    const short = relu(sub(margin, sub(gather(scores, index, { dim: -1 }), scores)));
    const powers = p === 1 ? short : square(short);
    // exclude the target's term, which is marginᵖ
    const others = scatter(powers, -1, index, 0);
    const total = mul(sum(others, { dim: -1 }), 1 / count);
    if (!weight) return total;
    const factors = indexSelect(toDType(weight, total.dtype), flatten(classes), { dim: 0 });
    return mul(total, reshape(factors, classes.shape));
  };
  return composedLoss({ operation: "multiMarginLoss", reduction }, [x], (scores) => {
    const call = { targets: classes, factors: weight && toDType(weight, scores.dtype) };
    if (!fusesMargin(scores, call)) return loss(scores);
    const options = { operation: "multiMarginLoss", loss: "multiMargin", power: p, margin, composed: loss } as const;
    return marginLoss(scores, { ...call, ...options });
  });
}
const multiMarginParameters = parameters("multiMarginLoss", {
  x: operand(aTensor),
  targets: operand(aTensor),
  p: optional(aNumber({ holds: (value) => value === 1 || value === 2, expected: "1 or 2" }), 1),
  margin: optional(someNumber, 1),
  weight: optional(aTensor),
  reduction: reductionParameter,
});

/**
 * Computes Σ max(1 − x[y] + x[c], 0) / classes over each target y and each class c that is not a target, averaged over
 * the batch.
 *
 * @param x scores, [classes] or [batch, classes], floats
 * @param targets of x's shape: the target classes of each row, up to the first negative number
 * @returns a scalar tensor, or one loss for each row with `reduction: "none"`, in x's dtype
 *
 * @example
 * multilabelMarginLoss(tensor([[0.5, 1, 0.25, 0]]), tensor([[3n, 0n, -1n, 1n]])); // float32 1.375
 *
 * @throws {ShapeError} if shapes do not match, and `indexOutOfRange` for a target that is not a class (on Metal, when a
 * result is read). @throws {DTypeError} if x is not a float, or targets are not integers. @throws {ArgumentError} for
 * an unknown reduction.
 */
export function multilabelMarginLoss<D extends DType>(x: Tensor<D>, targets: Tensor, options?: LossOptions): Tensor<D>;
export function multilabelMarginLoss(...values: unknown[]): Tensor {
  const { x, targets, reduction } = multilabelMarginParameters(values);
  checkScores("multilabelMarginLoss", x);
  const classes = wholeIndices("multilabelMarginLoss", "targets", targets);
  if (!sameShape(x.shape, targets.shape))
    throw new ShapeError(
      "multilabelMarginLoss",
      "shapesDiffer",
      `expected targets to have the shape of x ${x.describe()}, got ${targets.describe()}`,
    );
  const loss = (scores: Tensor): Tensor => {
    const isNamed = gt(cumprod(toDType(ge(classes, 0), "int64"), { dim: -1 }), 0);
    const index = where(isNamed, classes, 0n);
    const counts = scatterAdd(zerosLike(scores), index, toDType(isNamed, scores.dtype), { dim: -1 });
    const targetScores = unsqueeze(gather(scores, index, { dim: -1 }), -1);
    const short = relu(add(sub(1, targetScores), unsqueeze(scores, -2)));
    const counted = logicalAnd(unsqueeze(isNamed, -1), unsqueeze(logicalNot(gt(counts, 0)), -2));
    const total = sum(where(counted, short, 0), { dim: [-2, -1] });
    return mul(total, 1 / lastElement(x.shape));
  };
  return composedLoss({ operation: "multilabelMarginLoss", reduction }, [x], (scores) => {
    const call = { targets: classes, factors: undefined };
    if (!fusesMargin(scores, call)) return loss(scores);
    const operation = "multilabelMarginLoss";
    return marginLoss(scores, { ...call, operation, loss: "multilabelMargin", power: 1, margin: 1, composed: loss });
  });
}
const multilabelMarginParameters = parameters("multilabelMarginLoss", {
  x: operand(aTensor),
  targets: operand(aTensor),
  reduction: reductionParameter,
});

/**
 * Computes the binary cross entropies −weight · (t log σ(x) + (1 − t) log σ(−x)), averaged over the classes, then over
 * the batch.
 *
 * @param x scores, […, classes], floats
 * @param target of x's shape, from 0 to 1, promoted with x to one dtype; also differentiable
 * @returns a scalar tensor, or one of x's shape without its last axis with `reduction: "none"`, in x's dtype
 *
 * @example
 * multilabelSoftMarginLoss(tensor([[0, 0]]), tensor([[0, 1]])); // float32 0.69314718
 *
 * @throws {ShapeError} if shapes differ, or the weight can't be broadcast to x's shape. @throws {DTypeError} if x is no
 * float, the target is bool, or the weight has a different dtype. @throws {ArgumentError} for an unknown reduction.
 */
export function multilabelSoftMarginLoss<D extends DType, E extends DType>(
  x: Tensor<D>,
  target: Tensor<E>,
  ...options: Given<ProbabilityLossOptions, ["weight"]>
): Tensor<Promote<D, E>>;
export function multilabelSoftMarginLoss(...values: unknown[]): Tensor {
  const { x, target, weight, reduction } = multilabelSoftParameters(values);
  checkFloats("multilabelSoftMarginLoss", "x", x);
  checkNoBools("multilabelSoftMarginLoss", { target });
  const [promotedX, promotedTarget] = withTarget("multilabelSoftMarginLoss", x, target);
  if (x.rank === 0)
    throw new ShapeError(
      "multilabelSoftMarginLoss",
      "wrongRank",
      `expected x to have an axis of classes, got ${x.describe()}`,
    );
  checkFactor("multilabelSoftMarginLoss", "weight", x, weight);
  checkSameDType("multilabelSoftMarginLoss", weight ? [promotedX, weight] : [promotedX]);
  if (reduction === "mean")
    return entropyOfLogits({ operation: "multilabelSoftMarginLoss", reduction, weight }, promotedX, promotedTarget);
  const operands: Weighted = weight ? [promotedX, promotedTarget, weight] : [promotedX, promotedTarget];
  return composedLoss({ operation: "multilabelSoftMarginLoss", reduction }, operands, (a, t, w) => {
    const likelihoods = add(mul(t, logSigmoid(a)), mul(sub(1, t), logSigmoid(neg(a))));
    const losses = neg(w ? mul(likelihoods, w) : likelihoods);
    return mean(losses, { dim: -1 });
  });
}
const multilabelSoftParameters = parameters("multilabelSoftMarginLoss", {
  x: operand(aTensor),
  target: operand(aTensor),
  weight: optional(aTensor),
  reduction: reductionParameter,
});
