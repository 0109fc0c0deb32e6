/** Convolutions and transposed convolutions as layers. */
import { flag } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { type ConvolutionOptions, conv1d, conv2d, conv3d } from "../../ops/convolution/convolution.ts";
import { alongAxes, checkGroups, type PerAxis, paddingKind, perAxis } from "../../ops/convolution/geometry.ts";
import {
  convTranspose1d,
  convTranspose2d,
  convTranspose3d,
  type TransposedConvolutionOptions,
} from "../../ops/convolution/transposed.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type LayerOptions, parameter, pytorchInitialization } from "./initialization.ts";
import { layerParameters, size } from "./kinds.ts";
import { Module } from "./module.ts";
import { called } from "./module_of.ts";

/** Options of {@link Conv1d}, {@link Conv2d} and {@link Conv3d}. */
export interface ConvOptions
  extends LayerOptions,
    Pick<ConvolutionOptions, "stride" | "padding" | "dilation" | "groups"> {
  /** Whether the layer has a bias. Default true. */
  bias?: boolean | undefined;
}

/** Options of {@link ConvTranspose1d}, {@link ConvTranspose2d} and {@link ConvTranspose3d}. */
export interface ConvTransposeOptions extends Omit<ConvOptions, "padding"> {
  /** Number of elements removed at each end of the result. Default 0. */
  padding?: PerAxis | undefined;
  /** Number of elements added at the end of the result. Default 0. */
  outputPadding?: PerAxis | undefined;
}

/** Checked arguments of a constructor; further properties are the options of the operation. */
interface Call extends LayerOptions {
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernelSize: PerAxis;
  readonly groups: number;
  readonly bias: boolean;
}

/** @internal Base class of convolutions: sizes, a weight and a bias. */
export abstract class Convolution<Options extends object> extends Module<[x: Tensor], Tensor> {
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernelSize: readonly number[];
  /** The options that the operation is called with. */
  readonly options: Readonly<Options>;
  readonly weight: Tensor;
  readonly bias: Tensor | null;

  constructor(name: string, axes: number, isTransposed: boolean, call: Call) {
    super();
    const { inChannels, outChannels, kernelSize: size, bias, dtype, generator, initialization, ...options } = call;
    const layer = { dtype, generator, initialization };
    const kernelSize = alongAxes(name, "kernelSize", size, axes, 1);
    checkGroups(name, call.groups, inChannels, outChannels);
    this.inChannels = inChannels;
    this.outChannels = outChannels;
    this.kernelSize = Object.freeze([...kernelSize]);
    this.options = Object.freeze(options) as Readonly<Options>;
    const leading = isTransposed ? [inChannels, outChannels / call.groups] : [outChannels, inChannels / call.groups];
    // as in PyTorch: uniform in ±1 / √(number of terms in each sum)
    const terms = leading[1] * kernelSize.reduce((product, size) => product * size, 1);
    const initialize = initialization?.weight ?? pytorchInitialization.bias(terms);
    this.weight = parameter([...leading, ...kernelSize], initialize, layer);
    this.bias = bias ? parameter([outChannels], (initialization ?? pytorchInitialization).bias(terms), layer) : null;
  }

  /** @internal */
  override details(): string {
    const rest = Object.entries(this.options).filter(([name, value]) => String(value) !== DEFAULTS[name]);
    const sizes = [this.inChannels, this.outChannels, `[${this.kernelSize.join(", ")}]`];
    const given = rest.map(([name, value]) => `${name}: ${Array.isArray(value) ? `[${value.join(", ")}]` : value}`);
    return [...sizes, ...given, ...(this.bias ? [] : ["bias: false"])].join(", ");
  }
}

const DEFAULTS: Readonly<Record<string, string>> = {
  stride: "1",
  padding: "0",
  dilation: "1",
  groups: "1",
  outputPadding: "0",
};

/** @internal A convolution layer. */
export interface Conv extends Convolution<ConvolutionOptions> {
  /** @param x [batch, inChannels, …] or [inChannels, …], with one axis at the end for each axis of the kernel */
  forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  forward(x: Tensor): Tensor;
}

type ConvClass = new (
  inChannels: number,
  outChannels: number,
  kernelSize: PerAxis,
  ...options: Given<ConvOptions, ["stride", "padding", "dilation", "groups", "bias"]>
) => Conv;

/** Makes a class of convolutions with a kernel of `axes` axes. */
function convOf(name: string, axes: number, operation: typeof conv1d): ConvClass {
  const read = parameters(name, {
    inChannels: operand(size),
    outChannels: operand(size),
    kernelSize: operand(perAxis),
    stride: optional(perAxis, 1),
    padding: optional(paddingKind, 0),
    dilation: optional(perAxis, 1),
    groups: optional(size, 1),
    bias: optional(flag, true),
    ...layerParameters,
  });
  class OfAxes extends Convolution<ConvolutionOptions> {
    constructor(
      inChannels: number,
      outChannels: number,
      kernelSize: PerAxis,
      ...options: Given<ConvOptions, ["stride", "padding", "dilation", "groups", "bias"]>
    );
    constructor(...values: unknown[]) {
      super(name, axes, false, read(values));
    }

    /** @param x [batch, inChannels, …] or [inChannels, …], with one axis at the end for each axis of the kernel */
    override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
    override forward(x: Tensor): Tensor;
    override forward(x: Tensor): Tensor {
      return operation(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
    }
  }
  return called(name, OfAxes);
}

/**
 * Applies `conv1d` with a trained weight and bias.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [outChannels, inChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without a bias |
 *
 * @example
 * new Conv1d(3, 8, 3, { padding: 1 }).forward(randn([2, 3, 5])); // [2, 8, 5]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} in `forward`, for an unsuitable shape of x.
 */
export class Conv1d extends convOf("Conv1d", 1, conv1d) {}

/**
 * Applies `conv2d` with a trained weight and bias.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [outChannels, inChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without a bias |
 *
 * @example
 * new Conv2d(3, 8, 3, { padding: 1 }).forward(randn([2, 3, 5, 5])); // [2, 8, 5, 5]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} in `forward`, for an unsuitable shape of x.
 */
export class Conv2d extends convOf("Conv2d", 2, conv2d) {}

/**
 * Applies `conv3d` with a trained weight and bias.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [outChannels, inChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without a bias |
 *
 * @example
 * new Conv3d(3, 8, 3, { padding: 1 }).forward(randn([2, 3, 5, 5, 5])); // [2, 8, 5, 5, 5]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} in `forward`, for an unsuitable shape of x.
 */
export class Conv3d extends convOf("Conv3d", 3, conv3d) {}

/** @internal A transposed convolution layer. */
export interface ConvTranspose extends Convolution<TransposedConvolutionOptions> {
  /** @param x [batch, inChannels, …] or [inChannels, …], with one axis at the end for each axis of the kernel */
  forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  forward(x: Tensor): Tensor;
}

type ConvTransposeClass = new (
  inChannels: number,
  outChannels: number,
  kernelSize: PerAxis,
  ...options: Given<ConvTransposeOptions, ["stride", "padding", "outputPadding", "groups", "bias", "dilation"]>
) => ConvTranspose;

/** Makes a class of transposed convolutions with a kernel of `axes` axes. */
function convTransposeOf(name: string, axes: number, operation: typeof convTranspose1d): ConvTransposeClass {
  const read = parameters(name, {
    inChannels: operand(size),
    outChannels: operand(size),
    kernelSize: operand(perAxis),
    stride: optional(perAxis, 1),
    padding: optional(perAxis, 0),
    outputPadding: optional(perAxis, 0),
    groups: optional(size, 1),
    bias: optional(flag, true),
    dilation: optional(perAxis, 1),
    ...layerParameters,
  });
  class OfAxes extends Convolution<TransposedConvolutionOptions> {
    constructor(
      inChannels: number,
      outChannels: number,
      kernelSize: PerAxis,
      ...options: Given<ConvTransposeOptions, ["stride", "padding", "outputPadding", "groups", "bias", "dilation"]>
    );
    constructor(...values: unknown[]) {
      super(name, axes, true, read(values));
    }

    /** @param x [batch, inChannels, …] or [inChannels, …], with one axis at the end for each axis of the kernel */
    override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
    override forward(x: Tensor): Tensor;
    override forward(x: Tensor): Tensor {
      return operation(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
    }
  }
  return called(name, OfAxes);
}

/**
 * Applies `convTranspose1d` with a trained weight and bias.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [inChannels, outChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without a bias |
 *
 * @example
 * new ConvTranspose1d(8, 3, 2, { stride: 2 }).forward(randn([2, 8, 4])); // [2, 3, 8]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} in `forward`, for an unsuitable shape of x.
 */
export class ConvTranspose1d extends convTransposeOf("ConvTranspose1d", 1, convTranspose1d) {}

/**
 * Applies `convTranspose2d` with a trained weight and bias.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [inChannels, outChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without a bias |
 *
 * @example
 * new ConvTranspose2d(8, 3, 2, { stride: 2 }).forward(randn([2, 8, 4, 4])); // [2, 3, 8, 8]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} in `forward`, for an unsuitable shape of x.
 */
export class ConvTranspose2d extends convTransposeOf("ConvTranspose2d", 2, convTranspose2d) {}

/**
 * Applies `convTranspose3d` with a trained weight and bias.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [inChannels, outChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without a bias |
 *
 * @example
 * new ConvTranspose3d(8, 3, 2, { stride: 2 }).forward(randn([2, 8, 4, 4, 4])); // [2, 3, 8, 8, 8]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} in `forward`, for an unsuitable shape of x.
 */
export class ConvTranspose3d extends convTransposeOf("ConvTranspose3d", 3, convTranspose3d) {}
