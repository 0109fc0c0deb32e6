/** Instance normalization. */
import { noGrad } from "../../autograd/modes.ts";
import { underName } from "../../backend/dispatch.ts";
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { aNumber, flag, someNumber } from "../../core/kinds.ts";
import { notNegative } from "../../core/options.ts";
import { type Given, operand, optional, type Parsed, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { copy_ } from "../copy/inplace.ts";
import { repeat } from "../join/repeat.ts";
import { mean } from "../reduction/mean.ts";
import { reshape } from "../view/reshape.ts";
import { batchNorm } from "./batch_norm.ts";
import { checkChannels, ofGroups } from "./channels.ts";

/** Options of {@link instanceNorm}. */
export interface InstanceNormOptions {
  /** The running mean of each channel: used without `useInputStats`, updated in place with it. */
  runningMean?: Tensor | undefined;
  /** The running variance of each channel, used and updated likewise. */
  runningVar?: Tensor | undefined;
  /** A factor for each channel. */
  weight?: Tensor | undefined;
  /** Added to each channel. */
  bias?: Tensor | undefined;
  /** Whether to use the means and variances of x. Default true. */
  useInputStats?: boolean | undefined;
  /** Weight of x's statistics, averaged over the batch, when running ones are updated. Default 0.1. */
  momentum?: number | undefined;
  /** Added to variances. Default 1e-5. */
  eps?: number | undefined;
}

/**
 * Computes instance normalization: (x − mean) / √(variance + eps) · weight + bias, with one mean and variance for each
 * channel of each batch element, or with the running ones of each channel.
 *
 * Source: D. Ulyanov et al., "Instance Normalization: The Missing Ingredient for Fast Stylization", 2016.
 *
 * @param x [batch, channels, …], floats; 16-bit floats are computed in float32
 * @returns x's shape and dtype
 *
 * @example
 * instanceNorm(tensor([[[1, 3]]]), { eps: 0 }); // float32 [[[-1, 1]]]
 *
 * @throws {ShapeError} if there is no axis after the channels, or another operand is not a vector with one element for
 * each channel. @throws {DTypeError} if an operand is not a float. @throws {ArgumentError} without `useInputStats`, if
 * a running mean or variance is missing.
 */
export function instanceNorm<D extends DType>(
  x: Tensor<D>,
  ...options: Given<
    InstanceNormOptions,
    ["runningMean", "runningVar", "weight", "bias", "useInputStats", "momentum", "eps"]
  >
): Tensor<D>;
export function instanceNorm(...values: unknown[]): Tensor {
  const { x, ...given } = instanceNormParameters(values);
  const { runningMean, runningVar, weight, bias, useInputStats, eps } = given;
  checkChannels("instanceNorm", x, { runningMean, runningVar, weight, bias });
  if (x.rank < 3)
    throw new ShapeError(
      "instanceNorm",
      "wrongRank",
      `expected x to be [batch, channels, …], with an axis after the channels, got ${x.describe()}`,
    );
  if (!useInputStats && !(runningMean && runningVar))
    throw new ArgumentError(
      "instanceNorm",
      "noStatistics",
      "expected runningMean and runningVar without useInputStats, got none; { useInputStats: true } uses those of x",
    );
  return underName("instanceNorm", () =>
    tidy(() => {
      if (runningMean || runningVar) return withRunning(x, given);
      return ofGroups("instanceNorm", x, x.shape[1], { weight, bias, eps });
    }),
  );
}
const statistics = {
  runningMean: optional(aTensor),
  runningVar: optional(aTensor),
  weight: optional(aTensor),
  bias: optional(aTensor),
  useInputStats: optional(flag, true),
  momentum: optional(someNumber, 0.1),
  eps: optional(aNumber(notNegative), 1e-5),
} as const;
const instanceNormParameters = parameters("instanceNorm", { x: operand(aTensor), ...statistics });

/**
 * Normalizes x as a batch of one with the channels of all batch elements, then averages the updated running
 * statistics over the batch.
 */
function withRunning(x: Tensor, { useInputStats, momentum, eps, ...vectors }: Parsed<typeof statistics>): Tensor {
  const [batch, channels, ...rest] = x.shape;
  const ofEach = (vector: Tensor | undefined): Tensor | undefined => vector && repeat(vector, [batch]);
  const [runningMean, runningVar] = noGrad(() => [ofEach(vectors.runningMean), ofEach(vectors.runningVar)]);
  const repeated = { runningMean, runningVar, weight: ofEach(vectors.weight), bias: ofEach(vectors.bias) };
  const lines = reshape(x, [1, batch * channels, ...rest]);
  const out = batchNorm(lines, { ...repeated, training: useInputStats, momentum, eps });
  if (useInputStats && batch > 0)
    noGrad(() => {
      for (const name of ["runningMean", "runningVar"] as const)
        if (repeated[name]) copy_(vectors[name]!, mean(reshape(repeated[name], [batch, channels]), { dim: 0 }));
    });
  return reshape(out, x.shape);
}
