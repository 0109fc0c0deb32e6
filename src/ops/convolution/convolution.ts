/** Convolutions along one, two and three axes. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { type DType, isComplex } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { ofBatch } from "./batch.ts";
import { convolve } from "./bilinear.ts";
import { ofParts } from "./complex.ts";
import {
  alongAxes,
  checkBias,
  checkGroups,
  checkOperands,
  checkRanks,
  type Geometry,
  outputSize,
  type PerAxis,
  paddingKind,
  perAxis,
  spanOf,
} from "./geometry.ts";

/** Options of {@link conv1d}, {@link conv2d} and {@link conv3d}. */
export interface ConvolutionOptions {
  /** A vector with one element for each output channel, added to the result. */
  bias?: Tensor | undefined;
  /** Step of the kernel in elements, for all axes or for each. Default 1. */
  stride?: PerAxis | undefined;
  /**
   * The number of zeros before and after x, for all axes or for each. `"valid"` is none; `"same"` keeps the shape and
   * requires a stride of 1. Default 0.
   */
  padding?: PerAxis | "same" | "valid" | undefined;
  /** Distance between kernel elements, for all axes or for each. Default 1. */
  dilation?: PerAxis | undefined;
  /** The number of groups of channels and outputs; each group is convolved separately. Default 1. */
  groups?: number | undefined;
}

/** Arguments of {@link ConvolutionOptions}: in an object or by position. */
export type ConvolutionArguments = Given<ConvolutionOptions, ["bias", "stride", "padding", "dilation", "groups"]>;

const convolutionParameters = (operation: string) =>
  parameters(operation, {
    x: operand(aTensor),
    weight: operand(aTensor),
    bias: optional(aTensor),
    stride: optional(perAxis, 1),
    padding: optional(paddingKind, 0),
    dilation: optional(perAxis, 1),
    groups: optional(someNumber, 1),
  });
type Call = ReturnType<ReturnType<typeof convolutionParameters>>;

/**
 * Computes a convolution along one axis; as in PyTorch, the kernel is not flipped: y[n, o, p] = bias[o] + Σ weight[o,
 * c, k] x[n, c, p · stride + k · dilation − padding], summed over the channels c in the group of o and the kernel
 * positions k. Sums are in float32, or in float64 for float64.
 *
 * @param x [batch, channels, length], or without a batch
 * @param weight [outputs, channels / groups, width], of x's dtype
 * @returns [batch, outputs, length'] in x's dtype
 *
 * @example
 * conv1d(tensor([[[1, 2, 3]]]), tensor([[[1, 1]]])); // float32 [[[3, 5]]]
 *
 * @throws {ShapeError} if shapes do not match, or the kernel is larger than the padded x.
 * @throws {DTypeError} if dtypes differ or are bool.
 * @throws {ArgumentError} for a stride, dilation or number of groups below 1.
 */
export function conv1d<D extends DType>(x: Tensor<D>, weight: Tensor<D>, ...options: ConvolutionArguments): Tensor<D>;
export function conv1d(...values: unknown[]): Tensor {
  return convolution("conv1d", conv1dParameters(values), 1);
}
const conv1dParameters = convolutionParameters("conv1d");

/**
 * Computes a convolution along two axes; see {@link conv1d}.
 *
 * @param x [batch, channels, height, width], or without a batch
 * @param weight [outputs, channels / groups, rows, columns]
 *
 * @example
 * conv2d(tensor([[[[1, 2], [3, 4]]]]), tensor([[[[1, 1], [1, 1]]]])); // float32 [[[[10]]]]
 */
export function conv2d<D extends DType>(x: Tensor<D>, weight: Tensor<D>, ...options: ConvolutionArguments): Tensor<D>;
export function conv2d(...values: unknown[]): Tensor {
  return convolution("conv2d", conv2dParameters(values), 2);
}
const conv2dParameters = convolutionParameters("conv2d");

/**
 * Computes a convolution along three axes; see {@link conv1d}.
 *
 * @param x [batch, channels, depth, height, width], or without a batch
 * @param weight [outputs, channels / groups, depth, rows, columns]
 *
 * @example
 * conv3d(ones([1, 1, 2, 2, 2]), ones([1, 1, 2, 2, 2])); // float32 [[[[[8]]]]]
 */
export function conv3d<D extends DType>(x: Tensor<D>, weight: Tensor<D>, ...options: ConvolutionArguments): Tensor<D>;
export function conv3d(...values: unknown[]): Tensor {
  return convolution("conv3d", conv3dParameters(values), 3);
}
const conv3dParameters = convolutionParameters("conv3d");

/** Zeros before and after each axis. */
export type Pads = readonly (readonly [before: number, after: number])[];

/** @internal As {@link conv1d}, {@link conv2d} and {@link conv3d}, with different padding before and after an axis. */
export const convolutionWithPads = (call: Omit<Call, "padding"> & { readonly padding: Pads }): Tensor =>
  convolution(`conv${call.padding.length}d`, call, call.padding.length);

function convolution(
  operation: string,
  call: Omit<Call, "padding"> & { readonly padding: Call["padding"] | Pads },
  rank: number,
): Tensor {
  const { x, weight, bias } = call;
  if (isComplex(x.dtype)) return ofParts(operation, call, (own) => convolution(operation, { ...call, ...own }, rank));
  checkOperands(operation, bias ? [x, weight, bias] : [x, weight], { takesIntegers: true });
  checkRanks(operation, x, weight, rank);
  const geometry = geometryOf(operation, call, rank);
  checkBias(operation, bias, weight.shape[0]);
  return ofBatch(operation, call, rank, (batch, kernel, dtype) => convolve(batch, kernel, geometry, dtype));
}

function geometryOf(
  operation: string,
  { x, weight, ...call }: Parameters<typeof convolution>[1],
  rank: number,
): Geometry {
  const stride = alongAxes(operation, "stride", call.stride, rank, 1);
  const dilation = alongAxes(operation, "dilation", call.dilation, rank, 1);
  const kernel = weight.shape.slice(2);
  const input = x.shape.slice(-rank);
  const channels = x.shape.at(-rank - 1)!;
  checkGroups(operation, call.groups, channels, weight.shape[0]);
  if (weight.shape[1] * call.groups !== channels)
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected ${channels / call.groups} channels in the weight, those of x divided by ${call.groups} groups, got ` +
        `${weight.describe()} for ${x.describe()}`,
    );
  const spans = kernel.map((size, axis) => spanOf(size, dilation[axis]));
  const padding = paddingOf(operation, call.padding, spans, stride);
  const output = input.map((size, axis) =>
    outputSize(operation, {
      size,
      span: spans[axis],
      stride: stride[axis],
      padding: padding[axis][0] + padding[axis][1],
    }),
  );
  return { stride, dilation, padding, groups: call.groups, kernel, input, output };
}

const isPads = (padding: PerAxis | string | Pads): padding is Pads =>
  Array.isArray(padding) && Array.isArray(padding[0]);

function paddingOf(
  operation: string,
  padding: PerAxis | "same" | "valid" | Pads,
  spans: readonly number[],
  stride: readonly number[],
): Pads {
  if (isPads(padding)) return padding;
  if (padding === "valid") return spans.map(() => [0, 0]);
  if (padding !== "same")
    return alongAxes(operation, "padding", padding, spans.length, 0).map((amount) => [amount, amount]);
  if (stride.some((step) => step !== 1))
    throw new ArgumentError(
      operation,
      "strideOfSame",
      `expected a stride of 1 with padding "same", got ${stride.join(", ")}`,
    );
  return spans.map((span) => [Math.floor((span - 1) / 2), Math.ceil((span - 1) / 2)]);
}
