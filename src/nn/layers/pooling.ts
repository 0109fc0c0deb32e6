/** Pooling as layers. */
import { aNumber, flag, someNumber } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import type { IndexDType } from "../../ops/indexing/indices.ts";
import { type AdaptiveSize, adaptiveSize } from "../../ops/pooling/adaptive.ts";
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
import { type LpPoolOptions, lpPool1d, lpPool2d, lpPool3d } from "../../ops/pooling/lp_pool.ts";
import {
  type MaxPoolOptions,
  maxPool1d,
  maxPool2d,
  maxPool3d,
  type PooledWithIndices,
} from "../../ops/pooling/max_pool.ts";
import type { DType, FloatDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";
import { called, listed } from "./module_of.ts";

/** @internal Base class of pooling layers. */
export abstract class Pooling<
  Options extends object,
  Result = Tensor,
  Arguments extends readonly unknown[] = [x: Tensor],
  Size extends AdaptiveSize = PerAxis,
> extends Module<Arguments, Result> {
  /** The options with which the operation is called. */
  readonly options: Readonly<Options>;
  /** The size of windows, or of the result. */
  readonly size: Size;

  constructor(size: Size, options: Options) {
    super();
    this.options = Object.freeze(options);
    this.size = size;
  }

  /** @internal */
  override details(): string {
    const size = JSON.stringify(this.size).replaceAll(",", ", ");
    return [size, listed(this.options)].filter(Boolean).join(", ");
  }
}

/** The result of max pooling: with `returnIndices: true`, also the indices of the largest elements. */
export type Pooled<Indices extends boolean, D extends DType = DType> = Indices extends true
  ? PooledWithIndices<D>
  : Tensor<D>;

/** Options of {@link MaxPool1d}, {@link MaxPool2d} and {@link MaxPool3d}. */
export interface MaxPoolLayerOptions<Indices extends boolean = boolean> extends MaxPoolOptions {
  /** Whether `forward` also returns the indices of the largest elements, for `MaxUnpool`. Default false. */
  returnIndices?: Indices | undefined;
}

/** @internal A max pooling layer. */
export interface MaxPool<Indices extends boolean> extends Pooling<MaxPoolLayerOptions, Pooled<Indices>> {
  forward<D extends FloatDType>(x: Tensor<D>): Pooled<Indices, D>;
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

/** Makes a class that applies a max pooling operation. */
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

/**
 * Applies `maxPool1d`: takes the largest element of each window.
 *
 * @example
 * new MaxPool1d(2).forward(randn([2, 3, 8])); // [2, 3, 4]
 */
export class MaxPool1d<Indices extends boolean = false> extends maxPoolOf("MaxPool1d", maxPool1d)<Indices> {}

/**
 * Applies `maxPool2d`: takes the largest element of each window.
 *
 * @example
 * new MaxPool2d(2).forward(randn([2, 3, 8, 8])); // [2, 3, 4, 4]
 */
export class MaxPool2d<Indices extends boolean = false> extends maxPoolOf("MaxPool2d", maxPool2d)<Indices> {}

/**
 * Applies `maxPool3d`: takes the largest element of each window.
 *
 * @example
 * new MaxPool3d(2).forward(randn([2, 3, 8, 8, 8])); // [2, 3, 4, 4, 4]
 */
export class MaxPool3d<Indices extends boolean = false> extends maxPoolOf("MaxPool3d", maxPool3d)<Indices> {}

/** @internal An average pooling layer. */
export interface AvgPool extends Pooling<AvgPoolOptions> {
  forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  forward(x: Tensor): Tensor;
}

type AvgPoolClass = new (
  kernelSize: PerAxis,
  ...options: Given<AvgPoolOptions, ["stride", "padding", "ceilMode", "countIncludePad"]>
) => AvgPool;

/** Makes a class that applies an average pooling operation. */
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

    override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
    override forward(x: Tensor): Tensor;
    override forward(x: Tensor): Tensor {
      return operation(x, this.size, this.options);
    }
  }
  return called(name, OfAxes);
}

/**
 * Applies `avgPool1d`: averages each window.
 *
 * @example
 * new AvgPool1d(2).forward(randn([2, 3, 8])); // [2, 3, 4]
 */
export class AvgPool1d extends avgPoolOf("AvgPool1d", avgPool1d) {}

/**
 * Applies `avgPool2d`: averages each window.
 *
 * @example
 * new AvgPool2d(2).forward(randn([2, 3, 8, 8])); // [2, 3, 4, 4]
 */
export class AvgPool2d extends avgPoolOf("AvgPool2d", avgPool2d) {}

/**
 * Applies `avgPool3d`: averages each window.
 *
 * @example
 * new AvgPool3d(2).forward(randn([2, 3, 8, 8, 8])); // [2, 3, 4, 4, 4]
 */
export class AvgPool3d extends avgPoolOf("AvgPool3d", avgPool3d) {}

/** @internal An adaptive average pooling layer. */
export interface AdaptiveAvgPool extends Pooling<object, Tensor, [x: Tensor], AdaptiveSize> {
  forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  forward(x: Tensor): Tensor;
}

/** Makes a class that applies an adaptive average pooling operation. */
function adaptiveAvgPoolOf(
  name: string,
  operation: typeof adaptiveAvgPool1d,
): new (
  outputSize: AdaptiveSize,
) => AdaptiveAvgPool {
  const read = parameters(name, { outputSize: operand(adaptiveSize) });
  class OfAxes extends Pooling<object, Tensor, [x: Tensor], AdaptiveSize> {
    constructor(outputSize: AdaptiveSize);
    constructor(...values: unknown[]) {
      super(read(values).outputSize, {});
    }

    override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
    override forward(x: Tensor): Tensor;
    override forward(x: Tensor): Tensor {
      return operation(x, this.size);
    }
  }
  return called(name, OfAxes);
}

/**
 * Applies `adaptiveAvgPool1d`: averages windows that are chosen for a given output size. Null keeps the size
 * of an axis.
 *
 * @example
 * new AdaptiveAvgPool1d(5).forward(randn([2, 3, 8])); // [2, 3, 5]
 */
export class AdaptiveAvgPool1d extends adaptiveAvgPoolOf("AdaptiveAvgPool1d", adaptiveAvgPool1d) {}

/**
 * Applies `adaptiveAvgPool2d`: averages windows that are chosen for a given output size. Null keeps the size
 * of an axis.
 *
 * @example
 * new AdaptiveAvgPool2d(5).forward(randn([2, 3, 8, 8])); // [2, 3, 5, 5]
 */
export class AdaptiveAvgPool2d extends adaptiveAvgPoolOf("AdaptiveAvgPool2d", adaptiveAvgPool2d) {}

/**
 * Applies `adaptiveAvgPool3d`: averages windows that are chosen for a given output size. Null keeps the size
 * of an axis.
 *
 * @example
 * new AdaptiveAvgPool3d(5).forward(randn([2, 3, 8, 8, 8])); // [2, 3, 5, 5, 5]
 */
export class AdaptiveAvgPool3d extends adaptiveAvgPoolOf("AdaptiveAvgPool3d", adaptiveAvgPool3d) {}

/** Options of {@link AdaptiveMaxPool1d}, {@link AdaptiveMaxPool2d} and {@link AdaptiveMaxPool3d}. */
export interface AdaptiveMaxPoolLayerOptions<Indices extends boolean = boolean> {
  /** Whether `forward` also returns the indices of the largest elements. Default false. */
  returnIndices?: Indices | undefined;
}

/** @internal An adaptive max pooling layer. */
export interface AdaptiveMaxPool<Indices extends boolean>
  extends Pooling<AdaptiveMaxPoolLayerOptions, Pooled<Indices>, [x: Tensor], AdaptiveSize> {
  forward<D extends FloatDType>(x: Tensor<D>): Pooled<Indices, D>;
  forward(x: Tensor): Pooled<Indices>;
}

type AdaptiveMaxPoolClass = new <Indices extends boolean = false>(
  outputSize: AdaptiveSize,
  ...options: Given<AdaptiveMaxPoolLayerOptions<Indices>, ["returnIndices"]>
) => AdaptiveMaxPool<Indices>;

/** Makes a class that applies an adaptive max pooling operation. */
function adaptiveMaxPoolOf(name: string, operation: typeof adaptiveMaxPool1d): AdaptiveMaxPoolClass {
  const read = parameters(name, { outputSize: operand(adaptiveSize), returnIndices: optional(flag, false) });
  class OfAxes<Indices extends boolean = false> extends Pooling<
    AdaptiveMaxPoolLayerOptions,
    Pooled<Indices>,
    [x: Tensor],
    AdaptiveSize
  > {
    constructor(outputSize: AdaptiveSize, ...options: Given<AdaptiveMaxPoolLayerOptions<Indices>, ["returnIndices"]>);
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

/**
 * Applies `adaptiveMaxPool1d`: takes the largest element of windows that are chosen for a given output size.
 * Null keeps the size of an axis.
 *
 * @example
 * new AdaptiveMaxPool1d(5).forward(randn([2, 3, 8])); // [2, 3, 5]
 */
export class AdaptiveMaxPool1d<Indices extends boolean = false> extends adaptiveMaxPoolOf(
  "AdaptiveMaxPool1d",
  adaptiveMaxPool1d,
)<Indices> {}

/**
 * Applies `adaptiveMaxPool2d`: takes the largest element of windows that are chosen for a given output size.
 * Null keeps the size of an axis.
 *
 * @example
 * new AdaptiveMaxPool2d(5).forward(randn([2, 3, 8, 8])); // [2, 3, 5, 5]
 */
export class AdaptiveMaxPool2d<Indices extends boolean = false> extends adaptiveMaxPoolOf(
  "AdaptiveMaxPool2d",
  adaptiveMaxPool2d,
)<Indices> {}

/**
 * Applies `adaptiveMaxPool3d`: takes the largest element of windows that are chosen for a given output size.
 * Null keeps the size of an axis.
 *
 * @example
 * new AdaptiveMaxPool3d(5).forward(randn([2, 3, 8, 8, 8])); // [2, 3, 5, 5, 5]
 */
export class AdaptiveMaxPool3d<Indices extends boolean = false> extends adaptiveMaxPoolOf(
  "AdaptiveMaxPool3d",
  adaptiveMaxPool3d,
)<Indices> {}

/** Options of {@link MaxUnpool1d}, {@link MaxUnpool2d} and {@link MaxUnpool3d}. */
export type MaxUnpoolLayerOptions = Pick<MaxUnpoolOptions, "stride" | "padding">;

type UnpoolArguments = [x: Tensor, indices: Tensor<IndexDType>, outputSize?: readonly number[]];

/** @internal A max unpooling layer. */
export interface MaxUnpool extends Pooling<MaxUnpoolLayerOptions, Tensor, UnpoolArguments> {
  forward(x: Tensor, indices: Tensor<IndexDType>, outputSize?: readonly number[]): Tensor;
}

type MaxUnpoolClass = new (
  kernelSize: PerAxis,
  ...options: Given<MaxUnpoolLayerOptions, ["stride", "padding"]>
) => MaxUnpool;

/** Makes a class that applies a max unpooling operation. */
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

/**
 * Applies `maxUnpool1d`: puts max pooling's results back at their indices, with zeros elsewhere.
 *
 * @example
 * const { values, indices } = new MaxPool1d(2, { returnIndices: true }).forward(randn([2, 3, 8]));
 * new MaxUnpool1d(2).forward(values, indices); // [2, 3, 8]
 */
export class MaxUnpool1d extends maxUnpoolOf("MaxUnpool1d", maxUnpool1d) {}

/**
 * Applies `maxUnpool2d`: puts max pooling's results back at their indices, with zeros elsewhere.
 *
 * @example
 * const { values, indices } = new MaxPool2d(2, { returnIndices: true }).forward(randn([2, 3, 8, 8]));
 * new MaxUnpool2d(2).forward(values, indices); // [2, 3, 8, 8]
 */
export class MaxUnpool2d extends maxUnpoolOf("MaxUnpool2d", maxUnpool2d) {}

/**
 * Applies `maxUnpool3d`: puts max pooling's results back at their indices, with zeros elsewhere.
 *
 * @example
 * const { values, indices } = new MaxPool3d(2, { returnIndices: true }).forward(randn([2, 3, 8, 8, 8]));
 * new MaxUnpool3d(2).forward(values, indices); // [2, 3, 8, 8, 8]
 */
export class MaxUnpool3d extends maxUnpoolOf("MaxUnpool3d", maxUnpool3d) {}

/** @internal A power-average pooling layer. */
export interface LPPool extends Pooling<LpPoolOptions> {
  readonly normType: number;
  forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  forward(x: Tensor): Tensor;
}

type LPPoolClass = new (
  normType: number,
  kernelSize: PerAxis,
  ...options: Given<LpPoolOptions, ["stride", "ceilMode"]>
) => LPPool;

/** Makes a class that applies a power-average pooling operation. */
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

    override forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
    override forward(x: Tensor): Tensor;
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

/**
 * Applies `lpPool1d`: computes the norm of order `normType` of each window.
 *
 * @example
 * new LPPool1d(2, 2).forward(randn([2, 3, 8])); // [2, 3, 4]
 */
export class LPPool1d extends lpPoolOf("LPPool1d", lpPool1d) {}

/**
 * Applies `lpPool2d`: computes the norm of order `normType` of each window.
 *
 * @example
 * new LPPool2d(2, 2).forward(randn([2, 3, 8, 8])); // [2, 3, 4, 4]
 */
export class LPPool2d extends lpPoolOf("LPPool2d", lpPool2d) {}

/**
 * Applies `lpPool3d`: computes the norm of order `normType` of each window.
 *
 * @example
 * new LPPool3d(2, 2).forward(randn([2, 3, 8, 8, 8])); // [2, 3, 4, 4, 4]
 */
export class LPPool3d extends lpPoolOf("LPPool3d", lpPool3d) {}
