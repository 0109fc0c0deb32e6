/** Pooling by norms of windows. */
import { named as underName } from "../../backend/dispatch.ts";
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

/** Options of {@link lpPool1d} and its like. */
export interface LpPoolOptions {
  /** By how many elements windows move: for all axes, or each. Default: the size of windows. */
  stride?: PerAxis | undefined;
  /** Whether windows may go beyond the end. Default false. */
  ceilMode?: boolean | undefined;
}

/** The ways to pass them: by name or by position. */
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
 * The norm of each window: (Σ xᵖ)^(1/p), which is the sum for p = 1. For other odd p it is NaN where the sum is
 * negative, as in PyTorch.
 *
 * @param x [batch, channels, length], or without a batch
 * @param normType p, other than 0
 * @param kernelSize the size of windows: along all axes, or each
 *
 * @example
 * lpPool1d(tensor([[[3, 4]]]), 2, 2); // float32 [[[5]]]
 *
 * @throws {ShapeError} where x has other axes, or a window is larger than it. @throws {DTypeError} for anything but
 * floats. @throws {ArgumentError} for sizes below 1, and a p of 0.
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
 * The same along two axes: see {@link lpPool1d}.
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
 * The same along three axes: see {@link lpPool1d}.
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

/** The mean of powers times how many there are: so windows beyond the end count as PyTorch counts them. */
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
      const pool = [avgPool1d, avgPool2d, avgPool3d][rank - 1]!;
      const mean = pool(pow(toDType(x, wide), normType) as Tensor, kernel, { stride, ceilMode });
      const count = kernel.reduce((product, own) => product * own, 1);
      const total = mul(mul(sign(mean), relu(abs(mean))), count);
      return toDType(pow(total, 1 / normType) as Tensor, x.dtype);
    }),
  );
}
