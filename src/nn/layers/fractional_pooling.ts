/** Fractional max pooling as layers. */
import { flag } from "../../core/kinds.ts";
import { type Given, named, operand, optional, parameters } from "../../core/parameters.ts";
import { type PerAxis, perAxis } from "../../ops/convolution/geometry.ts";
import {
  type FractionalMaxPoolOptions,
  fractionalMaxPool2d,
  fractionalMaxPool3d,
} from "../../ops/pooling/fractional_max_pool.ts";
import { aGenerator } from "../../ops/random/distribution.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { called } from "./module_of.ts";
import { type Pooled, Pooling } from "./pooling.ts";

/** Options of {@link FractionalMaxPool2d} and `3d`: `outputSize` or `outputRatio` sets the size of the result. */
export interface FractionalMaxPoolLayerOptions<Indices extends boolean = boolean>
  extends Omit<FractionalMaxPoolOptions, "returnIndices" | "randomSamples"> {
  /** Whether `forward` also returns the indices of the largest elements. Default false. */
  returnIndices?: Indices | undefined;
}

/** @internal A fractional max pooling layer. */
export interface FractionalMaxPool<Indices extends boolean>
  extends Pooling<FractionalMaxPoolLayerOptions, Pooled<Indices>> {
  forward<D extends FloatDType>(x: Tensor<D>): Pooled<Indices, D>;
  forward(x: Tensor): Pooled<Indices>;
}

type FractionalMaxPoolClass = new <Indices extends boolean = false>(
  kernelSize: PerAxis,
  ...options: Given<FractionalMaxPoolLayerOptions<Indices>, ["outputSize", "outputRatio", "returnIndices"]>
) => FractionalMaxPool<Indices>;

/** Makes a class that applies a fractional max pooling operation. */
function fractionalMaxPoolOf(name: string, operation: typeof fractionalMaxPool2d): FractionalMaxPoolClass {
  const read = parameters(name, {
    kernelSize: operand(perAxis),
    outputSize: optional(perAxis),
    outputRatio: optional(perAxis),
    returnIndices: optional(flag, false),
    generator: named(aGenerator),
  });
  class OfAxes<Indices extends boolean = false> extends Pooling<FractionalMaxPoolLayerOptions, Pooled<Indices>> {
    constructor(
      kernelSize: PerAxis,
      ...options: Given<FractionalMaxPoolLayerOptions<Indices>, ["outputSize", "outputRatio", "returnIndices"]>
    );
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
 * Applies `fractionalMaxPool2d`: takes the largest element of windows whose steps vary at random, drawn in each call.
 *
 * @example
 * new FractionalMaxPool2d(3, { outputRatio: 0.5 }).forward(randn([1, 2, 9, 9])); // [1, 2, 4, 4]
 */
export class FractionalMaxPool2d<Indices extends boolean = false> extends fractionalMaxPoolOf(
  "FractionalMaxPool2d",
  fractionalMaxPool2d,
)<Indices> {}

/**
 * Applies `fractionalMaxPool3d`: takes the largest element of windows whose steps vary at random, drawn in each call.
 *
 * @example
 * new FractionalMaxPool3d(2, { outputSize: 3 }).forward(randn([1, 2, 8, 8, 8])); // [1, 2, 3, 3, 3]
 */
export class FractionalMaxPool3d<Indices extends boolean = false> extends fractionalMaxPoolOf(
  "FractionalMaxPool3d",
  fractionalMaxPool3d,
)<Indices> {}
