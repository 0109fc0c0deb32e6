import { underName } from "../../backend/dispatch.ts";
import { ShapeError } from "../../core/errors.ts";
import { aNumber, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, square } from "../elementwise/arithmetic.ts";
import { div } from "../elementwise/division.ts";
import { pow } from "../elementwise/power.ts";
import { pad } from "../join/pad.ts";
import { mean } from "../reduction/mean.ts";
import { floatOperand } from "../reduction/reduce.ts";
import { slidingWindows } from "../view/windows.ts";

/** Options of {@link localResponseNorm}, in PyTorch's order. */
export interface LocalResponseNormOptions {
  /** Factor of the mean squares. Default 1e-4. */
  alpha?: number | undefined;
  /** The exponent. Default 0.75. */
  beta?: number | undefined;
  /** Added to the scaled mean squares. Default 1. */
  k?: number | undefined;
}

/**
 * Computes x / (k + alpha · mean(x²))^beta, with the mean over `size` channels around each channel, and zeros beyond
 * the first and last.
 *
 * Source: A. Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", 2012, with the mean
 * in place of the sum, as in PyTorch.
 *
 * @param x [batch, channels, …], with at least three axes
 * @param size number of channels in a window
 *
 * @example
 * localResponseNorm(tensor([[[1], [2]]]), 1, { alpha: 1, beta: 1, k: 0 }); // float32 [[[1], [0.5]]]
 *
 * @throws {ShapeError} for fewer than three axes. @throws {DTypeError} for integers and bools. @throws {ArgumentError}
 * if size is not an integer of at least 1.
 */
export function localResponseNorm<D extends DType>(
  x: Tensor<D>,
  size: number,
  ...options: Given<LocalResponseNormOptions, ["alpha", "beta", "k"]>
): Tensor<D>;
export function localResponseNorm(...values: unknown[]): Tensor {
  const { x, size, alpha, beta, k } = localResponseNormParameters(values);
  const input = floatOperand("localResponseNorm", x, undefined);
  if (x.rank < 3)
    throw new ShapeError(
      "localResponseNorm",
      "wrongRank",
      `expected at least 3 axes, [batch, channels, …], got ${x.describe()}`,
    );
  return underName("localResponseNorm", () =>
    tidy(() => {
      const wide = toDType(input, accumulationDType(x.dtype));
      const behind = new Array<number>(2 * (x.rank - 2)).fill(0);
      const padded = pad(square(wide), [...behind, Math.floor(size / 2), Math.floor((size - 1) / 2)]);
      const means: Tensor = mean(slidingWindows(padded, 1, size, 1), -1);
      return toDType(div(wide, pow(add(mul(means, alpha), k), beta)), x.dtype);
    }),
  );
}
const localResponseNormParameters = parameters("localResponseNorm", {
  x: operand(aTensor),
  size: required(aNumber({ holds: (size) => Number.isInteger(size) && size >= 1, expected: "a whole number above 0" })),
  alpha: optional(someNumber, 1e-4),
  beta: optional(someNumber, 0.75),
  k: optional(someNumber, 1),
});
