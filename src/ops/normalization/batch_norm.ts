/** Batch and group normalization. */
import { noGrad } from "../../autograd/modes.ts";
import { underName } from "../../backend/dispatch.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { aNumber, flag, someNumber } from "../../core/kinds.ts";
import { notNegative } from "../../core/options.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { copy_ } from "../copy/inplace.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { lerp } from "../elementwise/lerp.ts";
import { reshape } from "../view/reshape.ts";
import { checkChannels, ofChannels, ofGroups, type Statistics, withStatistics } from "./channels.ts";

/** Options of {@link batchNorm}. */
export interface BatchNormOptions {
  /** The running mean of each channel: used without `training`, updated in place with it. */
  runningMean?: Tensor | undefined;
  /** The running variance of each channel, used and updated likewise. */
  runningVar?: Tensor | undefined;
  /** A factor for each channel. */
  weight?: Tensor | undefined;
  /** Added to each channel. */
  bias?: Tensor | undefined;
  /** Whether to use the means and variances of the batch. Default false. */
  training?: boolean | undefined;
  /** Weight of the batch's statistics when running ones are updated. Default 0.1. */
  momentum?: number | undefined;
  /** Added to variances. Default 1e-5. */
  eps?: number | undefined;
}

/**
 * Computes batch normalization: (x − mean) / √(variance + eps) · weight + bias, with one mean and variance for each
 * channel. With `training`, they are computed from the batch; otherwise, the running statistics are used. Normalization
 * uses the population variance; running variances are updated with the sample variance.
 *
 * Source: S. Ioffe and C. Szegedy, "Batch Normalization", 2015.
 *
 * @param x [batch, channels, …], floats; 16-bit floats are computed in float32
 * @returns x's shape and dtype
 *
 * @example
 * batchNorm(tensor([[1], [3]]), { training: true, eps: 0 }); // float32 [[-1], [1]]
 *
 * @throws {ShapeError} if x has no channels, or another operand is not a vector with one element for each channel.
 * @throws {DTypeError} if an operand is not a float. @throws {ArgumentError} without `training`, if a running mean or
 * variance is missing.
 */
export function batchNorm<D extends DType>(
  x: Tensor<D>,
  ...options: Given<BatchNormOptions, ["runningMean", "runningVar", "weight", "bias", "training", "momentum", "eps"]>
): Tensor<D>;
export function batchNorm(...values: unknown[]): Tensor {
  const { x, runningMean, runningVar, weight, bias, training, momentum, eps } = batchNormParameters(values);
  checkChannels("batchNorm", x, { runningMean, runningVar, weight, bias });
  if (!training && !(runningMean && runningVar))
    throw new ArgumentError(
      "batchNorm",
      "noStatistics",
      "expected runningMean and runningVar without training, got none; { training: true } uses those of the batch",
    );
  return underName("batchNorm", () =>
    tidy(() => {
      const vectors = { weight, bias, eps };
      if (!training) return withStatistics("batchNorm", x, { ...vectors, mean: runningMean!, variance: runningVar! });
      const { out, ...statistics } = ofChannels("batchNorm", x, vectors);
      if (x.size > 0) runAlong(statistics, x.size / x.shape[1], momentum, runningMean, runningVar);
      return out;
    }),
  );
}
const batchNormParameters = parameters("batchNorm", {
  x: operand(aTensor),
  runningMean: optional(aTensor),
  runningVar: optional(aTensor),
  weight: optional(aTensor),
  bias: optional(aTensor),
  training: optional(flag, false),
  momentum: optional(someNumber, 0.1),
  eps: optional(aNumber(notNegative), 1e-5),
});

/** Options of {@link groupNorm} and {@link instanceNorm}. */
export interface ChannelNormOptions {
  /** A factor for each channel. */
  weight?: Tensor | undefined;
  /** Added to each channel. */
  bias?: Tensor | undefined;
  /** Added to variances. Default 1e-5. */
  eps?: number | undefined;
}

/**
 * Computes group normalization: (x − mean) / √(variance + eps) · weight + bias, with one mean and variance for each
 * group of channels in each batch element.
 *
 * Source: Y. Wu and K. He, "Group Normalization", 2018.
 *
 * @param x [batch, channels, …], floats; 16-bit floats are computed in float32
 * @param numGroups number of groups that channels are divided into
 * @returns x's shape and dtype
 *
 * @example
 * groupNorm(tensor([[1, 3, 5, 5]]), 2, { eps: 1 }); // float32 [[-0.70710678, 0.70710678, 0, 0]]
 *
 * @throws {ShapeError} if the groups do not divide the channels evenly, or another operand is not a vector with one
 * element for each channel. @throws {DTypeError} if an operand is not a float. @throws {ArgumentError} if numGroups is
 * not an integer of at least 1.
 */
export function groupNorm<D extends DType>(
  x: Tensor<D>,
  numGroups: number,
  ...options: Given<ChannelNormOptions, ["weight", "bias", "eps"]>
): Tensor<D>;
export function groupNorm(...values: unknown[]): Tensor {
  const { x, numGroups, weight, bias, eps } = groupNormParameters(values);
  checkChannels("groupNorm", x, { weight, bias });
  if (!Number.isSafeInteger(numGroups) || numGroups < 1)
    throw new ArgumentError(
      "groupNorm",
      "invalidGroups",
      `expected numGroups to be a whole number of at least 1, got ${numGroups}`,
    );
  if (x.shape[1] % numGroups !== 0)
    throw new ShapeError(
      "groupNorm",
      "unevenGroups",
      `expected ${numGroups} groups to divide ${x.shape[1]} channels of ${x.describe()}`,
    );
  return underName("groupNorm", () => tidy(() => ofGroups("groupNorm", x, numGroups, { weight, bias, eps })));
}
const groupNormParameters = parameters("groupNorm", {
  x: operand(aTensor),
  numGroups: required(someNumber),
  weight: optional(aTensor),
  bias: optional(aTensor),
  eps: optional(aNumber(notNegative), 1e-5),
});

/** Updates the running means and variances in place. @param count number of elements of a channel */
function runAlong(
  { mean, variance }: Statistics,
  count: number,
  momentum: number,
  runningMean: Tensor | undefined,
  runningVar: Tensor | undefined,
): void {
  noGrad(() => {
    const replace = (running: Tensor | undefined, statistic: Tensor): void => {
      if (!running) return;
      const next: Tensor = lerp(toDType(running, statistic.dtype), reshape(statistic, running.shape), momentum);
      copy_(running, toDType(next, running.dtype));
    };
    replace(runningMean, mean);
    replace(runningVar, mul(variance, count / Math.max(count - 1, 1)));
  });
}
