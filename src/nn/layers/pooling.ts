/** Pooling as layers. */
import { aNumber, flag, someNumber } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
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
import {
  type AvgPoolOptions,
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveAvgPool3d,
  avgPool1d,
  avgPool2d,
  avgPool3d,
} from "../../ops/pooling/average_pool.ts";
import { type FractionalMaxPoolOptions, fractionalMaxPool2d } from "../../ops/pooling/fractional_max_pool.ts";
import { type LpPoolOptions, lpPool1d, lpPool2d, lpPool3d } from "../../ops/pooling/lp_pool.ts";
import {
  type MaxPoolOptions,
  maxPool1d,
  maxPool2d,
  maxPool3d,
  type PooledWithIndices,
} from "../../ops/pooling/max_pool.ts";
import { aGenerator } from "../../ops/random/distribution.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";
import { called, listed } from "./module_of.ts";

/** @internal A layer without weights, with a size. */
export abstract class Pooling<
  Options extends object,
  Result = Tensor,
  Arguments extends readonly unknown[] = [x: Tensor],
> extends Module<Arguments, Result> {
  /** The options with which the operation is called. */
  readonly options: Readonly<Options>;
  /** The size of windows, or of the result. */
  readonly size: PerAxis;

  constructor(size: PerAxis, options: Options) {
    super();
    this.options = Object.freeze(options);
    this.size = size;
  }

  /** @internal */
  override details(): string {
    const size = typeof this.size === "number" ? String(this.size) : `[${this.size.join(", ")}]`;
    return [size, listed(this.options)].filter(Boolean).join(", ");
  }
}

/** What a largest element of each window comes with: its place too, where `returnIndices` is true. */
export type Pooled<Indices extends boolean> = Indices extends true ? PooledWithIndices<DType> : Tensor;

/** Options of {@link MaxPool1d} and its like. */
export interface MaxPoolLayerOptions<Indices extends boolean = boolean> extends MaxPoolOptions {
  /** Whether `forward` gives the places of the largest elements too, as `MaxUnpool` takes. Default false. */
  returnIndices?: Indices | undefined;
}

/** @internal A max pooling. */
export interface MaxPool<Indices extends boolean> extends Pooling<MaxPoolLayerOptions, Pooled<Indices>> {
  forward(x: Tensor): Pooled<Indices>;
}

interface MaxPoolClass {
  new <Indices extends boolean = false>(
    kernelSize: PerAxis,
    options: MaxPoolLayerOptions<Indices> & { returnIndices: Indices },
  ): MaxPool<Indices>;
  new <Indices extends boolean = false>(
    kernelSize: PerAxis,
    ...options: Given<MaxPoolOptions, ["stride", "padding", "dilation", "ceilMode"]>
  ): MaxPool<Indices>;
}

/** The class of a max pooling along as many axes as its operation. */
function maxPoolOf(name: string, operation: typeof maxPool1d): MaxPoolClass {
  const read = parameters(name, {
    kernelSize: operand(perAxis),
    stride: optional(perAxis),
    padding: optional(perAxis, 0),
    dilation: optional(perAxis, 1),
    ceilMode: optional(flag, false),
    returnIndices: named(flag, false),
  });
  class OfAxes<Indices extends boolean = false> extends Pooling<MaxPoolLayerOptions, Pooled<Indices>> {
    constructor(kernelSize: PerAxis, options: MaxPoolLayerOptions<Indices> & { returnIndices: Indices });
    constructor(kernelSize: PerAxis, ...options: Given<MaxPoolOptions, ["stride", "padding", "dilation", "ceilMode"]>);
    constructor(...values: unknown[]) {
      const { kernelSize, ...options } = read(values);
      super(kernelSize, options);
    }

    override forward(x: Tensor): Pooled<Indices> {
      return operation(x, this.size, this.options) as Pooled<Indices>;
    }
  }
  return called(name, OfAxes);
}

/** The largest element of each window: `maxPool1d`. */
export class MaxPool1d<Indices extends boolean = false> extends maxPoolOf("MaxPool1d", maxPool1d)<Indices> {}

/** The largest element of each window: `maxPool2d`. */
export class MaxPool2d<Indices extends boolean = false> extends maxPoolOf("MaxPool2d", maxPool2d)<Indices> {}

/** The largest element of each window: `maxPool3d`. */
export class MaxPool3d<Indices extends boolean = false> extends maxPoolOf("MaxPool3d", maxPool3d)<Indices> {}

/** @internal An average pooling. */
export interface AvgPool extends Pooling<AvgPoolOptions> {
  forward(x: Tensor): Tensor;
}

type AvgPoolClass = new (
  kernelSize: PerAxis,
  ...options: Given<AvgPoolOptions, ["stride", "padding", "ceilMode", "countIncludePad"]>
) => AvgPool;

/** The class of an average pooling. */
function avgPoolOf(name: string, operation: typeof avgPool1d): AvgPoolClass {
  const read = parameters(name, {
    kernelSize: operand(perAxis),
    stride: optional(perAxis),
    padding: optional(perAxis, 0),
    ceilMode: optional(flag, false),
    countIncludePad: optional(flag, true),
    divisorOverride: named(aNumber(count)),
  });
  class OfAxes extends Pooling<AvgPoolOptions> {
    constructor(
      kernelSize: PerAxis,
      ...options: Given<AvgPoolOptions, ["stride", "padding", "ceilMode", "countIncludePad"]>
    );
    constructor(...values: unknown[]) {
      const { kernelSize, ...options } = read(values);
      super(kernelSize, options);
    }

    override forward(x: Tensor): Tensor {
      return operation(x, this.size, this.options);
    }
  }
  return called(name, OfAxes);
}

/** The mean of each window: `avgPool1d`. */
export class AvgPool1d extends avgPoolOf("AvgPool1d", avgPool1d) {}

/** The mean of each window: `avgPool2d`. */
export class AvgPool2d extends avgPoolOf("AvgPool2d", avgPool2d) {}

/** The mean of each window: `avgPool3d`. */
export class AvgPool3d extends avgPoolOf("AvgPool3d", avgPool3d) {}

/** @internal An average pooling by the size of the result. */
export interface AdaptiveAvgPool extends Pooling<object> {
  forward(x: Tensor): Tensor;
}

/** The class of an average pooling by the size of the result. */
function adaptiveAvgPoolOf(
  name: string,
  operation: typeof adaptiveAvgPool1d,
): new (
  outputSize: PerAxis,
) => AdaptiveAvgPool {
  const read = parameters(name, { outputSize: operand(perAxis) });
  class OfAxes extends Pooling<object> {
    constructor(outputSize: PerAxis);
    constructor(...values: unknown[]) {
      super(read(values).outputSize, {});
    }

    override forward(x: Tensor): Tensor {
      return operation(x, this.size);
    }
  }
  return called(name, OfAxes);
}

/** Means of windows that are chosen so that a given number of results comes out: `adaptiveAvgPool1d`. */
export class AdaptiveAvgPool1d extends adaptiveAvgPoolOf("AdaptiveAvgPool1d", adaptiveAvgPool1d) {}

/** Means of windows that are chosen so that a given number of results comes out: `adaptiveAvgPool2d`. */
export class AdaptiveAvgPool2d extends adaptiveAvgPoolOf("AdaptiveAvgPool2d", adaptiveAvgPool2d) {}

/** Means of windows that are chosen so that a given number of results comes out: `adaptiveAvgPool3d`. */
export class AdaptiveAvgPool3d extends adaptiveAvgPoolOf("AdaptiveAvgPool3d", adaptiveAvgPool3d) {}

/** Options of {@link AdaptiveMaxPool1d} and its like. */
export interface AdaptiveMaxPoolLayerOptions<Indices extends boolean = boolean> {
  /** Whether `forward` gives the places of the largest elements too. Default false. */
  returnIndices?: Indices | undefined;
}

/** @internal A max pooling by the size of the result. */
export interface AdaptiveMaxPool<Indices extends boolean>
  extends Pooling<AdaptiveMaxPoolLayerOptions, Pooled<Indices>> {
  forward(x: Tensor): Pooled<Indices>;
}

type AdaptiveMaxPoolClass = new <Indices extends boolean = false>(
  outputSize: PerAxis,
  ...options: Given<AdaptiveMaxPoolLayerOptions<Indices>, ["returnIndices"]>
) => AdaptiveMaxPool<Indices>;

/** The class of a max pooling by the size of the result. */
function adaptiveMaxPoolOf(name: string, operation: typeof adaptiveMaxPool1d): AdaptiveMaxPoolClass {
  const read = parameters(name, { outputSize: operand(perAxis), returnIndices: optional(flag, false) });
  class OfAxes<Indices extends boolean = false> extends Pooling<AdaptiveMaxPoolLayerOptions, Pooled<Indices>> {
    constructor(outputSize: PerAxis, ...options: Given<AdaptiveMaxPoolLayerOptions<Indices>, ["returnIndices"]>);
    constructor(...values: unknown[]) {
      const { outputSize, ...options } = read(values);
      super(outputSize, options);
    }

    override forward(x: Tensor): Pooled<Indices> {
      return operation(x, this.size, this.options) as Pooled<Indices>;
    }
  }
  return called(name, OfAxes);
}

/** The largest elements of windows of which a given number comes out: `adaptiveMaxPool1d`. */
export class AdaptiveMaxPool1d<Indices extends boolean = false> extends adaptiveMaxPoolOf(
  "AdaptiveMaxPool1d",
  adaptiveMaxPool1d,
)<Indices> {}

/** The largest elements of windows of which a given number comes out: `adaptiveMaxPool2d`. */
export class AdaptiveMaxPool2d<Indices extends boolean = false> extends adaptiveMaxPoolOf(
  "AdaptiveMaxPool2d",
  adaptiveMaxPool2d,
)<Indices> {}

/** The largest elements of windows of which a given number comes out: `adaptiveMaxPool3d`. */
export class AdaptiveMaxPool3d<Indices extends boolean = false> extends adaptiveMaxPoolOf(
  "AdaptiveMaxPool3d",
  adaptiveMaxPool3d,
)<Indices> {}

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

/** @internal The inverse of a max pooling. */
export interface MaxUnpool extends Pooling<MaxUnpoolLayerOptions, Tensor, UnpoolArguments> {
  forward(x: Tensor, indices: Tensor<IndexDType>, outputSize?: readonly number[]): Tensor;
}

type MaxUnpoolClass = new (
  kernelSize: PerAxis,
  ...options: Given<MaxUnpoolLayerOptions, ["stride", "padding"]>
) => MaxUnpool;

/** The class of what puts the elements of a max pooling back. */
function maxUnpoolOf(name: string, operation: typeof maxUnpool1d): MaxUnpoolClass {
  const read = parameters(name, {
    kernelSize: operand(perAxis),
    stride: optional(perAxis),
    padding: optional(perAxis, 0),
  });
  class OfAxes extends Pooling<MaxUnpoolLayerOptions, Tensor, UnpoolArguments> {
    constructor(kernelSize: PerAxis, ...options: Given<MaxUnpoolLayerOptions, ["stride", "padding"]>);
    constructor(...values: unknown[]) {
      const { kernelSize, ...options } = read(values);
      super(kernelSize, options);
    }

    override forward(x: Tensor, indices: Tensor<IndexDType>, outputSize?: readonly number[]): Tensor {
      return operation(x, indices, this.size, { ...this.options, outputSize });
    }
  }
  return called(name, OfAxes);
}

/** The elements of a max pooling where they came from, and zeros elsewhere: `maxUnpool1d`. */
export class MaxUnpool1d extends maxUnpoolOf("MaxUnpool1d", maxUnpool1d) {}

/** The elements of a max pooling where they came from, and zeros elsewhere: `maxUnpool2d`. */
export class MaxUnpool2d extends maxUnpoolOf("MaxUnpool2d", maxUnpool2d) {}

/** The elements of a max pooling where they came from, and zeros elsewhere: `maxUnpool3d`. */
export class MaxUnpool3d extends maxUnpoolOf("MaxUnpool3d", maxUnpool3d) {}

/** @internal A pooling by the norm of an order. */
export interface LPPool extends Pooling<LpPoolOptions> {
  readonly normType: number;
  forward(x: Tensor): Tensor;
}

type LPPoolClass = new (
  normType: number,
  kernelSize: PerAxis,
  ...options: Given<LpPoolOptions, ["stride", "ceilMode"]>
) => LPPool;

/** The class of a pooling by the norm of an order. */
function lpPoolOf(name: string, operation: typeof lpPool1d): LPPoolClass {
  const read = parameters(name, {
    normType: operand(someNumber),
    kernelSize: operand(perAxis),
    stride: optional(perAxis),
    ceilMode: optional(flag, false),
  });
  class OfAxes extends Pooling<LpPoolOptions> {
    readonly normType: number;

    constructor(normType: number, kernelSize: PerAxis, ...options: Given<LpPoolOptions, ["stride", "ceilMode"]>);
    constructor(...values: unknown[]) {
      const { normType, kernelSize, ...options } = read(values);
      super(kernelSize, options);
      this.normType = normType;
    }

    override forward(x: Tensor): Tensor {
      return operation(x, this.normType, this.size, this.options);
    }

    /** @internal */
    override details(): string {
      return `${this.normType}, ${super.details()}`;
    }
  }
  return called(name, OfAxes);
}

/** The norm of each window, of order `normType`: `lpPool1d`. */
export class LPPool1d extends lpPoolOf("LPPool1d", lpPool1d) {}

/** The norm of each window, of order `normType`: `lpPool2d`. */
export class LPPool2d extends lpPoolOf("LPPool2d", lpPool2d) {}

/** The norm of each window, of order `normType`: `lpPool3d`. */
export class LPPool3d extends lpPoolOf("LPPool3d", lpPool3d) {}
