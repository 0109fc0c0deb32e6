/** Batch, group and instance normalization as layers. */
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { either, flag, nothing, someNumber } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { add_ } from "../../ops/copy/inplace.ts";
import { ones, zeros } from "../../ops/creation/full.ts";
import { batchNorm, groupNorm } from "../../ops/normalization/batch_norm.ts";
import { instanceNorm } from "../../ops/normalization/instance_norm.ts";
import { squeeze, unsqueeze } from "../../ops/view/squeeze.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import { expectTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { type LayerOptions, oneParameter, zeroParameter } from "./initialization.ts";
import { epsilon, layerParameters, size } from "./kinds.ts";
import { Module } from "./module.ts";
import { called } from "./module_of.ts";

/** Options of {@link BatchNorm1d}, {@link BatchNorm2d} and {@link BatchNorm3d}. */
export interface BatchNormLayerOptions extends LayerOptions {
  /** Added to variances. Default 1e-5. */
  eps?: number | undefined;
  /**
   * Fraction of the running statistics that each batch replaces. With null, the running statistics are averages over
   * all batches. Default 0.1.
   */
  momentum?: number | null | undefined;
  /** Whether the layer has a weight and a bias. Default true. */
  affine?: boolean | undefined;
  /** Whether an affine layer has a bias. Default true. */
  bias?: boolean | undefined;
  /** Whether the layer keeps running means and variances, for evaluation. Default true. */
  trackRunningStats?: boolean | undefined;
}

interface RunningCall<Momentum> extends LayerOptions {
  readonly numFeatures: number;
  readonly eps: number;
  readonly momentum: Momentum;
  readonly affine: boolean;
  readonly bias: boolean;
  readonly trackRunningStats: boolean;
}

/** @internal Base class of norms with running means and variances. */
export abstract class RunningNorm<Momentum extends number | null> extends Module<[x: Tensor], Tensor> {
  readonly numFeatures: number;
  readonly eps: number;
  readonly momentum: Momentum;
  readonly weight: Tensor | null;
  readonly bias: Tensor | null;
  readonly running_mean: Tensor | null;
  readonly running_var: Tensor | null;
  readonly num_batches_tracked: Tensor | null;

  constructor(call: RunningCall<Momentum>) {
    super();
    const { numFeatures, eps, momentum, affine, bias, trackRunningStats, ...options } = call;
    const { dtype = "float32" } = options;
    this.numFeatures = numFeatures;
    this.eps = eps;
    this.momentum = momentum;
    this.weight = affine ? oneParameter([numFeatures], options) : null;
    this.bias = affine && bias ? zeroParameter([numFeatures], options) : null;
    this.running_mean = trackRunningStats ? zeros([numFeatures], { dtype }) : null;
    this.running_var = trackRunningStats ? ones([numFeatures], { dtype }) : null;
    // InstanceNorm leaves it at 0, as PyTorch does
    this.num_batches_tracked = trackRunningStats ? zeros([], { dtype: "int64" }) : null;
  }
}

/** @internal Batch normalization. */
export interface BatchNorm extends RunningNorm<number | null> {
  forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  forward(x: Tensor): Tensor;
}

type BatchNormClass = new (
  numFeatures: number,
  ...options: Given<BatchNormLayerOptions, ["eps", "momentum", "affine", "trackRunningStats"]>
) => BatchNorm;

/**
 * Makes a class of batch normalization. In training mode, it normalizes by the mean and variance of the batch and
 * updates the running statistics. In evaluation mode, it normalizes by the running statistics.
 *
 * | tensor | shape |
 * |---|---|
 * | `weight`, `bias` | [numFeatures]; null without `affine`, `bias` also without `bias` |
 * | `running_mean`, `running_var` | [numFeatures], buffers; null without `trackRunningStats` |
 * | `num_batches_tracked` | int64 [], a buffer: number of batches so far; null without `trackRunningStats` |
 *
 * @param ranks the supported numbers of axes of x
 */
function batchNormOf(name: string, ranks: readonly number[]): BatchNormClass {
  const read = parameters(name, {
    numFeatures: operand(size),
    eps: optional(epsilon, 1e-5),
    momentum: optional(either(someNumber, nothing), 0.1),
    affine: optional(flag, true),
    trackRunningStats: optional(flag, true),
    bias: named(flag, true),
    ...layerParameters,
  });
  class OfRanks extends RunningNorm<number | null> {
    constructor(
      numFeatures: number,
      ...options: Given<BatchNormLayerOptions, ["eps", "momentum", "affine", "trackRunningStats"]>
    );
    constructor(...values: unknown[]) {
      super(read(values));
    }

    override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
    override forward(x: Tensor): Tensor;
    override forward(x: Tensor): Tensor {
      expectTensor(this.constructor.name, "x", x);
      if (!ranks.includes(x.rank))
        throw new ShapeError(
          this.constructor.name,
          "wrongRank",
          `expected x to have ${ranks.join(" or ")} axes, got ${x.describe()}`,
        );
      const training = this.training || this.running_mean === null;
      const { num_batches_tracked: count } = this;
      // without a momentum: the weight of this batch in the average over all batches
      const momentum = this.momentum ?? (count && this.training ? 1 / (Number(count.item()) + 1) : 0);
      const result = batchNorm(x, {
        training,
        momentum,
        eps: this.eps,
        weight: this.weight ?? undefined,
        bias: this.bias ?? undefined,
        runningMean: this.running_mean ?? undefined,
        runningVar: this.running_var ?? undefined,
      });
      if (count && this.training) noGrad(() => add_(count, 1n));
      return result;
    }

    /** @internal */
    override details(): string {
      return `${this.numFeatures}, eps: ${this.eps}, momentum: ${this.momentum}`;
    }
  }
  return called(name, OfRanks);
}

/**
 * Applies `batchNorm` to x [batch, numFeatures] or [batch, numFeatures, length].
 *
 * @example
 * new BatchNorm1d(3).forward(randn([4, 3, 5]));
 */
export class BatchNorm1d extends batchNormOf("BatchNorm1d", [2, 3]) {}

/**
 * Applies `batchNorm` to x [batch, numFeatures, height, width].
 *
 * @example
 * new BatchNorm2d(3).forward(randn([4, 3, 5, 5]));
 */
export class BatchNorm2d extends batchNormOf("BatchNorm2d", [4]) {}

/**
 * Applies `batchNorm` to x [batch, numFeatures, depth, height, width].
 *
 * @example
 * new BatchNorm3d(3).forward(randn([4, 3, 5, 5, 5]));
 */
export class BatchNorm3d extends batchNormOf("BatchNorm3d", [5]) {}

/** Options of {@link GroupNorm} and of the instance norms. */
export interface ChannelNormLayerOptions extends LayerOptions {
  /** Added to variances. Default 1e-5. */
  eps?: number | undefined;
  /** Whether the layer has a weight and a bias. Default true for {@link GroupNorm}, false for instance norms. */
  affine?: boolean | undefined;
  /** Whether an affine layer has a bias. Default true. */
  bias?: boolean | undefined;
}

/**
 * Applies `groupNorm`: normalizes groups of channels.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight`, `bias` | [numChannels]; null without `affine`, `bias` also without `bias` |
 *
 * @example
 * new GroupNorm(2, 4).forward(randn([3, 4, 5]));
 *
 * @throws {ArgumentError} for sizes below 1, and if `numGroups` does not divide `numChannels`.
 */
export class GroupNorm extends Module<[x: Tensor], Tensor> {
  readonly numGroups: number;
  readonly numChannels: number;
  readonly eps: number;
  readonly weight: Tensor | null;
  readonly bias: Tensor | null;

  constructor(numGroups: number, numChannels: number, ...options: Given<ChannelNormLayerOptions, ["eps", "affine"]>);
  constructor(...values: unknown[]) {
    super();
    const { numGroups, numChannels, eps, affine, bias, ...options } = groupNormParameters(values);
    if (numChannels % numGroups !== 0)
      throw new ArgumentError(
        "GroupNorm",
        "unevenGroups",
        `expected ${numGroups} groups to divide ${numChannels} channels`,
      );
    this.numGroups = numGroups;
    this.numChannels = numChannels;
    this.eps = eps;
    this.weight = affine ? oneParameter([numChannels], options) : null;
    this.bias = affine && bias ? zeroParameter([numChannels], options) : null;
  }

  override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  override forward(x: Tensor): Tensor;
  override forward(x: Tensor): Tensor {
    const { weight, bias, eps } = this;
    return groupNorm(x, this.numGroups, { weight: weight ?? undefined, bias: bias ?? undefined, eps });
  }

  /** @internal */
  override details(): string {
    return `${this.numGroups}, ${this.numChannels}, eps: ${this.eps}`;
  }
}
const groupNormParameters = parameters("GroupNorm", {
  numGroups: operand(size),
  numChannels: operand(size),
  eps: optional(epsilon, 1e-5),
  affine: optional(flag, true),
  bias: named(flag, true),
  ...layerParameters,
});

/** Options of {@link InstanceNorm1d}, {@link InstanceNorm2d} and {@link InstanceNorm3d}. */
export interface InstanceNormLayerOptions extends ChannelNormLayerOptions {
  /** Fraction of the running statistics that each call replaces. Default 0.1. */
  momentum?: number | undefined;
  /** Whether the layer keeps running means and variances, for evaluation. Default false. */
  trackRunningStats?: boolean | undefined;
}

/** @internal Instance normalization. */
export interface InstanceNorm extends RunningNorm<number> {
  forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  forward(x: Tensor): Tensor;
}

type InstanceNormClass = new (
  numFeatures: number,
  ...options: Given<InstanceNormLayerOptions, ["eps", "momentum", "affine", "trackRunningStats"]>
) => InstanceNorm;

/** Makes a class of instance normalization for inputs with `rank` axes, or one less without a batch. */
function instanceNormOf(name: string, rank: number): InstanceNormClass {
  const read = parameters(name, {
    numFeatures: operand(size),
    eps: optional(epsilon, 1e-5),
    momentum: optional(someNumber, 0.1),
    affine: optional(flag, false),
    trackRunningStats: optional(flag, false),
    bias: named(flag, true),
    ...layerParameters,
  });
  class OfRank extends RunningNorm<number> {
    constructor(
      numFeatures: number,
      ...options: Given<InstanceNormLayerOptions, ["eps", "momentum", "affine", "trackRunningStats"]>
    );
    constructor(...values: unknown[]) {
      super(read(values));
    }

    override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
    override forward(x: Tensor): Tensor;
    override forward(x: Tensor): Tensor {
      expectTensor(this.constructor.name, "x", x);
      const isSample = x.rank === rank - 1;
      if ((x.rank !== rank && !isSample) || x.shape[isSample ? 0 : 1] !== this.numFeatures)
        throw new ShapeError(
          this.constructor.name,
          "shapesDiffer",
          `expected x to have ${rank} axes, the second of size ${this.numFeatures}, or to be one sample without a ` +
            `batch, got ${x.describe()}`,
        );
      return isSample ? tidy(() => squeeze(this.normalize(unsqueeze(x, 0)), 0)) : this.normalize(x);
    }

    private normalize(x: Tensor): Tensor {
      return instanceNorm(x, {
        useInputStats: this.training || this.running_mean === null,
        momentum: this.momentum,
        eps: this.eps,
        weight: this.weight ?? undefined,
        bias: this.bias ?? undefined,
        runningMean: this.running_mean ?? undefined,
        runningVar: this.running_var ?? undefined,
      });
    }

    /** @internal */
    override details(): string {
      return `${this.numFeatures}, eps: ${this.eps}`;
    }
  }
  return called(name, OfRank);
}

/**
 * Applies `instanceNorm` to x [batch, numFeatures, length], or without a batch: normalizes each channel
 * of each sample.
 *
 * @example
 * new InstanceNorm1d(3).forward(randn([4, 3, 5]));
 */
export class InstanceNorm1d extends instanceNormOf("InstanceNorm1d", 3) {}

/**
 * Applies `instanceNorm` to x [batch, numFeatures, height, width], or without a batch: normalizes each channel
 * of each sample.
 *
 * @example
 * new InstanceNorm2d(3).forward(randn([4, 3, 5, 5]));
 */
export class InstanceNorm2d extends instanceNormOf("InstanceNorm2d", 4) {}

/**
 * Applies `instanceNorm` to x [batch, numFeatures, depth, height, width], or without a batch: normalizes each channel
 * of each sample.
 *
 * @example
 * new InstanceNorm3d(3).forward(randn([4, 3, 5, 5, 5]));
 */
export class InstanceNorm3d extends instanceNormOf("InstanceNorm3d", 5) {}
