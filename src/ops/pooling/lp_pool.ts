/** Power-average pooling. */
import { underName } from "../../backend/dispatch.ts";
import { fusesOnCpu } from "../../backend/fuses.ts";
import { ArgumentError } from "../../core/errors.ts";
import { flag, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import { accumulationDType, type DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { relu } from "../activation/relu.ts";
import { alongAxes, type PerAxis, perAxis } from "../convolution/geometry.ts";
import { toDType } from "../copy/cast.ts";
import { abs, mul, sign } from "../elementwise/arithmetic.ts";
import { pow } from "../elementwise/power.ts";
import { avgPool1d, avgPool2d, avgPool3d } from "./average_pool.ts";
import { checkAxes } from "./windows.ts";

/** Options of {@link lpPool1d}, {@link lpPool2d} and {@link lpPool3d}. */
export interface LpPoolOptions {
  /** Step between windows, in elements: one for all axes, or one for each. Default: the window size. */
  stride?: PerAxis | undefined;
  /** Whether windows may extend beyond the end. Default false. */
  ceilMode?: boolean | undefined;
}

/** Options of power-average pooling, named or positional. */
export type LpPoolArguments = Given<LpPoolOptions, ["stride", "ceilMode"]>;

const lpPoolParameters = (operation: string) =>
  parameters(operation, {
    x: operand(aTensor),
    normType: required(someNumber),
    kernelSize: required(perAxis),
    stride: optional(perAxis),
    ceilMode: optional(flag, false),
  });

/**
 * Computes power-average pooling: (Σ xᵖ)^(1/p) for each window, which is the sum for p = 1. For other odd p, the result
 * is NaN if the sum is negative, as in PyTorch.
 *
 * @param x [batch, channels, length], or without a batch
 * @param normType p, other than 0
 * @param kernelSize the window size: one for all axes, or one for each
 *
 * @example
 * lpPool1d(tensor([[[3, 4]]]), 2, 2); // float32 [[[5]]]
 *
 * @throws {ShapeError} if x has an unsupported rank, or a window is larger than x. @throws {DTypeError} if x is not a
 * float.
 * @throws {ArgumentError} for sizes below 1, or a normType of 0.
 */
export function lpPool1d<D extends DType>(
  x: Tensor<D>,
  normType: number,
  kernelSize: PerAxis,
  ...options: LpPoolArguments
): Tensor<D>;
export function lpPool1d(...values: unknown[]): Tensor {
  return lpPool("lpPool1d", lpPool1dParameters(values), 1);
}
const lpPool1dParameters = lpPoolParameters("lpPool1d");

/**
 * Computes power-average pooling over two axes: see {@link lpPool1d}.
 *
 * @param x [batch, channels, height, width], or without a batch
 *
 * @example
 * lpPool2d(tensor([[[[3, 4], [0, 0]]]]), 2, 2); // float32 [[[[5]]]]
 */
export function lpPool2d<D extends DType>(
  x: Tensor<D>,
  normType: number,
  kernelSize: PerAxis,
  ...options: LpPoolArguments
): Tensor<D>;
export function lpPool2d(...values: unknown[]): Tensor {
  return lpPool("lpPool2d", lpPool2dParameters(values), 2);
}
const lpPool2dParameters = lpPoolParameters("lpPool2d");

/**
 * Computes power-average pooling over three axes: see {@link lpPool1d}.
 *
 * @param x [batch, channels, depth, height, width], or without a batch
 *
 * @example
 * lpPool3d(tensor([[[[[3, 4]]]]]), 2, [1, 1, 2]); // float32 [[[[[5]]]]]
 */
export function lpPool3d<D extends DType>(
  x: Tensor<D>,
  normType: number,
  kernelSize: PerAxis,
  ...options: LpPoolArguments
): Tensor<D>;
export function lpPool3d(...values: unknown[]): Tensor {
  return lpPool("lpPool3d", lpPool3dParameters(values), 3);
}
const lpPool3dParameters = lpPoolParameters("lpPool3d");

/** Multiplies the mean of powers by the window size, so that windows extending beyond the end count as in PyTorch. */
function lpPool(
  operation: string,
  { x, normType, kernelSize, stride, ceilMode }: ReturnType<ReturnType<typeof lpPoolParameters>>,
  rank: 1 | 2 | 3,
): Tensor {
  checkAxes(operation, x, rank);
  if (normType === 0 || !Number.isFinite(normType))
    throw new ArgumentError(
      operation,
      "invalidNorm",
      `expected normType to be a finite number other than 0, got ${normType}`,
    );
  const kernel = alongAxes(operation, "kernelSize", kernelSize, rank, 1);
  return underName(operation, () =>
    tidy(() => {
      const wide = accumulationDType(x.dtype);
      const pool = [avgPool1d, avgPool2d, avgPool3d][rank - 1];
      const mean = pool(pow(toDType(x, wide), normType), kernel, { stride, ceilMode });
      const count = kernel.reduce((product, size) => product * size, 1);
      // means of even powers are not negative; the factors matter only to gradients of windows of zeros
      const isPositive = normType % 2 === 0 && fusesOnCpu(x);
      const total = mul(isPositive ? mean : mul(sign(mean), relu(abs(mean))), count);
      return toDType(pow(total, 1 / normType), x.dtype);
    }),
  );
}
