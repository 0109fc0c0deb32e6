/** Pooling as layers. */

import { aNumber, flag } from "../../core/kinds.ts";
import { count } from "../../core/options.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import {
  type AvgPoolOptions,
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveAvgPool3d,
  avgPool1d,
  avgPool2d,
  avgPool3d,
} from "../../ops/pooling/average_pool.ts";
import {
  type MaxPoolOptions,
  maxPool1d,
  maxPool2d,
  maxPool3d,
  type PooledWithIndices,
} from "../../ops/pooling/max_pool.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { ModuleWithOptions } from "./with_options.ts";

/** @internal A layer without weights, whose first argument is a size. */
export abstract class Pooling<
  Options extends object,
  Result = Tensor,
  Arguments extends readonly unknown[] = [x: Tensor],
> extends ModuleWithOptions<Arguments, Options, Result> {
  readonly size: PerAxis;

  constructor(size: PerAxis, options: Options) {
    super(options);
    this.size = size;
  }

  /** @internal */
  override details(): string {
    const size = typeof this.size === "number" ? String(this.size) : `[${this.size.join(", ")}]`;
    return [size, super.details()].filter(Boolean).join(", ");
  }
}

/** What a largest element of each window comes with: its place too, where `returnIndices` is true. */
export type Pooled<Indices extends boolean> = Indices extends true ? PooledWithIndices<DType> : Tensor;

/** Options of {@link MaxPool1d} and its like. */
export interface MaxPoolLayerOptions<Indices extends boolean = boolean> extends MaxPoolOptions {
  /** Whether `forward` gives the places of the largest elements too, as `MaxUnpool` takes. Default false. */
  returnIndices?: Indices | undefined;
}

const maxPoolParameters = (operation: string) =>
  parameters(operation, {
    kernelSize: operand(perAxis),
    stride: optional(perAxis),
    padding: optional(perAxis, 0),
    dilation: optional(perAxis, 1),
    ceilMode: optional(flag, false),
    returnIndices: named(flag, false),
  });

const avgPoolParameters = (operation: string) =>
  parameters(operation, {
    kernelSize: operand(perAxis),
    stride: optional(perAxis),
    padding: optional(perAxis, 0),
    ceilMode: optional(flag, false),
    countIncludePad: optional(flag, true),
    divisorOverride: named(aNumber(count)),
  });

const adaptiveParameters = (operation: string) => parameters(operation, { outputSize: operand(perAxis) });

/** The largest element of each window: `maxPool1d`. */
export class MaxPool1d<Indices extends boolean = false> extends Pooling<MaxPoolLayerOptions, Pooled<Indices>> {
  constructor(kernelSize: PerAxis, options: MaxPoolLayerOptions<Indices> & { returnIndices: Indices });
  constructor(kernelSize: PerAxis, ...options: Given<MaxPoolOptions, ["stride", "padding", "dilation", "ceilMode"]>);
  constructor(...values: unknown[]) {
    const { kernelSize, ...options } = maxPool1dParameters(values);
    super(kernelSize, options);
  }

  override forward(x: Tensor): Pooled<Indices> {
    return maxPool1d(x, this.size, this.options) as Pooled<Indices>;
  }
}
const maxPool1dParameters = maxPoolParameters("MaxPool1d");

/** The mean of each window: `avgPool1d`. */
export class AvgPool1d extends Pooling<AvgPoolOptions> {
  constructor(
    kernelSize: PerAxis,
    ...options: Given<AvgPoolOptions, ["stride", "padding", "ceilMode", "countIncludePad"]>
  );
  constructor(...values: unknown[]) {
    const { kernelSize, ...options } = avgPool1dParameters(values);
    super(kernelSize, options);
  }

  override forward(x: Tensor): Tensor {
    return avgPool1d(x, this.size, this.options);
  }
}
const avgPool1dParameters = avgPoolParameters("AvgPool1d");

/** Means of windows that are chosen so that a given number of results comes out: `adaptiveAvgPool1d`. */
export class AdaptiveAvgPool1d extends Pooling<object> {
  constructor(outputSize: PerAxis);
  constructor(...values: unknown[]) {
    super(adaptive1dParameters(values).outputSize, {});
  }

  override forward(x: Tensor): Tensor {
    return adaptiveAvgPool1d(x, this.size);
  }
}
const adaptive1dParameters = adaptiveParameters("AdaptiveAvgPool1d");

/** The largest element of each window: `maxPool2d`. */
export class MaxPool2d<Indices extends boolean = false> extends Pooling<MaxPoolLayerOptions, Pooled<Indices>> {
  constructor(kernelSize: PerAxis, options: MaxPoolLayerOptions<Indices> & { returnIndices: Indices });
  constructor(kernelSize: PerAxis, ...options: Given<MaxPoolOptions, ["stride", "padding", "dilation", "ceilMode"]>);
  constructor(...values: unknown[]) {
    const { kernelSize, ...options } = maxPool2dParameters(values);
    super(kernelSize, options);
  }

  override forward(x: Tensor): Pooled<Indices> {
    return maxPool2d(x, this.size, this.options) as Pooled<Indices>;
  }
}
const maxPool2dParameters = maxPoolParameters("MaxPool2d");

/** The mean of each window: `avgPool2d`. */
export class AvgPool2d extends Pooling<AvgPoolOptions> {
  constructor(
    kernelSize: PerAxis,
    ...options: Given<AvgPoolOptions, ["stride", "padding", "ceilMode", "countIncludePad"]>
  );
  constructor(...values: unknown[]) {
    const { kernelSize, ...options } = avgPool2dParameters(values);
    super(kernelSize, options);
  }

  override forward(x: Tensor): Tensor {
    return avgPool2d(x, this.size, this.options);
  }
}
const avgPool2dParameters = avgPoolParameters("AvgPool2d");

/** Means of windows that are chosen so that a given number of results comes out: `adaptiveAvgPool2d`. */
export class AdaptiveAvgPool2d extends Pooling<object> {
  constructor(outputSize: PerAxis);
  constructor(...values: unknown[]) {
    super(adaptive2dParameters(values).outputSize, {});
  }

  override forward(x: Tensor): Tensor {
    return adaptiveAvgPool2d(x, this.size);
  }
}
const adaptive2dParameters = adaptiveParameters("AdaptiveAvgPool2d");

/** The largest element of each window: `maxPool3d`. */
export class MaxPool3d<Indices extends boolean = false> extends Pooling<MaxPoolLayerOptions, Pooled<Indices>> {
  constructor(kernelSize: PerAxis, options: MaxPoolLayerOptions<Indices> & { returnIndices: Indices });
  constructor(kernelSize: PerAxis, ...options: Given<MaxPoolOptions, ["stride", "padding", "dilation", "ceilMode"]>);
  constructor(...values: unknown[]) {
    const { kernelSize, ...options } = maxPool3dParameters(values);
    super(kernelSize, options);
  }

  override forward(x: Tensor): Pooled<Indices> {
    return maxPool3d(x, this.size, this.options) as Pooled<Indices>;
  }
}
const maxPool3dParameters = maxPoolParameters("MaxPool3d");

/** The mean of each window: `avgPool3d`. */
export class AvgPool3d extends Pooling<AvgPoolOptions> {
  constructor(
    kernelSize: PerAxis,
    ...options: Given<AvgPoolOptions, ["stride", "padding", "ceilMode", "countIncludePad"]>
  );
  constructor(...values: unknown[]) {
    const { kernelSize, ...options } = avgPool3dParameters(values);
    super(kernelSize, options);
  }

  override forward(x: Tensor): Tensor {
    return avgPool3d(x, this.size, this.options);
  }
}
const avgPool3dParameters = avgPoolParameters("AvgPool3d");

/** Means of windows that are chosen so that a given number of results comes out: `adaptiveAvgPool3d`. */
export class AdaptiveAvgPool3d extends Pooling<object> {
  constructor(outputSize: PerAxis);
  constructor(...values: unknown[]) {
    super(adaptive3dParameters(values).outputSize, {});
  }

  override forward(x: Tensor): Tensor {
    return adaptiveAvgPool3d(x, this.size);
  }
}
const adaptive3dParameters = adaptiveParameters("AdaptiveAvgPool3d");
