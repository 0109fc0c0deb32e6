/** Convolutions as layers. */
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
import type { Tensor } from "../../tensor/tensor.ts";
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

/** What a convolution is made of; `leading` are the first two sizes of its weight. */
type Parts<Options> = readonly [
  sizes: { readonly inChannels: number; readonly outChannels: number; readonly kernelSize: readonly number[] },
  leading: readonly [first: number, second: number],
  options: Options,
  layer: LayerOptions & { readonly bias: boolean },
];

/** What all of them have in common: their sizes, a weight and a bias. */
abstract class Convolution<Options extends object> extends Module<[x: Tensor], Tensor> {
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernelSize: readonly number[];
  /** What the operation is called with. */
  readonly options: Readonly<Options>;
  readonly weight: Tensor;
  readonly bias: Tensor | null;

  constructor(...[{ inChannels, outChannels, kernelSize }, leading, options, { bias, ...layer }]: Parts<Options>) {
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

/** How the constructor of a convolution along so many axes reads its arguments. */
function convParts(operation: string, axes: number): (values: readonly unknown[]) => Parts<ConvolutionOptions> {
  const read = parameters(operation, {
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
  return (values) => {
    const { inChannels, outChannels, kernelSize, stride, padding, dilation, groups, ...layer } = read(values);
    const sizes = { inChannels, outChannels, kernelSize: alongAxes(operation, "kernelSize", kernelSize, axes, 1) };
    checkGroups(operation, groups, inChannels, outChannels);
    return [sizes, [outChannels, inChannels / groups], { stride, padding, dilation, groups }, layer];
  };
}

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
    super(...conv1dParts(values));
  }

  /** @param x [batch, inChannels, length], or without a batch */
  override forward(x: Tensor): Tensor {
    return conv1d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const conv1dParts = convParts("Conv1d", 1);

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
    super(...conv2dParts(values));
  }

  /** @param x [batch, inChannels, height, width], or without a batch */
  override forward(x: Tensor): Tensor {
    return conv2d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const conv2dParts = convParts("Conv2d", 2);

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
    super(...conv3dParts(values));
  }

  /** @param x [batch, inChannels, depth, height, width], or without a batch */
  override forward(x: Tensor): Tensor {
    return conv3d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const conv3dParts = convParts("Conv3d", 3);

/** The same for transposed ones, whose weight begins with the channels of x. */
function transposedParts(
  operation: string,
  axes: number,
): (values: readonly unknown[]) => Parts<TransposedConvolutionOptions> {
  const read = parameters(operation, {
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
  return (values) => {
    const { inChannels, outChannels, kernelSize, ...given } = read(values);
    const { stride, padding, outputPadding, groups, dilation, ...layer } = given;
    const sizes = { inChannels, outChannels, kernelSize: alongAxes(operation, "kernelSize", kernelSize, axes, 1) };
    checkGroups(operation, groups, inChannels, outChannels);
    const options = { stride, padding, outputPadding, groups, dilation };
    return [sizes, [inChannels, outChannels / groups], options, layer];
  };
}

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
    super(...convTranspose1dParts(values));
  }

  /** @param x [batch, inChannels, length], or without a batch */
  override forward(x: Tensor): Tensor {
    return convTranspose1d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const convTranspose1dParts = transposedParts("ConvTranspose1d", 1);

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
    super(...convTranspose2dParts(values));
  }

  /** @param x [batch, inChannels, height, width], or without a batch */
  override forward(x: Tensor): Tensor {
    return convTranspose2d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const convTranspose2dParts = transposedParts("ConvTranspose2d", 2);

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
    super(...convTranspose3dParts(values));
  }

  /** @param x [batch, inChannels, depth, height, width], or without a batch */
  override forward(x: Tensor): Tensor {
    return convTranspose3d(x, this.weight, { ...this.options, bias: this.bias ?? undefined });
  }
}
const convTranspose3dParts = transposedParts("ConvTranspose3d", 3);
