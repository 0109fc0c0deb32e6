import { ShapeError } from "../core/errors.ts";
import { someNumber } from "../core/kinds.ts";
import { type Given, operand, optional, parameters, unlisted } from "../core/parameters.ts";
import { add, mul, square } from "../ops/elementwise/arithmetic.ts";
import { div } from "../ops/elementwise/division.ts";
import { pow } from "../ops/elementwise/power.ts";
import { pad } from "../ops/join/pad.ts";
import { mean } from "../ops/reduction/mean.ts";
import { slidingWindows } from "../ops/view/windows.ts";
import { aTensor } from "../tensor/kinds.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { size } from "./kinds.ts";
import { Module } from "./module.ts";

/** Options of {@link LocalResponseNorm}, in PyTorch's order. */
export interface LocalResponseNormOptions {
  /** The factor of mean squares. Default 1e-4. */
  alpha?: number | undefined;
  /** The exponent. Default 0.75. */
  beta?: number | undefined;
  /** What is added to them. Default 1. */
  k?: number | undefined;
}

/**
 * x / (k + alpha · mean(x²))^beta, with the mean over `size` channels around each one, zeros beyond the first and last.
 *
 * Source: A. Krizhevsky and others, "ImageNet Classification with Deep Convolutional Neural Networks", 2012, with the
 * mean in the place of the sum as in PyTorch.
 *
 * @param size how many channels
 *
 * @example
 * new LocalResponseNorm(5).forward(randn([2, 8, 4, 4]));
 *
 * @throws {ArgumentError} for a size below 1. @throws {ShapeError} in `forward`, for x without an axis of channels and
 * one behind it.
 */
export class LocalResponseNorm extends Module<[x: Tensor], Tensor> {
  readonly size: number;
  readonly alpha: number;
  readonly beta: number;
  readonly k: number;

  constructor(size: number, ...options: Given<LocalResponseNormOptions, ["alpha", "beta", "k"]>);
  constructor(...values: unknown[]) {
    super();
    const { size, alpha, beta, k } = normParameters(values);
    this.size = size;
    this.alpha = alpha;
    this.beta = beta;
    this.k = k;
  }

  /** @param x [batch, channels, …], with at least three axes @returns the same shape */
  override forward(...values: [x: Tensor]): Tensor {
    const { x } = forwardParameters(values);
    if (x.rank < 3)
      throw new ShapeError(
        "LocalResponseNorm",
        "wrongRank",
        `expected x to have at least 3 axes, [batch, channels, …], got ${x.describe()}`,
      );
    const { size, alpha, beta, k } = this;
    return tidy(() => {
      const behind = new Array<number>(2 * (x.rank - 2)).fill(0);
      const padded = pad(square(x) as Tensor, [...behind, Math.floor(size / 2), Math.floor((size - 1) / 2)]);
      const means: Tensor = mean(slidingWindows(padded, 1, size, 1), -1);
      return div(x, pow(add(mul(means, alpha), k) as Tensor, beta)) as Tensor;
    });
  }

  /** @internal */
  override details(): string {
    return `${this.size}, alpha: ${this.alpha}, beta: ${this.beta}, k: ${this.k}`;
  }
}
const forwardParameters = unlisted("LocalResponseNorm", { x: operand(aTensor) });
const normParameters = parameters("LocalResponseNorm", {
  size: operand(size),
  alpha: optional(someNumber, 1e-4),
  beta: optional(someNumber, 0.75),
  k: optional(someNumber, 1),
});
