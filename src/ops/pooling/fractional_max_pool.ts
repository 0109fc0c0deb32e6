/** Fractional max pooling. */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { named, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { elementCount, sameShape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { alongAxes, type PerAxis, perAxis } from "../convolution/geometry.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { arange } from "../creation/arange.ts";
import { add, mul, sub } from "../elementwise/arithmetic.ts";
import { eq } from "../elementwise/comparison.ts";
import { floor } from "../elementwise/rounding.ts";
import { where } from "../elementwise/where.ts";
import { gatherAlong, scatterAddAlong } from "../indexing/adjoint.ts";
import { aGenerator, type GeneratorOptions } from "../random/distribution.ts";
import { rand } from "../random/rand.ts";
import { max } from "../reduction/extrema.ts";
import { filled } from "../view/embed.ts";
import { reshape } from "../view/reshape.ts";
import { select } from "../view/slice.ts";
import { unsqueeze } from "../view/squeeze.ts";
import { fractionalMaxima, fusesFractional } from "./fractional_max_pool.cpu.ts";
import type { PooledWithIndices } from "./max_pool.ts";
import { checkAxes } from "./windows.ts";

/**
 * Options of {@link fractionalMaxPool2d} and {@link fractionalMaxPool3d}. Exactly one of `outputSize` and `outputRatio`
 * is required.
 */
export interface FractionalMaxPoolOptions extends GeneratorOptions {
  /** The output size: one for all axes, or one for each. */
  outputSize?: PerAxis | undefined;
  /** The output size as a fraction of x's size, between 0 and 1. */
  outputRatio?: PerAxis | undefined;
  /** Whether to also return the indices of the largest elements. Default false. */
  returnIndices?: boolean | undefined;
  /**
   * Random offsets of the windows in [0, 1): [batch, channels, 2] for width and height, or [batch, channels, 3] for
   * depth, height and width, as in PyTorch. Default: drawn.
   */
  randomSamples?: Tensor | undefined;
}

const fractionalParameters = (operation: string) =>
  parameters(operation, {
    x: operand(aTensor),
    kernelSize: required(perAxis),
    outputSize: optional(perAxis),
    outputRatio: optional(perAxis),
    returnIndices: optional(flag, false),
    randomSamples: named(aTensor),
    generator: named(aGenerator),
  });

/**
 * Computes fractional max pooling: the largest element of each window, with steps of varying size between windows, so
 * that any output size is possible. If elements are equal, the first gets the gradient.
 *
 * Source: B. Graham, "Fractional Max-Pooling", 2014.
 *
 * @param x [batch, channels, height, width], or without a batch
 * @param kernelSize the window size: one for both axes, or one for each
 *
 * @example
 * fractionalMaxPool2d(x, 2, { outputRatio: 0.7 });
 *
 * @throws {ShapeError} if x has an unsupported rank, or fewer elements than the windows need. @throws {DTypeError} if x
 * is not a float. @throws {ArgumentError} for sizes below 1, or unless exactly one of `outputSize` and `outputRatio` is
 * given.
 */
export function fractionalMaxPool2d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: FractionalMaxPoolOptions & { returnIndices: true },
): PooledWithIndices<D>;
export function fractionalMaxPool2d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: FractionalMaxPoolOptions,
): Tensor<D>;
export function fractionalMaxPool2d(...values: unknown[]): Tensor | PooledWithIndices<DType> {
  return fractionalMaxPool("fractionalMaxPool2d", fractionalMaxPool2dParameters(values), 2);
}
const fractionalMaxPool2dParameters = fractionalParameters("fractionalMaxPool2d");

/**
 * Computes fractional max pooling over three axes: see {@link fractionalMaxPool2d}.
 *
 * @param x [batch, channels, depth, height, width], or without a batch
 *
 * @example
 * fractionalMaxPool3d(x, 2, { outputSize: 4 });
 */
export function fractionalMaxPool3d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: FractionalMaxPoolOptions & { returnIndices: true },
): PooledWithIndices<D>;
export function fractionalMaxPool3d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: FractionalMaxPoolOptions,
): Tensor<D>;
export function fractionalMaxPool3d(...values: unknown[]): Tensor | PooledWithIndices<DType> {
  return fractionalMaxPool("fractionalMaxPool3d", fractionalMaxPool3dParameters(values), 3);
}
const fractionalMaxPool3dParameters = fractionalParameters("fractionalMaxPool3d");

type FractionalCall = ReturnType<ReturnType<typeof fractionalParameters>>;

function fractionalMaxPool(
  operation: string,
  { x, kernelSize, returnIndices, randomSamples, generator, ...sizes }: FractionalCall,
  rank: number,
): Tensor | PooledWithIndices<DType> {
  checkAxes(operation, x, rank);
  const kernel = alongAxes(operation, "kernelSize", kernelSize, rank, 1);
  const output = outputOf(operation, x, sizes, rank);
  const planes = x.shape.slice(0, -rank);
  for (const [at, size] of x.shape.slice(-rank).entries()) {
    const needed = output[at] + kernel[at] - 1;
    if (needed > size)
      throw new ShapeError(
        operation,
        "windowTooLarge",
        `expected at least ${needed} elements along axis ${x.rank - rank + at}, got ${x.describe()}`,
      );
  }
  checkSamples(operation, x, randomSamples, rank);
  return underName(operation, () =>
    tidy(() => {
      const samples = noGrad(() => {
        const given = randomSamples ?? rand([...planes, rank], { dtype: "float32", generator });
        return reshape(toDType(given, "float32"), [...planes, rank]);
      });
      const windows = { output, kernel };
      const pooled =
        rank === 2 && fusesFractional(x, samples)
          ? inOneCall(operation, x, samples, windows)
          : composed(operation, x, samples, windows, returnIndices);
      return returnIndices ? pooled : pooled.values;
    }),
  );
}

interface FractionalWindows {
  readonly output: readonly number[];
  readonly kernel: readonly number[];
}

/** The gradient of each largest element goes to its index. */
function inOneCall(
  operation: string,
  x: Tensor,
  samples: Tensor,
  windows: FractionalWindows,
): PooledWithIndices<DType> {
  const [values, indices] = fractionalMaxima(operation, contiguous(x), contiguous(samples), windows);
  const { shape } = x;
  record(operation, [x], [values], [indices], ([gradient], [saved]) => {
    const planes = shape.slice(0, -2);
    const flat = <D extends DType>(each: Tensor<D>): Tensor<D> => reshape(each, [...planes, -1]);
    const none = filled([...planes, shape.at(-2)! * shape.at(-1)!], gradient.dtype, 0);
    return [reshape(scatterAddAlong(operation, none, flat(saved), flat(gradient), planes.length), shape)];
  });
  return { values, indices };
}

/** Gathers the elements of each window. The indices are computed only if they are needed. */
function composed(
  operation: string,
  x: Tensor,
  samples: Tensor,
  { output, kernel }: FractionalWindows,
  needsIndices: boolean,
): PooledWithIndices<DType> {
  const rank = output.length;
  const planes = x.shape.slice(0, -rank);
  const input = x.shape.slice(-rank);
  const places = noGrad(() => placesOf(samples, input, { output, kernel })); // […, ...output, ...kernel]
  const flat = reshape(x, [...planes, elementCount(input)]);
  const window = elementCount(kernel);
  const picked = gatherAlong(
    operation,
    flat,
    reshape(places, [...planes, elementCount(output) * window]),
    planes.length,
  );
  const elements = reshape(picked, [...planes, ...output, window]);
  const { values, indices: choices } = max(elements, { dim: -1 });
  if (!needsIndices) return { values, indices: choices };
  const lines = reshape(places, elements.shape);
  const chosen = gatherAlong(operation, lines, unsqueeze(choices, -1), elements.rank - 1);
  return { values, indices: reshape(chosen, values.shape) };
}

/** Returns the index in its plane of each element of each window: [...planes, ...output, ...kernel]. */
function placesOf(samples: Tensor, input: readonly number[], { output, kernel }: FractionalWindows): Tensor<"int64"> {
  const rank = input.length;
  const planes = samples.shape.slice(0, -1);
  const along = input.map((size, axis) => {
    // the samples of two axes are in the order width, height, and those of three in the order of the axes
    const sample = select(samples, -1, rank === 2 ? 1 - axis : axis);
    const places = placesAlong(sample, { size, output: output[axis], kernel: kernel[axis] });
    const only = (sizes: readonly number[]) => sizes.map((length, at) => (at === axis ? length : 1));
    const shaped = reshape(places, [...planes, ...only(output), ...only(kernel)]);
    return mul(shaped, BigInt(elementCount(input.slice(axis + 1))));
  });
  return along.reduce((sum, each) => add(sum, each));
}

/** Returns the positions of each window's elements along an axis. The last window ends at the end of the axis. */
function placesAlong(
  sample: Tensor,
  { size, output, kernel }: { readonly size: number; readonly output: number; readonly kernel: number },
): Tensor<"int64"> {
  const step = output > 1 ? (size - kernel) / (output - 1) : 0;
  const start = unsqueeze(sample, -1);
  const at = arange(output, { dtype: "float32" });
  const moved = sub(floor(mul(add(at, start), step)), floor(mul(start, step)));
  const starts = toDType(where(eq(at, output - 1), size - kernel, moved), "int64");
  return add(unsqueeze(starts, -1), arange(kernel, { dtype: "int64" }));
}

function outputOf(
  operation: string,
  x: Tensor,
  { outputSize, outputRatio }: Pick<FractionalCall, "outputSize" | "outputRatio">,
  rank: number,
): number[] {
  if ((outputSize === undefined) === (outputRatio === undefined))
    throw new ArgumentError(
      operation,
      "missingArgument",
      "expected either outputSize or outputRatio, got neither or both",
    );
  if (outputSize !== undefined) return alongAxes(operation, "outputSize", outputSize, rank, 1);
  const ratios = typeof outputRatio === "number" ? new Array<number>(rank).fill(outputRatio) : outputRatio!;
  if (ratios.length !== rank || !ratios.every((ratio) => ratio > 0 && ratio < 1))
    throw new ArgumentError(
      operation,
      "invalidRatio",
      `expected outputRatio to be one number or ${rank} numbers between 0 and 1, got ${JSON.stringify(outputRatio)}`,
    );
  const sizes = x.shape.slice(-rank).map((size, at) => Math.floor(size * ratios[at]));
  return alongAxes(operation, "the size by outputRatio", sizes, rank, 1);
}

function checkSamples(operation: string, x: Tensor, samples: Tensor | undefined, rank: number): void {
  if (samples === undefined) return;
  const expected = [x.rank === rank + 2 ? x.shape[0] : 1, x.shape.at(-rank - 1)!, rank];
  if (!sameShape(samples.shape, expected))
    throw new ShapeError(
      operation,
      "shapesDiffer",
      `expected randomSamples to be [${expected.join(", ")}], got ${samples.describe()}`,
    );
  if (samples.dtype !== x.dtype)
    throw new DTypeError(
      operation,
      "dtypesDiffer",
      `expected randomSamples to have the dtype of x, ${x.dtype}, got ${samples.dtype}`,
    );
}
