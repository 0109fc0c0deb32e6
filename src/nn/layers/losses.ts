/** Losses as modules, under PyTorch's names. Each calls the operation of the same name with its options. */
import { aNumber, flag, someNumber } from "../../core/kinds.ts";
import { type Given, type Kind, named, optional } from "../../core/parameters.ts";
import { cosineSimilarity } from "../../ops/distance/cosine_similarity.ts";
import { pairwiseDistance } from "../../ops/distance/pairwise_distance.ts";
import type { IndexDType } from "../../ops/indexing/indices.ts";
import { binaryCrossEntropyWithLogits } from "../../ops/loss/binary_cross_entropy.ts";
import { crossEntropy } from "../../ops/loss/cross_entropy.ts";
import { type CtcLossOptions, ctcLoss, type Lengths } from "../../ops/loss/ctc_loss.ts";
import {
  cosineEmbeddingLoss,
  tripletMarginLoss,
  tripletMarginWithDistanceLoss,
} from "../../ops/loss/embedding_losses.ts";
import { huberLoss, smoothL1Loss } from "../../ops/loss/huber_loss.ts";
import { l1Loss } from "../../ops/loss/l1_loss.ts";
import { gaussianNllLoss, poissonNllLoss } from "../../ops/loss/likelihood_losses.ts";
import {
  hingeEmbeddingLoss,
  type MarginLossOptions,
  type MultiMarginLossOptions,
  marginRankingLoss,
  multilabelMarginLoss,
  multilabelSoftMarginLoss,
  multiMarginLoss,
  softMarginLoss,
} from "../../ops/loss/margin_losses.ts";
import { mseLoss } from "../../ops/loss/mse_loss.ts";
import { nllLoss } from "../../ops/loss/nll_loss.ts";
import { type LossOptions, reductionParameter } from "../../ops/loss/options.ts";
import { binaryCrossEntropy, klDiv } from "../../ops/loss/probability_losses.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { moduleOf, taking } from "./module_of.ts";

export type { CosineSimilarityOptions as CosineSimilarityModuleOptions } from "../../ops/distance/cosine_similarity.ts";
export type { PairwiseDistanceOptions as PairwiseDistanceModuleOptions } from "../../ops/distance/pairwise_distance.ts";
export type { BinaryCrossEntropyOptions as BCEWithLogitsLossOptions } from "../../ops/loss/binary_cross_entropy.ts";
export type { TripletMarginLossOptions } from "../../ops/loss/embedding_losses.ts";
export type { HuberLossOptions, SmoothL1LossOptions } from "../../ops/loss/huber_loss.ts";
export type {
  GaussianNllLossOptions as GaussianNLLLossOptions,
  PoissonNllLossOptions as PoissonNLLLossOptions,
} from "../../ops/loss/likelihood_losses.ts";
export type { MultiMarginLossOptions } from "../../ops/loss/margin_losses.ts";
export type { NllLossOptions as NLLLossOptions } from "../../ops/loss/nll_loss.ts";
export type {
  KlDivOptions as KLDivLossOptions,
  ProbabilityLossOptions as BCELossOptions,
  ProbabilityLossOptions as MultiLabelSoftMarginLossOptions,
} from "../../ops/loss/probability_losses.ts";

/**
 * Computes the mean absolute error, mean |x − target|. See `l1Loss`.
 *
 * @example
 * new L1Loss().forward(tensor([1, 2]), tensor([2, 4])); // 1.5
 */
export class L1Loss extends moduleOf("L1Loss", { l1Loss }) {}

/**
 * Computes the mean squared error, mean (x − target)². See `mseLoss`.
 *
 * @example
 * new MSELoss().forward(tensor([1, 2]), tensor([2, 4])); // 2.5
 */
export class MSELoss extends moduleOf("MSELoss", { mseLoss }) {}

/**
 * Computes e² / (2 β) where |e| < β, and |e| − β / 2 elsewhere, with e = x − target. See `smoothL1Loss`.
 *
 * @example
 * new SmoothL1Loss().forward(tensor([1, 2]), tensor([2, 4])); // 1
 */
export class SmoothL1Loss extends moduleOf("SmoothL1Loss", { smoothL1Loss }) {}

/**
 * Computes e² / 2 where |e| < δ, and δ (|e| − δ / 2) elsewhere, with e = x − target. See `huberLoss`.
 *
 * @example
 * new HuberLoss().forward(tensor([1, 2]), tensor([2, 4])); // 1
 */
export class HuberLoss extends moduleOf("HuberLoss", { huberLoss }) {}

/**
 * Computes the negative log-likelihood of counts under Poisson distributions: exp(x) − target · x. See
 * `poissonNllLoss`.
 *
 * @example
 * new PoissonNLLLoss().forward(tensor([0, 0]), tensor([1, 2])); // 1
 */
export class PoissonNLLLoss extends moduleOf("PoissonNLLLoss", { poissonNllLoss }) {}

/**
 * Computes the negative log-likelihood of targets under normal distributions with given means and variances. See
 * `gaussianNllLoss`.
 *
 * @example
 * new GaussianNLLLoss().forward(tensor([1]), tensor([2]), tensor([1])); // 0.5
 */
export class GaussianNLLLoss extends moduleOf("GaussianNLLLoss", { gaussianNllLoss }) {}

/** Options of {@link HingeEmbeddingLoss}. */
export type HingeEmbeddingLossOptions = MarginLossOptions;

/**
 * Computes x where the target is 1, and max(margin − x, 0) where it is −1. Default margin 1. See `hingeEmbeddingLoss`.
 *
 * @example
 * new HingeEmbeddingLoss().forward(tensor([0.5, 0.5]), tensor([1, -1])); // 0.5
 */
export class HingeEmbeddingLoss extends moduleOf("HingeEmbeddingLoss", { hingeEmbeddingLoss }) {}

/** Options of {@link MarginRankingLoss}. */
export type MarginRankingLossOptions = MarginLossOptions;

/**
 * Computes max(margin − target (x1 − x2), 0). Default margin 0. See `marginRankingLoss`.
 *
 * @example
 * new MarginRankingLoss().forward(tensor([1]), tensor([3]), tensor([1])); // 2
 */
export class MarginRankingLoss extends moduleOf("MarginRankingLoss", { marginRankingLoss }) {}

/**
 * Computes log(1 + exp(−target x)). See `softMarginLoss`.
 *
 * @example
 * new SoftMarginLoss().forward(tensor([0, 0]), tensor([1, -1])); // 0.6931
 */
export class SoftMarginLoss extends moduleOf("SoftMarginLoss", { softMarginLoss }) {}

/**
 * Computes a multi-label hinge loss with a margin of 1 between target classes and others. See `multilabelMarginLoss`.
 *
 * @example
 * new MultiLabelMarginLoss().forward(tensor([[0.5, 1, 0.25, 0]]), tensor([[3n, 0n, -1n, 1n]])); // 1.375
 */
export class MultiLabelMarginLoss extends moduleOf("MultiLabelMarginLoss", { multilabelMarginLoss }) {}

/** Options of {@link CosineEmbeddingLoss}. */
export type CosineEmbeddingLossOptions = MarginLossOptions;

/**
 * Computes 1 − cos(x1, x2) where the target is 1, and max(cos(x1, x2) − margin, 0) where it is −1. Default margin 0.
 * See `cosineEmbeddingLoss`.
 *
 * @example
 * new CosineEmbeddingLoss().forward(tensor([[1, 0]]), tensor([[0, 2]]), tensor([1])); // 1
 */
export class CosineEmbeddingLoss extends moduleOf("CosineEmbeddingLoss", { cosineEmbeddingLoss }) {}

/**
 * Computes max(d(anchor, positive) − d(anchor, negative) + margin, 0) with distances d. Default margin 1. See
 * `tripletMarginLoss`.
 *
 * @example
 * new TripletMarginLoss().forward(tensor([[0, 0]]), tensor([[3, 4]]), tensor([[0, 2]])); // 4
 */
export class TripletMarginLoss extends moduleOf("TripletMarginLoss", { tripletMarginLoss }) {}

/**
 * Computes {@link TripletMarginLoss} with a custom distance function. See `tripletMarginWithDistanceLoss`.
 *
 * @example
 * const distanceFunction = (a: Tensor, b: Tensor) => sum(abs(sub(a, b)), -1);
 * const loss = new TripletMarginWithDistanceLoss({ distanceFunction });
 * loss.forward(tensor([[0, 0]]), tensor([[3, 4]]), tensor([[0, 2]])); // 6
 */
export class TripletMarginWithDistanceLoss extends moduleOf("TripletMarginWithDistanceLoss", {
  tripletMarginWithDistanceLoss,
}) {}

type CtcOperands = [logProbs: Tensor, targets: Tensor<IndexDType>, inputLengths: Lengths, targetLengths: Lengths];
const ctcOptions = taking<Given<CtcLossOptions, ["blank"]>, CtcLossOptions, CtcOperands>({
  blank: optional(someNumber, 0),
  reduction: reductionParameter,
  zeroInfinity: named(flag, false),
});

/**
 * Computes the connectionist temporal classification loss, for labels without alignment. See `ctcLoss`.
 *
 * @example
 * const x = log(tensor([[[0.5, 0.5]], [[0.5, 0.5]]])); // 2 steps, 1 sequence, 2 classes
 * new CTCLoss().forward(x, tensor([[1n]]), [2], [1]); // 0.2877
 */
export class CTCLoss extends moduleOf("CTCLoss", { ctcLoss }, ctcOptions) {}

/**
 * Computes the Kullback–Leibler divergence of x from the target. See `klDiv`.
 *
 * @example
 * new KLDivLoss({ reduction: "batchmean" }).forward(tensor([[-1, -2]]), tensor([[0.25, 0.75]])); // 1.1877
 */
export class KLDivLoss extends moduleOf("KLDivLoss", { klDiv }) {}

/**
 * Computes the cosine of the angle between vectors. See `cosineSimilarity`.
 *
 * @example
 * new CosineSimilarity({ dim: 1 }).forward(tensor([[1, 0]]), tensor([[1, 1]])); // [0.7071]
 */
export class CosineSimilarity extends moduleOf("CosineSimilarity", { cosineSimilarity }) {}

/**
 * Computes the distance between corresponding vectors of two tensors. See `pairwiseDistance`.
 *
 * @example
 * new PairwiseDistance().forward(tensor([[0, 0]]), tensor([[3, 4]])); // [5]
 */
export class PairwiseDistance extends moduleOf("PairwiseDistance", { pairwiseDistance }) {}

/** Options of {@link CrossEntropyLoss}. */
export interface CrossEntropyLossOptions extends LossOptions {
  /** A weight for each class. Default: 1 for all. */
  weight?: Tensor | undefined;
  /** Targets with this class are ignored. Default −100. */
  ignoreIndex?: number | undefined;
  /** The share of each target that is spread evenly over all classes. Default 0. */
  labelSmoothing?: number | undefined;
}

const crossEntropyOptions = taking<Given<CrossEntropyLossOptions, ["weight"]>>({
  weight: optional(aTensor),
  ignoreIndex: named(aNumber({ holds: Number.isSafeInteger, expected: "a whole number" })),
  labelSmoothing: named(aNumber({ holds: (value) => value >= 0 && value <= 1, expected: "a number from 0 to 1" }), 0),
  reduction: reductionParameter,
});

/**
 * Computes the cross entropy of target classes, or of class probabilities, with softmax(logits). See `crossEntropy`.
 *
 * @example
 * new CrossEntropyLoss().forward(tensor([[0, 0]]), tensor([1n])); // 0.6931
 */
export class CrossEntropyLoss extends moduleOf("CrossEntropyLoss", { crossEntropy }, crossEntropyOptions) {}

/**
 * Computes the negative log-likelihood of target classes, from log probabilities. See `nllLoss`.
 *
 * @example
 * new NLLLoss().forward(tensor([[-1, -2]]), tensor([1n])); // 2
 */
export class NLLLoss extends moduleOf("NLLLoss", { nllLoss }) {}

/**
 * Computes the binary cross entropy of targets with probabilities. See `binaryCrossEntropy`.
 *
 * @example
 * new BCELoss().forward(tensor([0.5, 0.5]), tensor([0, 1])); // 0.6931
 */
export class BCELoss extends moduleOf("BCELoss", { binaryCrossEntropy }) {}

/**
 * Computes the binary cross entropy of targets with σ(x). See `binaryCrossEntropyWithLogits`.
 *
 * @example
 * new BCEWithLogitsLoss().forward(tensor([0, 0]), tensor([0, 1])); // 0.6931
 */
export class BCEWithLogitsLoss extends moduleOf("BCEWithLogitsLoss", { binaryCrossEntropyWithLogits }) {}

const oneOrTwo: Kind<1 | 2> = {
  expected: "1 or 2",
  parse: (value) => (value === 1 || value === 2 ? value : undefined),
};
const multiMarginOptions = taking<Given<MultiMarginLossOptions, ["weight"]>>({
  weight: optional(aTensor),
  p: named(oneOrTwo, 1),
  margin: named(someNumber, 1),
  reduction: reductionParameter,
});

/**
 * Computes the hinge loss between the target class and the others. Default margin 1. See `multiMarginLoss`.
 *
 * @example
 * new MultiMarginLoss().forward(tensor([[1, 2]]), tensor([0n])); // 1
 */
export class MultiMarginLoss extends moduleOf("MultiMarginLoss", { multiMarginLoss }, multiMarginOptions) {}

/**
 * Computes the binary cross entropies of targets with σ(x), averaged over classes. See `multilabelSoftMarginLoss`.
 *
 * @example
 * new MultiLabelSoftMarginLoss().forward(tensor([[0, 0]]), tensor([[0, 1]])); // 0.6931
 */
export class MultiLabelSoftMarginLoss extends moduleOf("MultiLabelSoftMarginLoss", { multilabelSoftMarginLoss }) {}
