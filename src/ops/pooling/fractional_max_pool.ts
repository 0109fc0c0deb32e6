/** Fractional max pooling. */
import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { underName } from "../../backend/dispatch.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { named, operand, optional, parameters, required } from "../../core/parameters.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
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

/** Options of {@link fractionalMaxPool2d}. Exactly one of `outputSize` and `outputRatio` is required. */
export interface FractionalMaxPoolOptions extends GeneratorOptions {
  /** The output size: one for both axes, or one for each. */
  outputSize?: PerAxis | undefined;
  /** The output size as a fraction of x's size, between 0 and 1. */
  outputRatio?: PerAxis | undefined;
  /** Whether to also return the indices of the largest elements. Default false. */
  returnIndices?: boolean | undefined;
  /** Random offsets of the windows in [0, 1), for width and height: [batch, channels, 2]. Default: drawn. */
  randomSamples?: Tensor | undefined;
}

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
  const { x, kernelSize, returnIndices, randomSamples, generator, ...sizes } = fractionalParameters(values);
  checkAxes(NAME, x, 2);
  const kernel = alongAxes(NAME, "kernelSize", kernelSize, 2, 1);
  const output = outputOf(x, sizes);
  const planes = x.shape.slice(0, -2);
  const [height, width] = tupleOf(x.shape.slice(-2), 2);
  for (const [at, size] of [height, width].entries()) {
    const needed = output[at] + kernel[at] - 1;
    const axis = x.rank - 2 + at;
    if (needed > size)
      throw new ShapeError(
        NAME,
        "windowTooLarge",
        `expected at least ${needed} elements along axis ${axis}, got ${x.describe()}`,
      );
  }
  checkSamples(x, randomSamples);
  return underName(NAME, () =>
    tidy(() => {
      const samples = noGrad(() => {
        const given = randomSamples ?? rand([...planes, 2], { dtype: "float32", generator });
        return reshape(toDType(given, "float32"), [...planes, 2]);
      });
      if (fusesFractional(x, samples)) {
        const { values: largest, indices } = inOneCall(x, samples, { output, kernel });
        return returnIndices ? { values: largest, indices } : largest;
      }
      const places = noGrad(() => {
        const fractions = samples;
        const rows = placesAlong(select(fractions, -1, 1), { size: height, output: output[0], kernel: kernel[0] });
        const columns = placesAlong(select(fractions, -1, 0), { size: width, output: output[1], kernel: kernel[1] });
        // […, rows, 1, window, 1] with […, 1, columns, 1, window]
        const lines = mul(unsqueeze(unsqueeze(rows, -2), -1), BigInt(width));
        return add(lines, unsqueeze(unsqueeze(columns, -3), -2));
      });
      const windows = reshape(places, [...planes, output[0] * output[1] * kernel[0] * kernel[1]]);
      const flat = reshape(x, [...planes, height * width]);
      const elements = reshape(gatherAlong(NAME, flat, windows, planes.length), [
        ...planes,
        ...output,
        kernel[0] * kernel[1],
      ]);
      const { values: largest, indices } = max(elements, { dim: -1 });
      if (!returnIndices) return largest;
      const choices = reshape(places, elements.shape);
      const chosen = gatherAlong(NAME, choices, unsqueeze(indices, -1), elements.rank - 1);
      return { values: largest, indices: reshape(chosen, largest.shape) };
    }),
  );
}
const NAME = "fractionalMaxPool2d";
const fractionalParameters = parameters(NAME, {
  x: operand(aTensor),
  kernelSize: required(perAxis),
  outputSize: optional(perAxis),
  outputRatio: optional(perAxis),
  returnIndices: optional(flag, false),
  randomSamples: named(aTensor),
  generator: named(aGenerator),
});

/** The gradient of each largest element goes to its index. */
function inOneCall(
  x: Tensor,
  samples: Tensor,
  windows: { readonly output: readonly number[]; readonly kernel: readonly number[] },
): PooledWithIndices<DType> {
  const [values, indices] = fractionalMaxima(NAME, contiguous(x), contiguous(samples), windows);
  const { shape } = x;
  record(NAME, [x], [values], [indices], ([gradient], [saved]) => {
    const planes = shape.slice(0, -2);
    const flat = <D extends DType>(each: Tensor<D>): Tensor<D> => reshape(each, [...planes, -1]);
    const none = filled([...planes, shape.at(-2)! * shape.at(-1)!], gradient.dtype, 0);
    return [reshape(scatterAddAlong(NAME, none, flat(saved), flat(gradient), planes.length), shape)];
  });
  return { values, indices };
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
  x: Tensor,
  {
    outputSize,
    outputRatio,
  }: { readonly outputSize?: PerAxis | undefined; readonly outputRatio?: PerAxis | undefined },
): number[] {
  if ((outputSize === undefined) === (outputRatio === undefined))
    throw new ArgumentError(NAME, "missingArgument", "expected either outputSize or outputRatio, got neither or both");
  if (outputSize !== undefined) return alongAxes(NAME, "outputSize", outputSize, 2, 1);
  const ratios = typeof outputRatio === "number" ? [outputRatio, outputRatio] : outputRatio!;
  if (ratios.length !== 2 || !ratios.every((ratio) => ratio > 0 && ratio < 1))
    throw new ArgumentError(
      NAME,
      "invalidRatio",
      `expected outputRatio to be one or two numbers between 0 and 1, got ${JSON.stringify(outputRatio)}`,
    );
  const sizes = x.shape.slice(-2).map((size, at) => Math.floor(size * ratios[at]));
  return alongAxes(NAME, "the size by outputRatio", sizes, 2, 1);
}

function checkSamples(x: Tensor, samples: Tensor | undefined): void {
  if (samples === undefined) return;
  const [batch, channels] = [x.rank === 4 ? x.shape[0] : 1, x.shape.at(-3)!];
  if (samples.rank !== 3 || samples.shape[0] !== batch || samples.shape[1] !== channels || samples.shape[2] !== 2)
    throw new ShapeError(
      NAME,
      "shapesDiffer",
      `expected randomSamples to be [${batch}, ${channels}, 2], got ${samples.describe()}`,
    );
  if (samples.dtype !== x.dtype)
    throw new DTypeError(
      NAME,
      "dtypesDiffer",
      `expected randomSamples to have the dtype of x, ${x.dtype}, got ${samples.dtype}`,
    );
}
