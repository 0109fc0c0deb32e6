/** Transposed convolutions: the adjoints of convolutions. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { type DType, isComplex } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { ofBatch } from "./batch.ts";
import { convolveBack } from "./bilinear.ts";
import { ofParts } from "./complex.ts";
import {
  alongAxes,
  checkBias,
  checkGroups,
  checkOperands,
  checkRanks,
  type Geometry,
  type PerAxis,
  perAxis,
  spanOf,
} from "./geometry.ts";

/** Options of {@link convTranspose1d}, {@link convTranspose2d} and {@link convTranspose3d}. */
export interface TransposedConvolutionOptions {
  /** A vector with one element for each output channel, added to the result. */
  bias?: Tensor | undefined;
  /** Step of the kernel in elements, for all axes or for each. Default 1. */
  stride?: PerAxis | undefined;
  /** The number of elements removed before and after the result, for all axes or for each. Default 0. */
  padding?: PerAxis | undefined;
  /** The number of elements added at the end of the result, below the larger of stride and dilation. Default 0. */
  outputPadding?: PerAxis | undefined;
  /** The number of groups of channels and outputs. Default 1. */
  groups?: number | undefined;
  /** Distance between kernel elements, for all axes or for each. Default 1. */
  dilation?: PerAxis | undefined;
}

/** Arguments of {@link TransposedConvolutionOptions}: in an object or by position. */
export type TransposedConvolutionArguments = Given<
  TransposedConvolutionOptions,
  ["bias", "stride", "padding", "outputPadding", "groups", "dilation"]
>;

const transposedParameters = (operation: string) =>
  parameters(operation, {
    x: operand(aTensor),
    weight: operand(aTensor),
    bias: optional(aTensor),
    stride: optional(perAxis, 1),
    padding: optional(perAxis, 0),
    outputPadding: optional(perAxis, 0),
    groups: optional(someNumber, 1),
    dilation: optional(perAxis, 1),
  });
type Call = ReturnType<ReturnType<typeof transposedParameters>>;

/**
 * Computes the adjoint of `conv1d` with the same options: each element of x adds the kernel, multiplied by it, to the
 * result. PyTorch's `conv_transpose1d`. The result has (length − 1) · stride − 2 · padding + dilation · (width − 1) +
 * outputPadding + 1 elements.
 *
 * @param x [batch, channels, length], or without a batch
 * @param weight [channels, outputs / groups, width], of x's dtype
 * @returns [batch, outputs, length'] in x's dtype
 *
 * @example
 * convTranspose1d(tensor([[[1, 2]]]), tensor([[[1, 1]]])); // float32 [[[1, 3, 2]]]
 *
 * @throws {ShapeError} if shapes do not match, or the result would have a negative size.
 * @throws {DTypeError} if dtypes differ or are bool.
 * @throws {ArgumentError} for a stride, dilation or number of groups below 1, or too much `outputPadding`.
 */
export function convTranspose1d<D extends DType>(
  x: Tensor<D>,
  weight: Tensor<D>,
  ...options: TransposedConvolutionArguments
): Tensor<D>;
export function convTranspose1d(...values: unknown[]): Tensor {
  return transposed("convTranspose1d", transpose1dParameters(values), 1);
}
const transpose1dParameters = transposedParameters("convTranspose1d");

/**
 * Computes the adjoint of `conv2d`; see {@link convTranspose1d}.
 *
 * @param x [batch, channels, height, width], or without a batch
 * @param weight [channels, outputs / groups, rows, columns]
 *
 * @example
 * convTranspose2d(ones([1, 1, 1, 1]), tensor([[[[1, 2], [3, 4]]]])); // float32 [[[[1, 2], [3, 4]]]]
 */
export function convTranspose2d<D extends DType>(
  x: Tensor<D>,
  weight: Tensor<D>,
  ...options: TransposedConvolutionArguments
): Tensor<D>;
export function convTranspose2d(...values: unknown[]): Tensor {
  return transposed("convTranspose2d", transpose2dParameters(values), 2);
}
const transpose2dParameters = transposedParameters("convTranspose2d");

/**
 * Computes the adjoint of `conv3d`; see {@link convTranspose1d}.
 *
 * @param x [batch, channels, depth, height, width], or without a batch
 * @param weight [channels, outputs / groups, depth, rows, columns]
 *
 * @example
 * convTranspose3d(ones([1, 1, 1, 1, 1]), ones([1, 1, 1, 1, 2])); // float32 [[[[[1, 1]]]]]
 */
export function convTranspose3d<D extends DType>(
  x: Tensor<D>,
  weight: Tensor<D>,
  ...options: TransposedConvolutionArguments
): Tensor<D>;
export function convTranspose3d(...values: unknown[]): Tensor {
  return transposed("convTranspose3d", transpose3dParameters(values), 3);
}
const transpose3dParameters = transposedParameters("convTranspose3d");

function transposed(operation: string, call: Call, rank: number): Tensor {
  const { x, weight, bias } = call;
  if (isComplex(x.dtype)) return ofParts(operation, call, (own) => transposed(operation, { ...call, ...own }, rank));
  checkOperands(operation, bias ? [x, weight, bias] : [x, weight], { takesIntegers: true });
  checkRanks(operation, x, weight, rank);
  const geometry = geometryOf(operation, call, rank);
  checkBias(operation, bias, weight.shape[1] * call.groups);
  return ofBatch(operation, call, rank, (batch, kernel, dtype) => convolveBack(batch, kernel, geometry, dtype));
}

/** Returns the geometry of the convolution whose adjoint is computed. Its result has x's shape. */
function geometryOf(operation: string, { x, weight, ...call }: Call, rank: number): Geometry {
  const stride = alongAxes(operation, "stride", call.stride, rank, 1);
  const dilation = alongAxes(operation, "dilation", call.dilation, rank, 1);
  const padding = alongAxes(operation, "padding", call.padding, rank, 0);
  const more = alongAxes(operation, "outputPadding", call.outputPadding, rank, 0);
  const channels = x.shape.at(-rank - 1)!;
  checkGroups(operation, call.groups, channels, channels);
  if (weight.shape[0] !== channels)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected a weight for ${channels} channels, those of x ${x.describe()}, got ${weight.describe()}`,
    );
  for (const [axis, extra] of more.entries())
    if (extra >= Math.max(stride[axis], dilation[axis]))
      throw new ArgumentError(
        operation,
        "invalidPadding",
        `expected outputPadding to be below the stride or the dilation, got ${extra}`,
      );
  const kernel = weight.shape.slice(2);
  const output = x.shape.slice(-rank);
  const input = output.map((size, axis) => {
    const span = spanOf(kernel[axis], dilation[axis]);
    const result = (size - 1) * stride[axis] + span + more[axis] - 2 * padding[axis];
    if (result >= 0) return result;
    throw new ShapeError(
      operation,
      "nothingLeft",
      `expected less padding than ${padding[axis]}: the result would have size ${result}`,
    );
  });
  const both = padding.map((amount) => [amount, amount] as const);
  return { stride, dilation, padding: both, groups: call.groups, kernel, input, output };
}
