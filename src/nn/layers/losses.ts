/** Losses as modules, with PyTorch's names: each calls the operation of its name with the options that it was given. */
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

/** The mean absolute error. See `l1Loss`. */
export class L1Loss extends moduleOf("L1Loss", { l1Loss }) {}

/** The mean squared error. See `mseLoss`. */
export class MSELoss extends moduleOf("MSELoss", { mseLoss }) {}

/** Squared near 0, absolute beyond β. See `smoothL1Loss`. */
export class SmoothL1Loss extends moduleOf("SmoothL1Loss", { smoothL1Loss }) {}

/** Squared near 0, linear beyond δ. See `huberLoss`. */
export class HuberLoss extends moduleOf("HuberLoss", { huberLoss }) {}

/** The negative log-likelihood of counts under Poisson distributions. See `poissonNllLoss`. */
export class PoissonNLLLoss extends moduleOf("PoissonNLLLoss", { poissonNllLoss }) {}

/** The negative log-likelihood of targets under normal distributions. See `gaussianNllLoss`. */
export class GaussianNLLLoss extends moduleOf("GaussianNLLLoss", { gaussianNllLoss }) {}

/** Options of {@link HingeEmbeddingLoss}. */
export type HingeEmbeddingLossOptions = MarginLossOptions;

/** x where the target is 1, max(margin − x, 0) where it is −1; the margin is 1 by default. See `hingeEmbeddingLoss`. */
export class HingeEmbeddingLoss extends moduleOf("HingeEmbeddingLoss", { hingeEmbeddingLoss }) {}

/** Options of {@link MarginRankingLoss}. */
export type MarginRankingLossOptions = MarginLossOptions;

/** max(margin − target (x1 − x2), 0); the margin is 0 by default. See `marginRankingLoss`. */
export class MarginRankingLoss extends moduleOf("MarginRankingLoss", { marginRankingLoss }) {}

/** log(1 + exp(−target x)). See `softMarginLoss`. */
export class SoftMarginLoss extends moduleOf("SoftMarginLoss", { softMarginLoss }) {}

/** A margin of 1 between targets and the other classes. See `multilabelMarginLoss`. */
export class MultiLabelMarginLoss extends moduleOf("MultiLabelMarginLoss", { multilabelMarginLoss }) {}

/** Options of {@link CosineEmbeddingLoss}. */
export type CosineEmbeddingLossOptions = MarginLossOptions;

/** Vectors that have to point the same way, or not; the margin is 0 by default. See `cosineEmbeddingLoss`. */
export class CosineEmbeddingLoss extends moduleOf("CosineEmbeddingLoss", { cosineEmbeddingLoss }) {}

/** An anchor that has to be nearer to a positive than to a negative, by default by 1. See `tripletMarginLoss`. */
export class TripletMarginLoss extends moduleOf("TripletMarginLoss", { tripletMarginLoss }) {}

/**
 * An anchor that has to be nearer to a positive, by distances of the caller's; the margin is 1 by default. See
 * `tripletMarginWithDistanceLoss`.
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

/** The loss of labels without times. See `ctcLoss`. */
export class CTCLoss extends moduleOf("CTCLoss", { ctcLoss }, ctcOptions) {}

/** The Kullback–Leibler divergence of x from the target. See `klDiv`. */
export class KLDivLoss extends moduleOf("KLDivLoss", { klDiv }) {}

/** The cosine of the angle between vectors. See `cosineSimilarity`. */
export class CosineSimilarity extends moduleOf("CosineSimilarity", { cosineSimilarity }) {}

/** The distance of each vector from the other operand's. See `pairwiseDistance`. */
export class PairwiseDistance extends moduleOf("PairwiseDistance", { pairwiseDistance }) {}

/** Options of {@link CrossEntropyLoss}. */
export interface CrossEntropyLossOptions extends LossOptions {
  /** A factor for each class. */
  weight?: Tensor | undefined;
  /** A target that counts for nothing. Default −100. */
  ignoreIndex?: number | undefined;
  /** The share of a target that is spread over all classes. Default 0. */
  labelSmoothing?: number | undefined;
}

const crossEntropyOptions = taking<Given<CrossEntropyLossOptions, ["weight"]>>({
  weight: optional(aTensor),
  ignoreIndex: named(aNumber({ holds: Number.isSafeInteger, expected: "a whole number" })),
  labelSmoothing: named(aNumber({ holds: (value) => value >= 0 && value <= 1, expected: "a number from 0 to 1" }), 0),
  reduction: reductionParameter,
});

/** The cross entropy of target classes, or of class probabilities, with softmax(logits). See `crossEntropy`. */
export class CrossEntropyLoss extends moduleOf("CrossEntropyLoss", { crossEntropy }, crossEntropyOptions) {}

/** The negative log-likelihood of target classes, from logarithms of probabilities. See `nllLoss`. */
export class NLLLoss extends moduleOf("NLLLoss", { nllLoss }) {}

/** The cross entropy of targets with probabilities. See `binaryCrossEntropy`. */
export class BCELoss extends moduleOf("BCELoss", { binaryCrossEntropy }) {}

/** The cross entropy of targets with σ(x). See `binaryCrossEntropyWithLogits`. */
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

/** A margin between the target and the other classes, by default 1. See `multiMarginLoss`. */
export class MultiMarginLoss extends moduleOf("MultiMarginLoss", { multiMarginLoss }, multiMarginOptions) {}

/** The cross entropies of targets with σ(x), averaged over the classes. See `multilabelSoftMarginLoss`. */
export class MultiLabelSoftMarginLoss extends moduleOf("MultiLabelSoftMarginLoss", { multilabelSoftMarginLoss }) {}
