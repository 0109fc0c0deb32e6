/** Max pooling over one, two and three axes. */
import { underName } from "../../backend/dispatch.ts";
import { flag } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters, required } from "../../core/parameters.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { type PerAxis, perAxis } from "../convolution/geometry.ts";
import { toDType } from "../copy/cast.ts";
import { largestOfWindows } from "./max_pool_function.ts";
import { windowsOf } from "./windows.ts";

/** Result of max pooling with `returnIndices`. */
export interface PooledWithIndices<D extends DType> {
  readonly values: Tensor<D>;
  /**
   * Row-major indices of the largest elements within a plane (x without batch and channels); −1 for a window of padding
   * only.
   */
  readonly indices: Tensor<"int64">;
}

/** Options of {@link maxPool1d}, {@link maxPool2d} and {@link maxPool3d}. */
export interface MaxPoolOptions {
  /** Step between windows, in elements: one for all axes, or one for each. Default: the window size. */
  stride?: PerAxis | undefined;
  /** Number of elements of −∞ to add on both sides, at most half a window. Default 0. */
  padding?: PerAxis | undefined;
  /** Distance between elements of a window. Default 1. */
  dilation?: PerAxis | undefined;
  /** Whether windows may extend beyond the end. Default false. */
  ceilMode?: boolean | undefined;
}

/** Options of max pooling, named or positional. */
export type MaxPoolArguments = Given<MaxPoolOptions, ["stride", "padding", "dilation", "ceilMode"]>;

const maxPoolParameters = (operation: string) =>
  parameters(operation, {
    x: operand(aTensor),
    kernelSize: required(perAxis),
    stride: optional(perAxis),
    padding: optional(perAxis, 0),
    dilation: optional(perAxis, 1),
    ceilMode: optional(flag, false),
    returnIndices: named(flag, false),
  });

/**
 * Computes the largest element of each window; NaN if the window contains one. If elements are equal, the first gets
 * the gradient. If a window contains several NaN, the last one does, as in PyTorch.
 *
 * @param x [batch, channels, length], or without a batch
 * @param kernelSize the window size: one for all axes, or one for each
 *
 * @example
 * maxPool1d(tensor([[[1, 3, 2, 5]]]), 2); // float32 [[[3, 5]]]
 *
 * @throws {ShapeError} if x has an unsupported rank, or a window is larger than the padded input. @throws {DTypeError}
 * for bools. @throws {ArgumentError} for sizes below 1, or padding of more than half a window.
 */
export function maxPool1d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: MaxPoolOptions & { returnIndices: true },
): PooledWithIndices<D>;
export function maxPool1d<D extends DType>(x: Tensor<D>, kernelSize: PerAxis, ...options: MaxPoolArguments): Tensor<D>;
export function maxPool1d(...values: unknown[]): Tensor | PooledWithIndices<DType> {
  return maxPool("maxPool1d", maxPool1dParameters(values), 1);
}
const maxPool1dParameters = maxPoolParameters("maxPool1d");

/**
 * Computes the largest element of each window over two axes: see {@link maxPool1d}.
 *
 * @param x [batch, channels, height, width], or without a batch
 * @param kernelSize the window size: one for all axes, or one for each
 *
 * @example
 * maxPool2d(tensor([[[[1, 3], [2, 5]]]]), 2); // float32 [[[[5]]]]
 */
export function maxPool2d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: MaxPoolOptions & { returnIndices: true },
): PooledWithIndices<D>;
export function maxPool2d<D extends DType>(x: Tensor<D>, kernelSize: PerAxis, ...options: MaxPoolArguments): Tensor<D>;
export function maxPool2d(...values: unknown[]): Tensor | PooledWithIndices<DType> {
  return maxPool("maxPool2d", maxPool2dParameters(values), 2);
}
const maxPool2dParameters = maxPoolParameters("maxPool2d");

/**
 * Computes the largest element of each window over three axes: see {@link maxPool1d}.
 *
 * @param x [batch, channels, depth, height, width], or without a batch
 * @param kernelSize the window size: one for all axes, or one for each
 *
 * @example
 * maxPool3d(ones([1, 1, 2, 2, 2]), 2); // float32 [[[[[1]]]]]
 */
export function maxPool3d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: MaxPoolOptions & { returnIndices: true },
): PooledWithIndices<D>;
export function maxPool3d<D extends DType>(x: Tensor<D>, kernelSize: PerAxis, ...options: MaxPoolArguments): Tensor<D>;
export function maxPool3d(...values: unknown[]): Tensor | PooledWithIndices<DType> {
  return maxPool("maxPool3d", maxPool3dParameters(values), 3);
}
const maxPool3dParameters = maxPoolParameters("maxPool3d");

function maxPool(
  operation: string,
  { x, returnIndices, ...given }: ReturnType<ReturnType<typeof maxPoolParameters>>,
  rank: number,
): Tensor | PooledWithIndices<DType> {
  const windows = windowsOf(operation, x, given, rank);
  return underName(operation, () =>
    tidy(() => {
      const floats = isFloat(x.dtype) ? x : toDType(x, "float64");
      const { values: largest, indices } = largestOfWindows(operation, floats, windows, returnIndices);
      const values = toDType(largest, x.dtype);
      return returnIndices ? { values, indices: indices as Tensor<"int64"> } : values;
    }),
  );
}
