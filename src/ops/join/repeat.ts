import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { emptyFor } from "../../backend/allocation.ts";
import { ShapeError } from "../../core/errors.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aShape, aTensor, type ShapeArguments } from "../../tensor/kinds.ts";
import {
  checkShape,
  collapse,
  elementCount,
  formatShape,
  type LoopNest,
  MAX_RANK,
  rowMajorStrides,
  type Shape,
} from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { contiguous, copyInto } from "../copy/copy.ts";
import { sum } from "../reduction/sum.ts";
import { reshape } from "../view/reshape.ts";

/**
 * Returns a copy that repeats `x` along each axis.
 *
 * @param repeats the number of repeats along each axis, in a list or one by one; extra numbers add leading axes
 *
 * @example
 * repeat(tensor([1, 2]), 2, 2); // [[1, 2, 1, 2], [1, 2, 1, 2]]
 *
 * @throws {ShapeError} for fewer repeats than axes, or a negative or fractional number.
 */
export function repeat<D extends DType>(x: Tensor<D>, ...repeats: ShapeArguments): Tensor<D>;
export function repeat(...values: unknown[]): Tensor {
  const { x, repeats } = repeatParameters(values);
  return copies("repeat", x, repeats);
}
const repeating = { x: operand(aTensor), repeats: required(aShape) } as const;
const repeatParameters = parameters("repeat", repeating);
repeat.method = "same" as const;

function copies<D extends DType>(operation: string, x: Tensor<D>, repeats: readonly number[]): Tensor<D> {
  if (repeats.length < x.rank)
    throw new ShapeError(
      operation,
      "wrongRank",
      `expected at least ${x.rank} repeats for ${x.describe()}, got ${formatShape(repeats)}`,
    );
  const times = checkShape(operation, repeats); // a copy
  const aligned = reshape(x, [...new Array<number>(times.length - x.rank).fill(1), ...x.shape]);
  return repeated(operation, aligned, times);
}

/**
 * Repeats a tensor as {@link repeat} does; if there are fewer repeats than axes, they apply to the last axes.
 *
 * @example
 * tile(tensor([[1, 2]]), 2); // [[1, 2, 1, 2]]
 */
export function tile<D extends DType>(x: Tensor<D>, ...repeats: ShapeArguments): Tensor<D>;
export function tile(...values: unknown[]): Tensor {
  const { x, repeats } = tileParameters(values);
  return copies("tile", x, [...new Array<number>(Math.max(0, x.rank - repeats.length)).fill(1), ...repeats]);
}
const tileParameters = parameters("tile", repeating);
tile.method = "same" as const;

function repeated<D extends DType>(operation: string, x: Tensor<D>, repeats: readonly number[]): Tensor<D> {
  const shape = checkShape(
    operation,
    x.shape.map((size, axis) => size * repeats[axis]),
  );
  const loop = loopOf(x, repeats, rowMajorStrides(shape));
  const output =
    loop.shape.length <= MAX_RANK ? atOnce(operation, x, shape, loop) : tidy(() => axisByAxis(operation, x, repeats));
  const inputShape = x.shape;
  record(operation, [x], [output], [], ([gradient]) => [sumOfCopies(gradient, inputShape, repeats)]);
  return output;
}

/**
 * Returns the loop of the copy. A repeated axis becomes two: the copies, and the elements of each. Strides are the
 * output's, then `x`'s.
 */
function loopOf(x: Tensor, repeats: readonly number[], strides: readonly number[]): LoopNest {
  const axes = x.shape.flatMap((size, axis) => [
    { size: repeats[axis], to: strides[axis] * size, from: 0 },
    { size, to: strides[axis], from: x.strides[axis] },
  ]);
  return collapse(
    axes.map(({ size }) => size),
    [axes.map(({ to }) => to), axes.map(({ from }) => from)],
  );
}

/** Copies in one launch: each element of the output is written once. */
function atOnce<D extends DType>(operation: string, x: Tensor<D>, shape: Shape, loop: LoopNest): Tensor<D> {
  const output = emptyFor([x], shape, x.dtype, operation);
  using to = new Tensor(output.storage, x.dtype, loop.shape, loop.strides[0]);
  using from = new Tensor(x.storage, x.dtype, loop.shape, loop.strides[1], x.offset);
  if (output.size > 0) copyInto(to, from);
  return output;
}

/**
 * Copies axis by axis, for loops that would need more than eight axes. With the other axes merged, repeating one axis
 * needs three.
 */
function axisByAxis<D extends DType>(operation: string, x: Tensor<D>, repeats: readonly number[]): Tensor<D> {
  let result = noGrad(() => contiguous(x));
  for (const [axis, times] of repeats.entries()) {
    if (times === 1) continue;
    const shape = result.shape.with(axis, result.shape[axis] * times);
    const only = repeats.map((_, at) => (at === axis ? times : 1));
    result = atOnce(operation, result, shape, loopOf(result, only, rowMajorStrides(shape)));
  }
  return result;
}

/** Sums a gradient over the copies along each axis. */
function sumOfCopies(gradient: Tensor, shape: Shape, repeats: readonly number[]): Tensor {
  let result = gradient;
  for (const [axis, times] of repeats.entries()) {
    if (times === 1) continue;
    const outer = elementCount(result.shape.slice(0, axis));
    const inner = elementCount(result.shape.slice(axis + 1)) * shape[axis];
    const summed = sum(reshape(result, [outer, times, inner]), { dim: 1 });
    result = reshape(summed, result.shape.with(axis, shape[axis]));
  }
  return result;
}
