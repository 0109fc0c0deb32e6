/** Losses as modules, with PyTorch's names: each calls the operation of its name with the options that it was given. */
import { ArgumentError } from "../../core/errors.ts";
import { aFunction, aNumber, axis, choice, flag, someNumber } from "../../core/kinds.ts";
import { finite, notNegative, positive } from "../../core/options.ts";
import { type Given, named, optional, parameters } from "../../core/parameters.ts";
import { cosineSimilarity } from "../../ops/distance/cosine_similarity.ts";
import { pairwiseDistance } from "../../ops/distance/pairwise_distance.ts";
import type { IndexDType } from "../../ops/indexing/indices.ts";
import { type CtcLossOptions, ctcLoss, type Lengths } from "../../ops/loss/ctc_loss.ts";
import {
  cosineEmbeddingLoss,
  type TripletMarginWithDistanceLossOptions,
  tripletMarginLoss,
  tripletMarginWithDistanceLoss,
} from "../../ops/loss/embedding_losses.ts";
import { huberLoss, smoothL1Loss } from "../../ops/loss/huber_loss.ts";
import { l1Loss } from "../../ops/loss/l1_loss.ts";
import { gaussianNllLoss, poissonNllLoss } from "../../ops/loss/likelihood_losses.ts";
import {
  hingeEmbeddingLoss,
  marginRankingLoss,
  multilabelMarginLoss,
  softMarginLoss,
} from "../../ops/loss/margin_losses.ts";
import { mseLoss } from "../../ops/loss/mse_loss.ts";
import { type LossOptions, type LossReduction, reductionParameter } from "../../ops/loss/options.ts";
import { klDiv } from "../../ops/loss/probability_losses.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { ModuleWithOptions } from "./with_options.ts";

/** The mean absolute error. See `l1Loss`. */
export class L1Loss extends ModuleWithOptions<[x: Tensor, target: Tensor], LossOptions> {
  constructor(options?: LossOptions);
  constructor(...values: unknown[]) {
    super(l1LossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return l1Loss(x, target, this.options);
  }
}
const l1LossParameters = parameters("L1Loss", {
  reduction: reductionParameter,
});

/** The mean squared error. See `mseLoss`. */
export class MSELoss extends ModuleWithOptions<[x: Tensor, target: Tensor], LossOptions> {
  constructor(options?: LossOptions);
  constructor(...values: unknown[]) {
    super(mseLossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return mseLoss(x, target, this.options);
  }
}
const mseLossParameters = parameters("MSELoss", {
  reduction: reductionParameter,
});

/** Options of {@link SmoothL1Loss}. */
export interface SmoothL1LossOptions extends LossOptions {
  /** The difference from which on the loss is linear. Default 1. */
  beta?: number | undefined;
}

/** Squared near 0, absolute beyond β. See `smoothL1Loss`. */
export class SmoothL1Loss extends ModuleWithOptions<[x: Tensor, target: Tensor], SmoothL1LossOptions> {
  constructor(options?: SmoothL1LossOptions);
  constructor(...values: unknown[]) {
    super(smoothL1LossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return smoothL1Loss(x, target, this.options);
  }
}
const smoothL1LossParameters = parameters("SmoothL1Loss", {
  beta: named(aNumber(notNegative), 1),
  reduction: reductionParameter,
});

/** Options of {@link HuberLoss}. */
export interface HuberLossOptions extends LossOptions {
  /** The difference from which on the loss is linear. Default 1. */
  delta?: number | undefined;
}

/** Squared near 0, linear beyond δ. See `huberLoss`. */
export class HuberLoss extends ModuleWithOptions<[x: Tensor, target: Tensor], HuberLossOptions> {
  constructor(options?: HuberLossOptions);
  constructor(...values: unknown[]) {
    super(huberLossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return huberLoss(x, target, this.options);
  }
}
const huberLossParameters = parameters("HuberLoss", {
  delta: named(aNumber(positive), 1),
  reduction: reductionParameter,
});

/** Options of {@link PoissonNLLLoss}. */
export interface PoissonNLLLossOptions extends LossOptions {
  /** Whether x is the logarithm of the rate. Default true. */
  logInput?: boolean | undefined;
  /** Whether Stirling's approximation is added. Default false. */
  full?: boolean | undefined;
  /** What is added to a rate before its logarithm. Default 1e-8. */
  eps?: number | undefined;
}

/** The negative log-likelihood of counts under Poisson distributions. See `poissonNllLoss`. */
export class PoissonNLLLoss extends ModuleWithOptions<[x: Tensor, target: Tensor], PoissonNLLLossOptions> {
  constructor(options?: PoissonNLLLossOptions);
  constructor(...values: unknown[]) {
    super(poissonNLLLossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return poissonNllLoss(x, target, this.options);
  }
}
const poissonNLLLossParameters = parameters("PoissonNLLLoss", {
  logInput: named(flag, true),
  full: named(flag, false),
  eps: named(aNumber(notNegative), 1e-8),
  reduction: reductionParameter,
});

/** Options of {@link GaussianNLLLoss}. */
export interface GaussianNLLLossOptions extends LossOptions {
  /** Whether log(2π) / 2 is added. Default false. */
  full?: boolean | undefined;
  /** What a variance is at least. Default 1e-6. */
  eps?: number | undefined;
}

/** The negative log-likelihood of targets under normal distributions. See `gaussianNllLoss`. */
export class GaussianNLLLoss extends ModuleWithOptions<
  [x: Tensor, target: Tensor, variance: Tensor],
  GaussianNLLLossOptions
> {
  constructor(options?: GaussianNLLLossOptions);
  constructor(...values: unknown[]) {
    super(gaussianNLLLossParameters(values));
  }

  override forward(x: Tensor, target: Tensor, variance: Tensor): Tensor {
    return gaussianNllLoss(x, target, variance, this.options);
  }
}
const gaussianNLLLossParameters = parameters("GaussianNLLLoss", {
  full: named(flag, false),
  eps: named(aNumber(positive), 1e-6),
  reduction: reductionParameter,
});

/** Options of {@link HingeEmbeddingLoss}. */
export interface HingeEmbeddingLossOptions extends LossOptions {
  /** Default 1. */
  margin?: number | undefined;
}

/** x where the target is 1, and max(margin − x, 0) where it is −1. See `hingeEmbeddingLoss`. */
export class HingeEmbeddingLoss extends ModuleWithOptions<[x: Tensor, target: Tensor], HingeEmbeddingLossOptions> {
  constructor(options?: HingeEmbeddingLossOptions);
  constructor(...values: unknown[]) {
    super(hingeEmbeddingLossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return hingeEmbeddingLoss(x, target, this.options);
  }
}
const hingeEmbeddingLossParameters = parameters("HingeEmbeddingLoss", {
  margin: named(someNumber, 1),
  reduction: reductionParameter,
});

/** Options of {@link MarginRankingLoss}. */
export interface MarginRankingLossOptions extends LossOptions {
  /** Default 0. */
  margin?: number | undefined;
}

/** max(margin − target (x1 − x2), 0). See `marginRankingLoss`. */
export class MarginRankingLoss extends ModuleWithOptions<
  [x1: Tensor, x2: Tensor, target: Tensor],
  MarginRankingLossOptions
> {
  constructor(options?: MarginRankingLossOptions);
  constructor(...values: unknown[]) {
    super(marginRankingLossParameters(values));
  }

  override forward(x1: Tensor, x2: Tensor, target: Tensor): Tensor {
    return marginRankingLoss(x1, x2, target, this.options);
  }
}
const marginRankingLossParameters = parameters("MarginRankingLoss", {
  margin: named(someNumber, 0),
  reduction: reductionParameter,
});

/** log(1 + exp(−target x)). See `softMarginLoss`. */
export class SoftMarginLoss extends ModuleWithOptions<[x: Tensor, target: Tensor], LossOptions> {
  constructor(options?: LossOptions);
  constructor(...values: unknown[]) {
    super(softMarginLossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return softMarginLoss(x, target, this.options);
  }
}
const softMarginLossParameters = parameters("SoftMarginLoss", {
  reduction: reductionParameter,
});

/** A margin of 1 between targets and the other classes. See `multilabelMarginLoss`. */
export class MultiLabelMarginLoss extends ModuleWithOptions<[x: Tensor, targets: Tensor], LossOptions> {
  constructor(options?: LossOptions);
  constructor(...values: unknown[]) {
    super(multiLabelMarginLossParameters(values));
  }

  override forward(x: Tensor, targets: Tensor): Tensor {
    return multilabelMarginLoss(x, targets, this.options);
  }
}
const multiLabelMarginLossParameters = parameters("MultiLabelMarginLoss", {
  reduction: reductionParameter,
});

/** Options of {@link CosineEmbeddingLoss}. */
export interface CosineEmbeddingLossOptions extends LossOptions {
  /** Default 0. */
  margin?: number | undefined;
}

/** Vectors that have to point the same way, or not. See `cosineEmbeddingLoss`. */
export class CosineEmbeddingLoss extends ModuleWithOptions<
  [x1: Tensor, x2: Tensor, target: Tensor],
  CosineEmbeddingLossOptions
> {
  constructor(options?: CosineEmbeddingLossOptions);
  constructor(...values: unknown[]) {
    super(cosineEmbeddingLossParameters(values));
  }

  override forward(x1: Tensor, x2: Tensor, target: Tensor): Tensor {
    return cosineEmbeddingLoss(x1, x2, target, this.options);
  }
}
const cosineEmbeddingLossParameters = parameters("CosineEmbeddingLoss", {
  margin: named(someNumber, 0),
  reduction: reductionParameter,
});

/** Options of {@link TripletMarginLoss}. */
export interface TripletMarginLossOptions extends LossOptions {
  /** Default 1. */
  margin?: number | undefined;
  /** The order of the norm. Default 2. */
  p?: number | undefined;
  /** What is added to each difference. Default 1e-6. */
  eps?: number | undefined;
  /** Whether the negative counts by its distance from the positive where that is smaller. */
  swap?: boolean | undefined;
}

/** An anchor that has to be nearer to a positive than to a negative. See `tripletMarginLoss`. */
export class TripletMarginLoss extends ModuleWithOptions<
  [anchor: Tensor, positive: Tensor, negative: Tensor],
  TripletMarginLossOptions
> {
  constructor(options?: TripletMarginLossOptions);
  constructor(...values: unknown[]) {
    super(tripletMarginLossParameters(values));
  }

  override forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor {
    return tripletMarginLoss(anchor, positive, negative, this.options);
  }
}
const tripletMarginLossParameters = parameters("TripletMarginLoss", {
  margin: named(someNumber, 1),
  p: named(someNumber, 2),
  eps: named(aNumber(finite), 1e-6),
  swap: named(flag, false),
  reduction: reductionParameter,
});

/** An anchor that has to be nearer to a positive, by distances of the caller's. See `tripletMarginWithDistanceLoss`. */
export class TripletMarginWithDistanceLoss extends ModuleWithOptions<
  [anchor: Tensor, positive: Tensor, negative: Tensor],
  TripletMarginWithDistanceLossOptions
> {
  constructor(options?: TripletMarginWithDistanceLossOptions);
  constructor(...values: unknown[]) {
    super(tripletWithDistanceParameters(values));
  }

  override forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor {
    return tripletMarginWithDistanceLoss(anchor, positive, negative, this.options);
  }
}
const tripletWithDistanceParameters = parameters("TripletMarginWithDistanceLoss", {
  distanceFunction: named(aFunction<(a: Tensor, b: Tensor) => Tensor>()),
  margin: named(someNumber, 1),
  swap: named(flag, false),
  reduction: reductionParameter,
});

/** The loss of labels without times. See `ctcLoss`. */
export class CTCLoss extends ModuleWithOptions<
  [logProbs: Tensor, targets: Tensor<IndexDType>, inputLengths: Lengths, targetLengths: Lengths],
  CtcLossOptions
> {
  constructor(...options: Given<CtcLossOptions, ["blank"]>);
  constructor(...values: unknown[]) {
    super(ctcLossParameters(values));
  }

  override forward(
    logProbs: Tensor,
    targets: Tensor<IndexDType>,
    inputLengths: Lengths,
    targetLengths: Lengths,
  ): Tensor {
    return ctcLoss(logProbs, targets, inputLengths, targetLengths, this.options);
  }
}
const ctcLossParameters = parameters("CTCLoss", {
  blank: optional(someNumber, 0),
  reduction: reductionParameter,
  zeroInfinity: named(flag, false),
});

/** Options of {@link KLDivLoss}. */
export interface KLDivLossOptions {
  /** Whether the target has logarithms of probabilities. Default false. */
  logTarget?: boolean | undefined;
  /** `"batchmean"`: the sum over the size of the first axis, which is the divergence. Default `"mean"`. */
  reduction?: LossReduction | "batchmean" | undefined;
}

/** The Kullback–Leibler divergence of x from the target. See `klDiv`. */
export class KLDivLoss extends ModuleWithOptions<[x: Tensor, target: Tensor], KLDivLossOptions> {
  constructor(options?: KLDivLossOptions);
  constructor(...values: unknown[]) {
    super(klDivLossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return klDiv(x, target, this.options);
  }
}
const klDivLossParameters = parameters("KLDivLoss", {
  logTarget: named(flag, false),
  reduction: named<LossReduction | "batchmean">(
    { ...choice("none", "sum", "mean", "batchmean"), error: [ArgumentError, "unknownReduction"] },
    "mean",
  ),
});

/** Options of {@link CosineSimilarity}. */
export interface CosineSimilarityModuleOptions {
  /** The axis along which vectors lie. Default 1. */
  dim?: number | undefined;
  /** What a norm is at least. Default 1e-8. */
  eps?: number | undefined;
}

/** The cosine of the angle between vectors. See `cosineSimilarity`. */
export class CosineSimilarity extends ModuleWithOptions<[x1: Tensor, x2: Tensor], CosineSimilarityModuleOptions> {
  constructor(...options: Given<CosineSimilarityModuleOptions, ["dim", "eps"]>);
  constructor(...values: unknown[]) {
    super(cosineSimilarityParameters(values));
  }

  override forward(x1: Tensor, x2: Tensor): Tensor {
    return cosineSimilarity(x1, x2, this.options);
  }
}
const cosineSimilarityParameters = parameters("CosineSimilarity", {
  dim: optional(axis, 1),
  eps: optional(aNumber(notNegative), 1e-8),
});

/** Options of {@link PairwiseDistance}. */
export interface PairwiseDistanceModuleOptions {
  /** The order of the norm. Default 2. */
  p?: number | undefined;
  /** What is added to each difference. Default 1e-6. */
  eps?: number | undefined;
  /** Whether the last axis stays, with size 1. Default false. */
  keepdim?: boolean | undefined;
}

/** The distance of each vector from the other operand's. See `pairwiseDistance`. */
export class PairwiseDistance extends ModuleWithOptions<[x1: Tensor, x2: Tensor], PairwiseDistanceModuleOptions> {
  constructor(...options: Given<PairwiseDistanceModuleOptions, ["p", "eps", "keepdim"]>);
  constructor(...values: unknown[]) {
    super(pairwiseDistanceParameters(values));
  }

  override forward(x1: Tensor, x2: Tensor): Tensor {
    return pairwiseDistance(x1, x2, this.options);
  }
}
const pairwiseDistanceParameters = parameters("PairwiseDistance", {
  p: optional(someNumber, 2),
  eps: optional(aNumber(finite), 1e-6),
  keepdim: optional(flag, false),
});
