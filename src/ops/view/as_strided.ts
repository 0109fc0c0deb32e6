/** Views of any shape and strides within the memory range of a tensor. */
import { ArgumentError, ShapeError } from "../../core/errors.ts";
import { aNumber, listOf, someNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor, shapeList } from "../../tensor/kinds.ts";
import { checkShape, elementCount, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { clone } from "../copy/copy.ts";
import { arange } from "../creation/arange.ts";
import { div } from "../elementwise/division.ts";
import { maximum } from "../elementwise/extrema.ts";
import { scatterAddAlong } from "../indexing/adjoint.ts";
import { take } from "../indexing/take.ts";
import { filled } from "./embed.ts";
import { flatten } from "./flatten.ts";
import { viewOf } from "./view.ts";

/** Options of {@link asStrided}. */
export interface AsStridedOptions {
  /** Position of the first element in x's memory, in elements. Default: the position of x's first element. */
  storageOffset?: number | undefined;
}

/**
 * Returns a view of x's memory with any shape and strides. The element at index i is `storageOffset + Σ i · stride`
 * elements after the start of the memory. The view must stay between the first and the last element of x. If the view
 * repeats an element, the element's gradient is the sum over the repetitions.
 *
 * @param size the shape of the view
 * @param stride for each axis, the distance between adjacent elements, in elements
 *
 * @example
 * asStrided(tensor([1, 2, 3, 4]), [2, 2], [1, 2]); // float32 [[1, 3], [2, 4]]
 *
 * @throws {ShapeError} if the view would leave the range of x's elements, or the lengths of size and stride differ.
 * @throws {ArgumentError} for strides and offsets that are not whole numbers of at least 0.
 */
export function asStrided<D extends DType>(
  x: Tensor<D>,
  size: Shape,
  stride: readonly number[],
  ...options: Given<AsStridedOptions, ["storageOffset"]>
): Tensor<D>;
export function asStrided(...values: unknown[]): Tensor {
  const { x, size, stride, storageOffset } = asStridedParameters(values);
  const offset = storageOffset ?? x.offset;
  const shape = checkShape("asStrided", size);
  checkReach(x, shape, stride, offset);
  return strided(x, shape, stride, offset);
}
asStrided.method = "same" as const;
const wholeNumber = aNumber({
  holds: (value) => Number.isSafeInteger(value) && value >= 0,
  expected: "a whole number of at least 0",
});
const asStridedParameters = parameters("asStrided", {
  x: operand(aTensor),
  size: required(shapeList),
  stride: required(listOf(someNumber, "a list of numbers")),
  storageOffset: optional(wholeNumber),
});

function checkReach(x: Tensor, shape: Shape, stride: readonly number[], offset: number): void {
  if (stride.length !== shape.length)
    throw new ShapeError(
      "asStrided",
      "lengthsDiffer",
      `expected stride to have ${shape.length} numbers, one for each size, got ${stride.length}`,
    );
  const wrong = stride.find((step) => !Number.isSafeInteger(step) || step < 0);
  if (wrong !== undefined)
    throw new ArgumentError(
      "asStrided",
      "invalidStride",
      `expected stride to be whole numbers of at least 0, got ${wrong}`,
    );
  const [reached, input] = [{ shape, strides: stride, offset }, x];
  if (elementCount(shape) > 0 && (lowest(reached) < lowest(input) || highest(reached) > highest(input)))
    throw new ShapeError(
      "asStrided",
      "outOfMemory",
      `expected a view within elements ${lowest(input)} to ${highest(input)} of the memory of ${x.describe()}, ` +
        `got elements ${lowest(reached)} to ${highest(reached)}`,
    );
}

function strided(x: Tensor, shape: Shape, strides: readonly number[], offset: number): Tensor {
  const input = { shape: x.shape, strides: x.strides, offset: x.offset };
  return viewOf("asStrided", x, shape, strides, offset, ([gradient]) => [
    gradientOf(gradient, input, { shape, strides, offset }),
  ]);
}

interface Layout {
  readonly shape: Shape;
  readonly strides: readonly number[];
  readonly offset: number;
}

/** Returns the memory positions of a layout's elements in row-major order, relative to `start`. */
function placesOf({ shape, strides, offset }: Layout, start: number, all: Tensor<"int64">): Tensor<"int64"> {
  using view = new Tensor(all.storage, "int64", shape, strides, offset - start);
  return flatten(clone(view));
}

/**
 * Computes the gradient of x from the gradient of the view, through a buffer of memory positions, because both layouts
 * may repeat positions.
 */
function gradientOf(gradient: Tensor, input: Layout, view: Layout): Tensor {
  const [first, last] = [input, view].reduce(
    ([least, most], layout) => [Math.min(least, lowest(layout)), Math.max(most, highest(layout))],
    [Infinity, -1],
  );
  if (last < 0 || elementCount(input.shape) === 0) return filled(input.shape, gradient.dtype, 0);
  const all = arange(0, last - first + 1, { dtype: "int64" });
  const [to, from] = [placesOf(input, first, all), placesOf(view, first, all)];
  const none = filled([all.size], gradient.dtype, 0);
  const memory = scatterAddAlong("asStrided", none, from, flatten(gradient), 0);
  const counts = scatterAddAlong("asStrided", filled([all.size], "int64", 0n), to, filled([to.size], "int64", 1n), 0);
  // elements of x that share a position share its gradient equally, as in PyTorch
  const shared = div(memory, toDType(maximum(counts, 1n), gradient.dtype));
  return take(shared, to).reshape(input.shape);
}

const lowest = ({ shape, strides, offset }: Layout): number =>
  elementCount(shape) === 0
    ? Infinity
    : shape.reduce((sum, size, axis) => sum + (size - 1) * Math.min(strides[axis], 0), offset);
const highest = ({ shape, strides, offset }: Layout): number =>
  elementCount(shape) === 0
    ? -1
    : shape.reduce((sum, size, axis) => sum + (size - 1) * Math.max(strides[axis], 0), offset);
