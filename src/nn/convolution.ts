/** Convolutions as layers. */
import { flag } from "../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../core/parameters.ts";
import { type ConvolutionOptions, conv1d, conv2d, conv3d } from "../ops/convolution/convolution.ts";
import { alongAxes, checkGroups, type PerAxis, paddingKind, perAxis } from "../ops/convolution/geometry.ts";
import {
  convTranspose1d,
  convTranspose2d,
  convTranspose3d,
  type TransposedConvolutionOptions,
} from "../ops/convolution/transposed.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type LayerOptions, parameter, pytorchInitialization } from "./initialization.ts";
import { layerParameters, size } from "./kinds.ts";
import { Module } from "./module.ts";

/** Options of {@link Conv1d} and its like. */
export interface ConvOptions
  extends LayerOptions,
    Pick<ConvolutionOptions, "stride" | "padding" | "dilation" | "groups"> {
  /** Whether there is a bias. Default true. */
  bias?: boolean | undefined;
}

/** Options of {@link ConvTranspose1d} and its like. */
export interface ConvTransposeOptions extends Omit<ConvOptions, "padding"> {
  /** How many elements are left out before and after. Default 0. */
  padding?: PerAxis | undefined;
  /** How many elements the result has more at its end. Default 0. */
  outputPadding?: PerAxis | undefined;
}

/** What all of them have in common: their sizes, a weight and a bias. */
abstract class Convolution<Options extends object> extends Module<[x: Tensor], Tensor> {
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernelSize: readonly number[];
  /** What the operation is called with. */
  readonly options: Readonly<Options>;
  readonly weight: Tensor;
  readonly bias: Tensor | null;

  constructor(
    { inChannels, outChannels, kernelSize }: { inChannels: number; outChannels: number; kernelSize: readonly number[] },
    leading: readonly [first: number, second: number],
    options: Options,
    { bias, ...layer }: LayerOptions & { readonly bias: boolean },
  ) {
    super();
    this.inChannels = inChannels;
    this.outChannels = outChannels;
    this.kernelSize = Object.freeze([...kernelSize]);
    this.options = Object.freeze(options);
    // as PyTorch: uniform in ±1 / √(the elements of the weight that make up one sum)
    const terms = leading[1] * kernelSize.reduce((product, own) => product * own, 1);
    const start = layer.initialization ?? pytorchInitialization;
    const initialize = layer.initialization?.weight ?? pytorchInitialization.bias(terms);
    this.weight = parameter([...leading, ...kernelSize], initialize, layer);
    this.bias = bias ? parameter([outChannels], start.bias(terms), layer) : null;
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

const convParameters = (operation: string) =>
  parameters(operation, {
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

/**
 * A convolution with a weight that is trained: `conv1d`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [outChannels, inChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without |
 *
 * @example
 * new Conv1d(3, 8, 3, { padding: 1 }).forward(randn([2, 3, 5])); // [2, 8, 5]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} (forward) where x does not fit.
 */
export class Conv1d extends Convolution<ConvolutionOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: PerAxis,
    ...options: Given<ConvOptions, ["stride", "padding", "dilation", "groups", "bias"]>
  );
  constructor(...values: unknown[]) {
    const { inChannels, outChannels, kernelSize, stride, padding, dilation, groups, ...layer } =
      conv1dParameters(values);
    const kernel = alongAxes("Conv1d", "kernelSize", kernelSize, 1, 1);
    checkGroups("Conv1d", groups, inChannels, outChannels);
    const sizes = { inChannels, outChannels, kernelSize: kernel };
    super(sizes, [outChannels, inChannels / groups], { stride, padding, dilation, groups }, layer);
  }

  /** @param x [batch, inChannels, length], or without a batch */
  override forward(x: Tensor): Tensor {
    return conv1d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const conv1dParameters = convParameters("Conv1d");

/**
 * A convolution with a weight that is trained: `conv2d`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [outChannels, inChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without |
 *
 * @example
 * new Conv2d(3, 8, 3, { padding: 1 }).forward(randn([2, 3, 5, 5])); // [2, 8, 5, 5]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} (forward) where x does not fit.
 */
export class Conv2d extends Convolution<ConvolutionOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: PerAxis,
    ...options: Given<ConvOptions, ["stride", "padding", "dilation", "groups", "bias"]>
  );
  constructor(...values: unknown[]) {
    const { inChannels, outChannels, kernelSize, stride, padding, dilation, groups, ...layer } =
      conv2dParameters(values);
    const kernel = alongAxes("Conv2d", "kernelSize", kernelSize, 2, 1);
    checkGroups("Conv2d", groups, inChannels, outChannels);
    const sizes = { inChannels, outChannels, kernelSize: kernel };
    super(sizes, [outChannels, inChannels / groups], { stride, padding, dilation, groups }, layer);
  }

  /** @param x [batch, inChannels, height, width], or without a batch */
  override forward(x: Tensor): Tensor {
    return conv2d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const conv2dParameters = convParameters("Conv2d");

/**
 * A convolution with a weight that is trained: `conv3d`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [outChannels, inChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without |
 *
 * @example
 * new Conv3d(3, 8, 3, { padding: 1 }).forward(randn([2, 3, 5, 5, 5])); // [2, 8, 5, 5, 5]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} (forward) where x does not fit.
 */
export class Conv3d extends Convolution<ConvolutionOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: PerAxis,
    ...options: Given<ConvOptions, ["stride", "padding", "dilation", "groups", "bias"]>
  );
  constructor(...values: unknown[]) {
    const { inChannels, outChannels, kernelSize, stride, padding, dilation, groups, ...layer } =
      conv3dParameters(values);
    const kernel = alongAxes("Conv3d", "kernelSize", kernelSize, 3, 1);
    checkGroups("Conv3d", groups, inChannels, outChannels);
    const sizes = { inChannels, outChannels, kernelSize: kernel };
    super(sizes, [outChannels, inChannels / groups], { stride, padding, dilation, groups }, layer);
  }

  /** @param x [batch, inChannels, depth, height, width], or without a batch */
  override forward(x: Tensor): Tensor {
    return conv3d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const conv3dParameters = convParameters("Conv3d");

const transposeParameters = (operation: string) =>
  parameters(operation, {
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

/**
 * A transposed convolution with a weight that is trained: `convTranspose1d`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [inChannels, outChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without |
 *
 * @example
 * new ConvTranspose1d(8, 3, 2, { stride: 2 }).forward(randn([2, 8, 4])); // [2, 3, 8]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} (forward) where x does not fit.
 */
export class ConvTranspose1d extends Convolution<TransposedConvolutionOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: PerAxis,
    ...options: Given<ConvTransposeOptions, ["stride", "padding", "outputPadding", "groups", "bias", "dilation"]>
  );
  constructor(...values: unknown[]) {
    const given = convTranspose1dParameters(values);
    const { inChannels, outChannels, kernelSize, stride, padding, outputPadding, groups, dilation, ...layer } = given;
    const kernel = alongAxes("ConvTranspose1d", "kernelSize", kernelSize, 1, 1);
    checkGroups("ConvTranspose1d", groups, inChannels, outChannels);
    const sizes = { inChannels, outChannels, kernelSize: kernel };
    const options = { stride, padding, outputPadding, groups, dilation };
    super(sizes, [inChannels, outChannels / groups], options, layer);
  }

  /** @param x [batch, inChannels, length], or without a batch */
  override forward(x: Tensor): Tensor {
    return convTranspose1d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const convTranspose1dParameters = transposeParameters("ConvTranspose1d");

/**
 * A transposed convolution with a weight that is trained: `convTranspose2d`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [inChannels, outChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without |
 *
 * @example
 * new ConvTranspose2d(8, 3, 2, { stride: 2 }).forward(randn([2, 8, 4, 4])); // [2, 3, 8, 8]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} (forward) where x does not fit.
 */
export class ConvTranspose2d extends Convolution<TransposedConvolutionOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: PerAxis,
    ...options: Given<ConvTransposeOptions, ["stride", "padding", "outputPadding", "groups", "bias", "dilation"]>
  );
  constructor(...values: unknown[]) {
    const given = convTranspose2dParameters(values);
    const { inChannels, outChannels, kernelSize, stride, padding, outputPadding, groups, dilation, ...layer } = given;
    const kernel = alongAxes("ConvTranspose2d", "kernelSize", kernelSize, 2, 1);
    checkGroups("ConvTranspose2d", groups, inChannels, outChannels);
    const sizes = { inChannels, outChannels, kernelSize: kernel };
    const options = { stride, padding, outputPadding, groups, dilation };
    super(sizes, [inChannels, outChannels / groups], options, layer);
  }

  /** @param x [batch, inChannels, height, width], or without a batch */
  override forward(x: Tensor): Tensor {
    return convTranspose2d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const convTranspose2dParameters = transposeParameters("ConvTranspose2d");

/**
 * A transposed convolution with a weight that is trained: `convTranspose3d`.
 *
 * | parameter | shape |
 * |---|---|
 * | `weight` | [inChannels, outChannels / groups, ...kernelSize] |
 * | `bias` | [outChannels]; null without |
 *
 * @example
 * new ConvTranspose3d(8, 3, 2, { stride: 2 }).forward(randn([2, 8, 4, 4, 4])); // [2, 3, 8, 8, 8]
 *
 * @throws {ArgumentError} for sizes below 1. @throws {ShapeError} (forward) where x does not fit.
 */
export class ConvTranspose3d extends Convolution<TransposedConvolutionOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: PerAxis,
    ...options: Given<ConvTransposeOptions, ["stride", "padding", "outputPadding", "groups", "bias", "dilation"]>
  );
  constructor(...values: unknown[]) {
    const given = convTranspose3dParameters(values);
    const { inChannels, outChannels, kernelSize, stride, padding, outputPadding, groups, dilation, ...layer } = given;
    const kernel = alongAxes("ConvTranspose3d", "kernelSize", kernelSize, 3, 1);
    checkGroups("ConvTranspose3d", groups, inChannels, outChannels);
    const sizes = { inChannels, outChannels, kernelSize: kernel };
    const options = { stride, padding, outputPadding, groups, dilation };
    super(sizes, [inChannels, outChannels / groups], options, layer);
  }

  /** @param x [batch, inChannels, depth, height, width], or without a batch */
  override forward(x: Tensor): Tensor {
    return convTranspose3d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const convTranspose3dParameters = transposeParameters("ConvTranspose3d");
