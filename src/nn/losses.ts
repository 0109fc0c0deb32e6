/** Losses as modules, with PyTorch's names: each calls the operation of its name with the options that it was given. */
import { ArgumentError } from "../core/errors.ts";
import { aNumber, axis, choice, flag, someNumber } from "../core/kinds.ts";
import { finite, notNegative, positive } from "../core/options.ts";
import { type Given, type Kind, named, optional, parameters } from "../core/parameters.ts";
import { cosineSimilarity } from "../ops/distance/cosine_similarity.ts";
import { pairwiseDistance } from "../ops/distance/pairwise_distance.ts";
import { binaryCrossEntropyWithLogits } from "../ops/loss/binary_cross_entropy.ts";
import { crossEntropy } from "../ops/loss/cross_entropy.ts";
import { cosineEmbeddingLoss, tripletMarginLoss } from "../ops/loss/embedding_losses.ts";
import { huberLoss, smoothL1Loss } from "../ops/loss/huber_loss.ts";
import { l1Loss } from "../ops/loss/l1_loss.ts";
import { gaussianNllLoss, poissonNllLoss } from "../ops/loss/likelihood_losses.ts";
import {
  hingeEmbeddingLoss,
  marginRankingLoss,
  multilabelMarginLoss,
  multilabelSoftMarginLoss,
  multiMarginLoss,
  softMarginLoss,
} from "../ops/loss/margin_losses.ts";
import { mseLoss } from "../ops/loss/mse_loss.ts";
import { nllLoss } from "../ops/loss/nll_loss.ts";
import { type LossOptions, type LossReduction, reductionParameter } from "../ops/loss/options.ts";
import { binaryCrossEntropy, klDiv } from "../ops/loss/probability_losses.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { Module } from "./module.ts";

const wholeNumber = aNumber({ holds: Number.isSafeInteger, expected: "a whole number" });
const oneOrTwo: Kind<1 | 2> = {
  expected: "1 or 2",
  parse: (value) => (value === 1 || value === 2 ? value : undefined),
};

/** What is printed of options: those that are no tensors. */
const listed = (options: object): string =>
  Object.entries(options)
    .map(([name, value]) => `${name}: ${value}`)
    .join(", ");

/** A loss whose options are plain values. */
abstract class Loss<Operands extends readonly Tensor[], Options extends object> extends Module<Operands, Tensor> {
  /** What the operation is called with. */
  readonly options: Readonly<Options>;

  constructor(options: Options) {
    super();
    this.options = Object.freeze(options);
  }

  /** @internal */
  override details(): string {
    return listed(this.options);
  }
}

/** The mean absolute error. See `l1Loss`. */
export class L1Loss extends Loss<[x: Tensor, target: Tensor], LossOptions> {
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
export class MSELoss extends Loss<[x: Tensor, target: Tensor], LossOptions> {
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
export class SmoothL1Loss extends Loss<[x: Tensor, target: Tensor], SmoothL1LossOptions> {
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
export class HuberLoss extends Loss<[x: Tensor, target: Tensor], HuberLossOptions> {
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
export class PoissonNLLLoss extends Loss<[x: Tensor, target: Tensor], PoissonNLLLossOptions> {
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
export class GaussianNLLLoss extends Loss<[x: Tensor, target: Tensor, variance: Tensor], GaussianNLLLossOptions> {
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
export class HingeEmbeddingLoss extends Loss<[x: Tensor, target: Tensor], HingeEmbeddingLossOptions> {
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
export class MarginRankingLoss extends Loss<[x1: Tensor, x2: Tensor, target: Tensor], MarginRankingLossOptions> {
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
export class SoftMarginLoss extends Loss<[x: Tensor, target: Tensor], LossOptions> {
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
export class MultiLabelMarginLoss extends Loss<[x: Tensor, targets: Tensor], LossOptions> {
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
export class CosineEmbeddingLoss extends Loss<[x1: Tensor, x2: Tensor, target: Tensor], CosineEmbeddingLossOptions> {
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
export class TripletMarginLoss extends Loss<
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

/** Options of {@link KLDivLoss}. */
export interface KLDivLossOptions {
  /** Whether the target has logarithms of probabilities. Default false. */
  logTarget?: boolean | undefined;
  /** `"batchmean"`: the sum over the size of the first axis, which is the divergence. Default `"mean"`. */
  reduction?: LossReduction | "batchmean" | undefined;
}

/** The Kullback–Leibler divergence of x from the target. See `klDiv`. */
export class KLDivLoss extends Loss<[x: Tensor, target: Tensor], KLDivLossOptions> {
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

/** A loss with factors, which are buffers: saved, loaded and converted with the module. */
abstract class WeightedLoss<Options extends object> extends Module<[x: Tensor, target: Tensor], Tensor> {
  /** What the operation is called with beside the factors. */
  readonly options: Readonly<Options>;
  readonly weight: Tensor | null;

  constructor({ weight, ...options }: Options & { readonly weight?: Tensor | undefined }) {
    super();
    this.options = Object.freeze(options) as unknown as Readonly<Options>;
    this.weight = weight ?? null;
  }

  /** @internal */
  override details(): string {
    return listed(this.options);
  }
}

/** Options of {@link CrossEntropyLoss}. */
export interface CrossEntropyLossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
  /** A target that counts for nothing. Default −100. */
  ignoreIndex?: number | undefined;
  /** The share of a target that is spread over all classes. Default 0. */
  labelSmoothing?: number | undefined;
}

/** The cross entropy of target classes, or of class probabilities, with softmax(logits). See `crossEntropy`. */
export class CrossEntropyLoss extends WeightedLoss<Omit<CrossEntropyLossOptions, "weight">> {
  constructor(...options: Given<CrossEntropyLossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    super(crossEntropyLossParameters(values));
  }

  override forward(logits: Tensor, targets: Tensor): Tensor {
    return crossEntropy(logits, targets, { ...this.options, weight: this.weight ?? undefined });
  }
}
const crossEntropyLossParameters = parameters("CrossEntropyLoss", {
  weight: optional(aTensor),

  ignoreIndex: named(wholeNumber),
  labelSmoothing: named(aNumber({ holds: (value) => value >= 0 && value <= 1, expected: "a number from 0 to 1" }), 0),
  reduction: reductionParameter,
});

/** Options of {@link NLLLoss}. */
export interface NLLLossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
  /** A target that counts for nothing. Default −100. */
  ignoreIndex?: number | undefined;
}

/** The negative log-likelihood of target classes, from logarithms of probabilities. See `nllLoss`. */
export class NLLLoss extends WeightedLoss<Omit<NLLLossOptions, "weight">> {
  constructor(...options: Given<NLLLossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    super(nllLossParameters(values));
  }

  override forward(x: Tensor, targets: Tensor): Tensor {
    return nllLoss(x, targets, { ...this.options, weight: this.weight ?? undefined });
  }
}
const nllLossParameters = parameters("NLLLoss", {
  weight: optional(aTensor),

  ignoreIndex: named(wholeNumber, -100),
  reduction: reductionParameter,
});

/** Options of {@link BCELoss}. */
export interface BCELossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
}

/** The cross entropy of targets with probabilities. See `binaryCrossEntropy`. */
export class BCELoss extends WeightedLoss<LossOptions> {
  constructor(...options: Given<BCELossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    super(bceLossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return binaryCrossEntropy(x, target, { ...this.options, weight: this.weight ?? undefined });
  }
}
const bceLossParameters = parameters("BCELoss", {
  weight: optional(aTensor),

  reduction: reductionParameter,
});

/** Options of {@link BCEWithLogitsLoss}. */
export interface BCEWithLogitsLossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
  /** A factor of the losses of positive targets. */
  posWeight?: Tensor | undefined;
}

/** The cross entropy of targets with σ(x). See `binaryCrossEntropyWithLogits`. */
export class BCEWithLogitsLoss extends WeightedLoss<LossOptions> {
  readonly posWeight: Tensor | null;

  constructor(...options: Given<BCEWithLogitsLossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    const { posWeight, ...options } = bceWithLogitsLossParameters(values);
    super(options);
    this.posWeight = posWeight ?? null;
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return binaryCrossEntropyWithLogits(x, target, {
      ...this.options,
      weight: this.weight ?? undefined,
      posWeight: this.posWeight ?? undefined,
    });
  }
}
const bceWithLogitsLossParameters = parameters("BCEWithLogitsLoss", {
  weight: optional(aTensor),
  posWeight: named(aTensor),
  reduction: reductionParameter,
});

/** Options of {@link MultiMarginLoss}. */
export interface MultiMarginLossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
  /** The power of what is short of the margin. Default 1. */
  p?: 1 | 2 | undefined;
  /** Default 1. */
  margin?: number | undefined;
}

/** A margin between the target and the other classes. See `multiMarginLoss`. */
export class MultiMarginLoss extends WeightedLoss<Omit<MultiMarginLossOptions, "weight">> {
  constructor(...options: Given<MultiMarginLossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    super(multiMarginLossParameters(values));
  }

  override forward(x: Tensor, targets: Tensor): Tensor {
    return multiMarginLoss(x, targets, { ...this.options, weight: this.weight ?? undefined });
  }
}
const multiMarginLossParameters = parameters("MultiMarginLoss", {
  weight: optional(aTensor),

  p: named(oneOrTwo, 1),
  margin: named(someNumber, 1),
  reduction: reductionParameter,
});

/** Options of {@link MultiLabelSoftMarginLoss}. */
export interface MultiLabelSoftMarginLossOptions extends LossOptions {
  /** A factor: see the operation. */
  weight?: Tensor | undefined;
}

/** The cross entropies of targets with σ(x), averaged over the classes. See `multilabelSoftMarginLoss`. */
export class MultiLabelSoftMarginLoss extends WeightedLoss<LossOptions> {
  constructor(...options: Given<MultiLabelSoftMarginLossOptions, ["weight"]>);
  constructor(...values: unknown[]) {
    super(multiLabelSoftMarginLossParameters(values));
  }

  override forward(x: Tensor, target: Tensor): Tensor {
    return multilabelSoftMarginLoss(x, target, { ...this.options, weight: this.weight ?? undefined });
  }
}
const multiLabelSoftMarginLossParameters = parameters("MultiLabelSoftMarginLoss", {
  weight: optional(aTensor),

  reduction: reductionParameter,
});

/** Options of {@link CosineSimilarity}. */
export interface CosineSimilarityModuleOptions {
  /** The axis along which vectors lie. Default 1. */
  dim?: number | undefined;
  /** What a norm is at least. Default 1e-8. */
  eps?: number | undefined;
}

/** The cosine of the angle between vectors. See `cosineSimilarity`. */
export class CosineSimilarity extends Loss<[x1: Tensor, x2: Tensor], CosineSimilarityModuleOptions> {
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
export class PairwiseDistance extends Loss<[x1: Tensor, x2: Tensor], PairwiseDistanceModuleOptions> {
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
