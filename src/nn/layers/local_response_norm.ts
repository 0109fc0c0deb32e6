import { underName } from "../../backend/dispatch.ts";
import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, unlisted } from "../../core/parameters.ts";
import { type LocalResponseNormOptions, localResponseNorm } from "../../ops/normalization/local_response_norm.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { size } from "./kinds.ts";
import { Module } from "./module.ts";

/**
 * Applies `localResponseNorm`: x / (k + alpha · mean(x²))^beta. The mean is over a window of `size` channels around
 * each channel; channels outside of x count as zeros.
 *
 * Source: A. Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", 2012. As in PyTorch,
 * the mean replaces the paper's sum.
 *
 * @param size the number of channels in a window
 *
 * @example
 * new LocalResponseNorm(5).forward(randn([2, 8, 4, 4]));
 *
 * @throws {ArgumentError} for a size below 1. @throws {ShapeError} in `forward`, for x with fewer than three axes.
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
    return underName("LocalResponseNorm", () => localResponseNorm(x, this.size, this.alpha, this.beta, this.k));
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
