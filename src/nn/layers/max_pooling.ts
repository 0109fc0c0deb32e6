/** Largest elements of windows by the size of the result as layers, and what puts largest elements back. */
import { flag } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import type { IndexDType } from "../../ops/indexing/indices.ts";
import {
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  adaptiveMaxPool3d,
  type MaxUnpoolOptions,
  maxUnpool1d,
  maxUnpool2d,
  maxUnpool3d,
} from "../../ops/pooling/adaptive_max_pool.ts";
import { type FractionalMaxPoolOptions, fractionalMaxPool2d } from "../../ops/pooling/fractional_max_pool.ts";
import { aGenerator } from "../../ops/random/distribution.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Pooled, Pooling } from "./pooling.ts";

/** Options of {@link AdaptiveMaxPool1d} and its like. */
export interface AdaptiveMaxPoolLayerOptions<Indices extends boolean = boolean> {
  /** Whether `forward` gives the places of the largest elements too. Default false. */
  returnIndices?: Indices | undefined;
}

type AdaptiveArguments<Indices extends boolean> = Given<AdaptiveMaxPoolLayerOptions<Indices>, ["returnIndices"]>;
const adaptiveParameters = (operation: string) =>
  parameters(operation, { outputSize: operand(perAxis), returnIndices: optional(flag, false) });

/** The largest elements of windows of which a given number comes out: `adaptiveMaxPool1d`. */
export class AdaptiveMaxPool1d<Indices extends boolean = false> extends Pooling<
  AdaptiveMaxPoolLayerOptions,
  Pooled<Indices>
> {
  constructor(outputSize: PerAxis, ...options: AdaptiveArguments<Indices>);
  constructor(...values: unknown[]) {
    const { outputSize, ...options } = adaptive1dParameters(values);
    super(outputSize, options);
  }

  override forward(x: Tensor): Pooled<Indices> {
    return adaptiveMaxPool1d(x, this.size, this.options) as Pooled<Indices>;
  }
}
const adaptive1dParameters = adaptiveParameters("AdaptiveMaxPool1d");

/** The largest elements of windows of which a given number comes out: `adaptiveMaxPool2d`. */
export class AdaptiveMaxPool2d<Indices extends boolean = false> extends Pooling<
  AdaptiveMaxPoolLayerOptions,
  Pooled<Indices>
> {
  constructor(outputSize: PerAxis, ...options: AdaptiveArguments<Indices>);
  constructor(...values: unknown[]) {
    const { outputSize, ...options } = adaptive2dParameters(values);
    super(outputSize, options);
  }

  override forward(x: Tensor): Pooled<Indices> {
    return adaptiveMaxPool2d(x, this.size, this.options) as Pooled<Indices>;
  }
}
const adaptive2dParameters = adaptiveParameters("AdaptiveMaxPool2d");

/** The largest elements of windows of which a given number comes out: `adaptiveMaxPool3d`. */
export class AdaptiveMaxPool3d<Indices extends boolean = false> extends Pooling<
  AdaptiveMaxPoolLayerOptions,
  Pooled<Indices>
> {
  constructor(outputSize: PerAxis, ...options: AdaptiveArguments<Indices>);
  constructor(...values: unknown[]) {
    const { outputSize, ...options } = adaptive3dParameters(values);
    super(outputSize, options);
  }

  override forward(x: Tensor): Pooled<Indices> {
    return adaptiveMaxPool3d(x, this.size, this.options) as Pooled<Indices>;
  }
}
const adaptive3dParameters = adaptiveParameters("AdaptiveMaxPool3d");

/** Options of {@link FractionalMaxPool2d}: either `outputSize` or `outputRatio` says how much comes out. */
export interface FractionalMaxPoolLayerOptions<Indices extends boolean = boolean>
  extends Omit<FractionalMaxPoolOptions, "returnIndices" | "randomSamples"> {
  /** Whether `forward` gives the places of the largest elements too. Default false. */
  returnIndices?: Indices | undefined;
}

/**
 * The largest elements of windows that move by steps of changing size, drawn in each call: `fractionalMaxPool2d`.
 *
 * @example
 * new FractionalMaxPool2d(3, { outputRatio: 0.5 }).forward(randn([1, 2, 9, 9])); // [1, 2, 4, 4]
 */
export class FractionalMaxPool2d<Indices extends boolean = false> extends Pooling<
  FractionalMaxPoolLayerOptions,
  Pooled<Indices>
> {
  constructor(
    kernelSize: PerAxis,
    ...options: Given<FractionalMaxPoolLayerOptions<Indices>, ["outputSize", "outputRatio", "returnIndices"]>
  );
  constructor(...values: unknown[]) {
    const { kernelSize, ...options } = fractionalParameters(values);
    super(kernelSize, options);
  }

  override forward(x: Tensor): Pooled<Indices> {
    return fractionalMaxPool2d(x, this.size, this.options) as Pooled<Indices>;
  }
}
const fractionalParameters = parameters("FractionalMaxPool2d", {
  kernelSize: operand(perAxis),
  outputSize: optional(perAxis),
  outputRatio: optional(perAxis),
  returnIndices: optional(flag, false),
  generator: named(aGenerator),
});

/** Options of {@link MaxUnpool1d} and its like. */
export type MaxUnpoolLayerOptions = Pick<MaxUnpoolOptions, "stride" | "padding">;

type UnpoolArguments = [x: Tensor, indices: Tensor<IndexDType>, outputSize?: readonly number[]];
const unpoolParameters = (operation: string) =>
  parameters(operation, {
    kernelSize: operand(perAxis),
    stride: optional(perAxis),
    padding: optional(perAxis, 0),
  });

/** The elements of a max pooling where they came from, and zeros elsewhere: `maxUnpool1d`. */
export class MaxUnpool1d extends Pooling<MaxUnpoolLayerOptions, Tensor, UnpoolArguments> {
  constructor(kernelSize: PerAxis, ...options: Given<MaxUnpoolLayerOptions, ["stride", "padding"]>);
  constructor(...values: unknown[]) {
    const { kernelSize, ...options } = unpool1dParameters(values);
    super(kernelSize, options);
  }

  override forward(x: Tensor, indices: Tensor<IndexDType>, outputSize?: readonly number[]): Tensor {
    return maxUnpool1d(x, indices, this.size, { ...this.options, outputSize });
  }
}
const unpool1dParameters = unpoolParameters("MaxUnpool1d");

/** The elements of a max pooling where they came from, and zeros elsewhere: `maxUnpool2d`. */
export class MaxUnpool2d extends Pooling<MaxUnpoolLayerOptions, Tensor, UnpoolArguments> {
  constructor(kernelSize: PerAxis, ...options: Given<MaxUnpoolLayerOptions, ["stride", "padding"]>);
  constructor(...values: unknown[]) {
    const { kernelSize, ...options } = unpool2dParameters(values);
    super(kernelSize, options);
  }

  override forward(x: Tensor, indices: Tensor<IndexDType>, outputSize?: readonly number[]): Tensor {
    return maxUnpool2d(x, indices, this.size, { ...this.options, outputSize });
  }
}
const unpool2dParameters = unpoolParameters("MaxUnpool2d");

/** The elements of a max pooling where they came from, and zeros elsewhere: `maxUnpool3d`. */
export class MaxUnpool3d extends Pooling<MaxUnpoolLayerOptions, Tensor, UnpoolArguments> {
  constructor(kernelSize: PerAxis, ...options: Given<MaxUnpoolLayerOptions, ["stride", "padding"]>);
  constructor(...values: unknown[]) {
    const { kernelSize, ...options } = unpool3dParameters(values);
    super(kernelSize, options);
  }

  override forward(x: Tensor, indices: Tensor<IndexDType>, outputSize?: readonly number[]): Tensor {
    return maxUnpool3d(x, indices, this.size, { ...this.options, outputSize });
  }
}
const unpool3dParameters = unpoolParameters("MaxUnpool3d");
