/** Adaptive max pooling, and max unpooling. */
import { needsGradient } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { liftingOf } from "../../backend/lifted.ts";
import { ShapeError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor, shapeList } from "../../tensor/kinds.ts";
import { checkShape, elementCount, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { alongAxes, type PerAxis, perAxis } from "../convolution/geometry.ts";
import { anIndex, type IndexDType } from "../indexing/indices.ts";
import { scatterAlong } from "../indexing/scatter.ts";
import { amax } from "../reduction/extrema.ts";
import { filled } from "../view/embed.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { type AdaptiveSize, adaptiveSize, adaptiveSizes } from "./adaptive.ts";
import type { PooledWithIndices } from "./max_pool.ts";
import { largestOfWindows } from "./max_pool_function.ts";
import { fusesUnpool, unpooled } from "./max_unpool.cpu.ts";
import { ADAPTIVE } from "./primitive.ts";
import { checkAxes, type Windows } from "./windows.ts";

/** Options of {@link adaptiveMaxPool1d}, {@link adaptiveMaxPool2d} and {@link adaptiveMaxPool3d}. */
export interface AdaptiveMaxPoolOptions {
  /** Whether to also return the indices of the largest elements. Default false. */
  returnIndices?: boolean | undefined;
}

const adaptiveParameters = (operation: string) =>
  parameters(operation, {
    x: operand(aTensor),
    outputSize: required(adaptiveSize),
    returnIndices: optional(flag, false),
  });

/**
 * Computes adaptive max pooling: the largest element of each window, with windows that give the requested output size.
 * Window i of n spans ⌊i · size / n⌋ to ⌈(i + 1) · size / n⌉. If elements are equal, the first gets the gradient.
 *
 * @param x [batch, channels, length], or without a batch
 * @param outputSize the output size: one for all axes, or one for each; null keeps the size of an axis
 *
 * @example
 * adaptiveMaxPool1d(tensor([[[1, 3, 2, 6]]]), 2); // float32 [[[3, 6]]]
 *
 * @throws {ShapeError} if x has an unsupported rank, or an axis of size 0. @throws {DTypeError} if x is not a float.
 * @throws {ArgumentError} for sizes below 1.
 */
export function adaptiveMaxPool1d<D extends DType>(
  x: Tensor<D>,
  outputSize: AdaptiveSize,
  options: { returnIndices: true },
): PooledWithIndices<D>;
export function adaptiveMaxPool1d<D extends DType>(
  x: Tensor<D>,
  outputSize: AdaptiveSize,
  options?: AdaptiveMaxPoolOptions,
): Tensor<D>;
export function adaptiveMaxPool1d(...values: unknown[]): Tensor | PooledWithIndices<DType> {
  return adaptiveMaxPool("adaptiveMaxPool1d", adaptiveMaxPool1dParameters(values), 1);
}
const adaptiveMaxPool1dParameters = adaptiveParameters("adaptiveMaxPool1d");

/**
 * Computes adaptive max pooling over two axes: see {@link adaptiveMaxPool1d}.
 *
 * @param x [batch, channels, height, width], or without a batch
 *
 * @example
 * adaptiveMaxPool2d(tensor([[[[1, 3], [2, 6]]]]), 1); // float32 [[[[6]]]]
 */
export function adaptiveMaxPool2d<D extends DType>(
  x: Tensor<D>,
  outputSize: AdaptiveSize,
  options: { returnIndices: true },
): PooledWithIndices<D>;
export function adaptiveMaxPool2d<D extends DType>(
  x: Tensor<D>,
  outputSize: AdaptiveSize,
  options?: AdaptiveMaxPoolOptions,
): Tensor<D>;
export function adaptiveMaxPool2d(...values: unknown[]): Tensor | PooledWithIndices<DType> {
  return adaptiveMaxPool("adaptiveMaxPool2d", adaptiveMaxPool2dParameters(values), 2);
}
const adaptiveMaxPool2dParameters = adaptiveParameters("adaptiveMaxPool2d");

/**
 * Computes adaptive max pooling over three axes: see {@link adaptiveMaxPool1d}.
 *
 * @param x [batch, channels, depth, height, width], or without a batch
 *
 * @example
 * adaptiveMaxPool3d(tensor([[[[[1, 3], [2, 6]]]]]), 1); // float32 [[[[[6]]]]]
 */
export function adaptiveMaxPool3d<D extends DType>(
  x: Tensor<D>,
  outputSize: AdaptiveSize,
  options: { returnIndices: true },
): PooledWithIndices<D>;
export function adaptiveMaxPool3d<D extends DType>(
  x: Tensor<D>,
  outputSize: AdaptiveSize,
  options?: AdaptiveMaxPoolOptions,
): Tensor<D>;
export function adaptiveMaxPool3d(...values: unknown[]): Tensor | PooledWithIndices<DType> {
  return adaptiveMaxPool("adaptiveMaxPool3d", adaptiveMaxPool3dParameters(values), 3);
}
const adaptiveMaxPool3dParameters = adaptiveParameters("adaptiveMaxPool3d");

function adaptiveMaxPool(
  operation: string,
  { x, outputSize, returnIndices }: ReturnType<ReturnType<typeof adaptiveParameters>>,
  rank: number,
): Tensor | PooledWithIndices<DType> {
  checkAxes(operation, x, rank);
  const sizes = adaptiveSizes(operation, x, outputSize, rank);
  if (x.shape.slice(-rank).includes(0))
    throw new ShapeError(operation, "noElements", `expected elements along the last axes, got ${x.describe()}`);
  checkShape(operation, [...x.shape.slice(0, -rank), ...sizes]);
  const isOfAll = elementCount(sizes) === 1 && !returnIndices && !needsGradient(x) && !liftingOf([x], undefined);
  return underName(operation, () =>
    tidy(() => {
      if (isOfAll) return amax(x, { dim: sizes.map((_, at) => at - rank), keepdim: true });
      const { values, indices } = largestOfWindows(
        operation,
        x,
        windowsInto(x.shape.slice(-rank), sizes),
        returnIndices,
      );
      return returnIndices ? { values, indices: indices as Tensor<"int64"> } : values;
    }),
  );
}

/** Returns windows that divide the input. If all have one size, ordinary max pooling has the same windows. */
function windowsInto(input: readonly number[], output: readonly number[]): Windows {
  const isEven = output.every((size, axis) => input[axis] % size === 0);
  const kernel = output.map((size, axis) => (isEven ? input[axis] / size : ADAPTIVE));
  const all = (value: number): number[] => output.map(() => value);
  const stride = isEven ? kernel : all(1);
  return { kernel, stride, padding: all(0), dilation: all(1), input, output, beyond: all(0) };
}

/** Options of {@link maxUnpool1d}, {@link maxUnpool2d} and {@link maxUnpool3d}. */
export interface MaxUnpoolOptions {
  /** Stride of the pooling, in elements. Default: the window size. */
  stride?: PerAxis | undefined;
  /** Padding of the pooling, on both sides. Default 0. */
  padding?: PerAxis | undefined;
  /** The output size, with or without the leading axes. Default: the smallest size with these windows. */
  outputSize?: readonly number[] | undefined;
}

/** Options of max unpooling, named or positional. */
export type MaxUnpoolArguments = Given<MaxUnpoolOptions, ["stride", "padding", "outputSize"]>;

const unpoolParameters = (operation: string) =>
  parameters(operation, {
    x: operand(aTensor),
    indices: operand(anIndex),
    kernelSize: required(perAxis),
    stride: optional(perAxis),
    padding: optional(perAxis, 0),
    outputSize: optional(shapeList),
  });

/**
 * Inverts max pooling: puts each element at the position it came from, with zeros elsewhere. If several elements have
 * one position, the last one is kept.
 *
 * @param x the values that `maxPool1d` returned: [batch, channels, length], or without a batch
 * @param indices the indices that it returned with `returnIndices`
 * @param kernelSize the window size: one for all axes, or one for each
 *
 * @example
 * maxUnpool1d(tensor([[[3, 5]]]), tensor([[[1n, 3n]]]), 2); // float32 [[[0, 3, 0, 5]]]
 *
 * @throws {ShapeError} if shapes do not match, and `indexOutOfRange` (on Metal, when a result is read).
 * @throws {DTypeError} if x is not a float, or indices are not integers. @throws {ArgumentError} for sizes below 1.
 */
export function maxUnpool1d<D extends DType>(
  x: Tensor<D>,
  indices: Tensor<IndexDType>,
  kernelSize: PerAxis,
  ...options: MaxUnpoolArguments
): Tensor<D>;
export function maxUnpool1d(...values: unknown[]): Tensor {
  return maxUnpool("maxUnpool1d", maxUnpool1dParameters(values), 1);
}
const maxUnpool1dParameters = unpoolParameters("maxUnpool1d");

/**
 * Inverts max pooling over two axes: see {@link maxUnpool1d}.
 *
 * @param x [batch, channels, height, width], or without a batch
 *
 * @example
 * maxUnpool2d(tensor([[[[5]]]]), tensor([[[[3n]]]]), 2); // float32 [[[[0, 0], [0, 5]]]]
 */
export function maxUnpool2d<D extends DType>(
  x: Tensor<D>,
  indices: Tensor<IndexDType>,
  kernelSize: PerAxis,
  ...options: MaxUnpoolArguments
): Tensor<D>;
export function maxUnpool2d(...values: unknown[]): Tensor {
  return maxUnpool("maxUnpool2d", maxUnpool2dParameters(values), 2);
}
const maxUnpool2dParameters = unpoolParameters("maxUnpool2d");

/**
 * Inverts max pooling over three axes: see {@link maxUnpool1d}.
 *
 * @param x [batch, channels, depth, height, width], or without a batch
 *
 * @example
 * maxUnpool3d(tensor([[[[[5]]]]]), tensor([[[[[1n]]]]]), [1, 1, 2]); // float32 [[[[[0, 5]]]]]
 */
export function maxUnpool3d<D extends DType>(
  x: Tensor<D>,
  indices: Tensor<IndexDType>,
  kernelSize: PerAxis,
  ...options: MaxUnpoolArguments
): Tensor<D>;
export function maxUnpool3d(...values: unknown[]): Tensor {
  return maxUnpool("maxUnpool3d", maxUnpool3dParameters(values), 3);
}
const maxUnpool3dParameters = unpoolParameters("maxUnpool3d");

function maxUnpool(
  operation: string,
  { x, indices, ...given }: ReturnType<ReturnType<typeof unpoolParameters>>,
  rank: number,
): Tensor {
  checkAxes(operation, x, rank);
  if (!sameShape(x.shape, indices.shape))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected indices to have the shape of x ${x.describe()}, got ${indices.describe()}`,
    );
  const lead = x.shape.slice(0, -rank);
  const sizes = unpooledSizes(operation, x, given, rank);
  const shape = checkShape(operation, [...lead, ...sizes]);
  return underName(operation, () =>
    tidy(() => {
      if (fusesUnpool(x, indices)) return unpooled(operation, x, indices, shape, rank);
      const flat = <D extends DType>(each: Tensor<D>): Tensor<D> =>
        reshape(each, [elementCount(lead), elementCount(each.shape.slice(-rank))]);
      const whole = expand(filled([1, 1], x.dtype, 0, operation), [elementCount(lead), elementCount(sizes)]);
      return reshape(scatterAlong(operation, whole, flat(indices), flat(x), 1), shape);
    }),
  );
}

function unpooledSizes(
  operation: string,
  x: Tensor,
  given: {
    kernelSize: PerAxis;
    stride: PerAxis | undefined;
    padding: PerAxis;
    outputSize: readonly number[] | undefined;
  },
  rank: number,
): number[] {
  const kernel = alongAxes(operation, "kernelSize", given.kernelSize, rank, 1);
  const stride = given.stride === undefined ? kernel : alongAxes(operation, "stride", given.stride, rank, 1);
  const padding = alongAxes(operation, "padding", given.padding, rank, 0);
  const input = x.shape.slice(-rank);
  const least = input.map((size, axis) => (size - 1) * stride[axis] - 2 * padding[axis] + kernel[axis]);
  if (given.outputSize === undefined) return least;
  const sizes = given.outputSize.length === x.rank ? given.outputSize.slice(-rank) : given.outputSize;
  const list = alongAxes(operation, "outputSize", sizes, rank, 1);
  if (list.some((size, axis) => size <= least[axis] - stride[axis] || size >= least[axis] + stride[axis]))
    throw new ShapeError(
      operation,
      "invalidSize",
      `expected outputSize to differ from [${least.join(", ")}] by less than a stride, got [${list.join(", ")}]`,
    );
  return list;
}
