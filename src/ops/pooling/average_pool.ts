/** Average pooling over one, two and three axes. */
import { underName } from "../../backend/dispatch.ts";
import { aNumber, flag } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { type PerAxis, perAxis, wideDType } from "../convolution/geometry.ts";
import { toDType } from "../copy/cast.ts";
import { tensor } from "../creation/tensor.ts";
import { add } from "../elementwise/arithmetic.ts";
import { div } from "../elementwise/division.ts";
import { cat } from "../join/cat.ts";
import { pad } from "../join/pad.ts";
import { mean } from "../reduction/mean.ts";
import { reshape } from "../view/reshape.ts";
import { narrow, slice } from "../view/slice.ts";
import { type AdaptiveSize, adaptiveSize, adaptiveSizes } from "./adaptive.ts";
import { type AxisMap, canResample, resample } from "./resample.ts";
import { checkAxes, type Windows, windowsOf } from "./windows.ts";

/** Options of {@link avgPool1d}, {@link avgPool2d} and {@link avgPool3d}. */
export interface AvgPoolOptions {
  /** Step between windows, in elements: one for all axes, or one for each. Default: the window size. */
  stride?: PerAxis | undefined;
  /** Number of zeros to add on both sides, at most half a window. Default 0. */
  padding?: PerAxis | undefined;
  /** Whether windows may extend beyond the end. Default false. */
  ceilMode?: boolean | undefined;
  /** Whether padding counts in the mean. Default true. */
  countIncludePad?: boolean | undefined;
  /** Divisor of the sums in place of the number of elements. */
  divisorOverride?: number | undefined;
}

/** Options of average pooling, named or positional. */
export type AvgPoolArguments = Given<
  AvgPoolOptions,
  ["stride", "padding", "ceilMode", "countIncludePad", "divisorOverride"]
>;

const divisor = aNumber({
  holds: (value) => Number.isSafeInteger(value) && value !== 0,
  expected: "a whole number other than 0",
});
const avgPoolParameters = (operation: string) =>
  parameters(operation, {
    x: operand(aTensor),
    kernelSize: required(perAxis),
    stride: optional(perAxis),
    padding: optional(perAxis, 0),
    ceilMode: optional(flag, false),
    countIncludePad: optional(flag, true),
    divisorOverride: optional(divisor),
  });

/**
 * Computes the mean of each window; for integers, it is truncated.
 *
 * @param x [batch, channels, length], or without a batch
 * @param kernelSize the window size: one for all axes, or one for each
 *
 * @example
 * avgPool1d(tensor([[[1, 3, 2, 5]]]), 2); // float32 [[[2, 3.5]]]
 *
 * @throws {ShapeError} if x has an unsupported rank, or a window is larger than the padded input. @throws {DTypeError}
 * for bools. @throws {ArgumentError} for sizes below 1, or padding of more than half a window.
 */
export function avgPool1d<D extends DType>(x: Tensor<D>, kernelSize: PerAxis, ...options: AvgPoolArguments): Tensor<D>;
export function avgPool1d(...values: unknown[]): Tensor {
  return avgPool("avgPool1d", avgPool1dParameters(values), 1);
}
const avgPool1dParameters = avgPoolParameters("avgPool1d");

/**
 * Computes the mean of each window over two axes: see {@link avgPool1d}.
 *
 * @param x [batch, channels, height, width], or without a batch
 * @param kernelSize the window size: one for all axes, or one for each
 *
 * @example
 * avgPool2d(tensor([[[[1, 3], [2, 6]]]]), 2); // float32 [[[[3]]]]
 */
export function avgPool2d<D extends DType>(x: Tensor<D>, kernelSize: PerAxis, ...options: AvgPoolArguments): Tensor<D>;
export function avgPool2d(...values: unknown[]): Tensor {
  return avgPool("avgPool2d", avgPool2dParameters(values), 2);
}
const avgPool2dParameters = avgPoolParameters("avgPool2d");

/**
 * Computes the mean of each window over three axes: see {@link avgPool1d}.
 *
 * @param x [batch, channels, depth, height, width], or without a batch
 * @param kernelSize the window size: one for all axes, or one for each
 *
 * @example
 * avgPool3d(ones([1, 1, 2, 2, 2]), 2); // float32 [[[[[1]]]]]
 */
export function avgPool3d<D extends DType>(x: Tensor<D>, kernelSize: PerAxis, ...options: AvgPoolArguments): Tensor<D>;
export function avgPool3d(...values: unknown[]): Tensor {
  return avgPool("avgPool3d", avgPool3dParameters(values), 3);
}
const avgPool3dParameters = avgPoolParameters("avgPool3d");

/**
 * Computes adaptive average pooling: the mean of each window, with windows that give the requested output size. Window
 * i of n spans ⌊i · size / n⌋ to ⌈(i + 1) · size / n⌉.
 *
 * @param x [batch, channels, length], or without a batch
 * @param outputSize the output size: one for all axes, or one for each; null keeps the size of an axis
 *
 * @example
 * adaptiveAvgPool1d(tensor([[[1, 3, 2, 6]]]), 2); // float32 [[[2, 4]]]
 *
 * @throws {ShapeError} if x has an unsupported rank. @throws {DTypeError} if x is not a float. @throws {ArgumentError}
 * for sizes below 1.
 */
export function adaptiveAvgPool1d<D extends DType>(x: Tensor<D>, outputSize: AdaptiveSize): Tensor<D>;
export function adaptiveAvgPool1d(...values: unknown[]): Tensor {
  return adaptiveAvgPool("adaptiveAvgPool1d", adaptiveAvgPool1dParameters(values), 1);
}
const adaptiveAvgPool1dParameters = adaptiveParameters("adaptiveAvgPool1d");

/**
 * Computes adaptive average pooling over two axes: see {@link adaptiveAvgPool1d}.
 *
 * @param x [batch, channels, height, width], or without a batch
 * @param outputSize the output size: one for all axes, or one for each; null keeps the size of an axis
 *
 * @example
 * adaptiveAvgPool2d(tensor([[[[1, 3], [2, 6]]]]), 1); // float32 [[[[3]]]]
 */
export function adaptiveAvgPool2d<D extends DType>(x: Tensor<D>, outputSize: AdaptiveSize): Tensor<D>;
export function adaptiveAvgPool2d(...values: unknown[]): Tensor {
  return adaptiveAvgPool("adaptiveAvgPool2d", adaptiveAvgPool2dParameters(values), 2);
}
const adaptiveAvgPool2dParameters = adaptiveParameters("adaptiveAvgPool2d");

/**
 * Computes adaptive average pooling over three axes: see {@link adaptiveAvgPool1d}.
 *
 * @param x [batch, channels, depth, height, width], or without a batch
 * @param outputSize the output size: one for all axes, or one for each; null keeps the size of an axis
 *
 * @example
 * adaptiveAvgPool3d(ones([1, 1, 2, 2, 2]), 1); // float32 [[[[[1]]]]]
 */
export function adaptiveAvgPool3d<D extends DType>(x: Tensor<D>, outputSize: AdaptiveSize): Tensor<D>;
export function adaptiveAvgPool3d(...values: unknown[]): Tensor {
  return adaptiveAvgPool("adaptiveAvgPool3d", adaptiveAvgPool3dParameters(values), 3);
}
const adaptiveAvgPool3dParameters = adaptiveParameters("adaptiveAvgPool3d");

function adaptiveParameters(operation: string) {
  return parameters(operation, { x: operand(aTensor), outputSize: required(adaptiveSize) });
}

/** Returns views of padded x, one for each position in a window: each view holds that element of every window. */
function viewsOf(x: Tensor, { kernel, stride, padding, dilation, output, beyond }: Windows, value: number): Tensor[] {
  const rank = kernel.length;
  const sides = padding.map((amount, axis) => [amount, amount + beyond[axis]]);
  const isPadded = sides.flat().some((amount) => amount > 0);
  const whole = isPadded ? pad(x, sides.toReversed().flat(), { value }) : x;
  let views = [whole];
  for (let axis = 0; axis < rank; axis++)
    views = views.flatMap((view) =>
      Array.from({ length: kernel[axis] }, (_, at) => {
        const start = at * dilation[axis];
        const end = start + (output[axis] - 1) * stride[axis] + 1;
        return slice(view, { dim: view.rank - rank + axis, start, end, step: stride[axis] });
      }),
    );
  return views;
}

function avgPool(
  operation: string,
  { x, ...given }: ReturnType<ReturnType<typeof avgPoolParameters>>,
  rank: number,
): Tensor {
  const windows = windowsOf(operation, x, given, rank);
  return underName(operation, () =>
    tidy(() => {
      if (canResample() && x.size > 0) {
        const floats = isFloat(x.dtype) ? x : toDType(x, wideDType(x.dtype));
        return toDType(resample(operation, floats, mapsOf(windows, given)), x.dtype);
      }
      const views = viewsOf(toDType(x, wideDType(x.dtype)), windows, 0);
      const total = views.reduce((sum, view) => add(sum, view));
      return toDType(div(total, divisorsOf(windows, given, total)), x.dtype);
    }),
  );
}

/** Returns the map of each axis. The divisor of a window is the product of the axes' divisors. */
function mapsOf(
  { kernel, stride, padding, input, output }: Windows,
  { countIncludePad, divisorOverride }: { countIncludePad: boolean; divisorOverride: number | undefined },
): AxisMap[] {
  return output.map((size, axis) => {
    const options = [kernel[axis], stride[axis], padding[axis], input[axis], size, countIncludePad, divisorOverride];
    return knownMap(`${axis === 0} ${options.join(" ")}`, () => windowMap(size, axis));
  });
  function windowMap(size: number, axis: number): AxisMap {
    const begins = Array.from({ length: size }, (_, at) => at * stride[axis] - padding[axis]);
    const starts = begins.map((begin) => Math.max(begin, 0));
    const lengths = begins.map((begin, at) => Math.min(begin + kernel[axis], input[axis]) - starts[at]);
    const padded = begins.map((begin) => Math.min(begin + kernel[axis], input[axis] + padding[axis]) - begin);
    const counts = countIncludePad ? padded : lengths;
    const divisors = divisorOverride === undefined ? counts : starts.map(() => (axis === 0 ? divisorOverride : 1));
    return { input: input[axis], starts, lengths, divisors };
  }
}

/** Returns the divisor of each window's sum. */
function divisorsOf(
  { kernel, stride, padding, input, output }: Windows,
  { countIncludePad, divisorOverride }: { countIncludePad: boolean; divisorOverride: number | undefined },
  { dtype }: Tensor,
): Tensor | number {
  if (divisorOverride !== undefined) return divisorOverride;
  const counts = output.reduce<number[]>(
    (all, size, axis) =>
      all.flatMap((product) =>
        Array.from({ length: size }, (_, at) => {
          const start = at * stride[axis] - padding[axis];
          const end = Math.min(start + kernel[axis], input[axis] + padding[axis]);
          if (countIncludePad) return product * (end - start);
          return product * (Math.min(end, input[axis]) - Math.max(start, 0));
        }),
      ),
    [1],
  );
  return tensor(Float64Array.from(counts), { shape: output, dtype });
}

function adaptiveAvgPool(
  operation: string,
  { x, outputSize }: ReturnType<ReturnType<typeof adaptiveParameters>>,
  rank: number,
): Tensor {
  checkAxes(operation, x, rank);
  const sizes = adaptiveSizes(operation, x, outputSize, rank);
  return underName(operation, () =>
    tidy(() => {
      const isTotal = sizes.every((size) => size === 1);
      if (canResample() && x.size > 0 && !isTotal)
        return resample(
          operation,
          x,
          sizes.map((size, at) => adaptiveMap(x.shape[x.rank - rank + at], size)),
        );
      const wide: Tensor = toDType(x, accumulationDType(x.dtype));
      if (isTotal) return toDType(mean(wide, { dim: sizes.map((_, at) => at - rank), keepdim: true }), x.dtype);
      // a window is a product of intervals, so its mean can be taken one axis at a time
      const result = sizes.reduce((partial, size, at) => meansAlong(partial, x.rank - rank + at, size), wide);
      return toDType(result, x.dtype);
    }),
  );
}

const knownMaps = new Map<string, AxisMap>();
const MOST_MAPS = 64;

/** Returns the map that an earlier call with the same options made: its table for the dylib is then known too. */
function knownMap(key: string, make: () => AxisMap): AxisMap {
  const known = knownMaps.get(key);
  if (known) return known;
  const map = make();
  if (knownMaps.size >= MOST_MAPS) knownMaps.delete(knownMaps.keys().next().value!);
  knownMaps.set(key, map);
  return map;
}

/**
 * Returns the map of an axis to the means of `count` windows. Maps are cached, since a model pools the same sizes
 * again.
 */
function adaptiveMap(size: number, count: number): AxisMap {
  return knownMap(`${size} ${count}`, () => {
    const starts = Array.from({ length: count }, (_, at) => Math.floor((at * size) / count));
    const lengths = starts.map((start, at) => Math.ceil(((at + 1) * size) / count) - start);
    return { input: size, starts, lengths, divisors: lengths };
  });
}

function meansAlong(x: Tensor, axis: number, count: number): Tensor {
  const size = x.shape[axis];
  if (count === 1) return mean(x, { dim: axis, keepdim: true });
  if (size % count === 0)
    return mean(reshape(x, [...x.shape.slice(0, axis), count, size / count, ...x.shape.slice(axis + 1)]), {
      dim: axis + 1,
    });
  const parts = Array.from({ length: count }, (_, at) => {
    const [start, end] = [Math.floor((at * size) / count), Math.ceil(((at + 1) * size) / count)];
    return mean(narrow(x, axis, start, end - start), { dim: axis, keepdim: true });
  });
  return cat(parts, axis);
}
