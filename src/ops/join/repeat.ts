import { record } from "../../autograd/record.ts";
import { empty } from "../../backend/dispatch.ts";
import { ShapeError } from "../../errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import { checkShape, elementCount, formatShape, MAX_RANK, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { copyInto } from "../copy/copy.ts";
import { sum } from "../reduction/sum.ts";
import { reshape } from "../view/reshape.ts";

/**
 * A copy that holds `x` several times along each axis. Each element is written once.
 *
 * @param repeats how often along each axis; more of them than `x` has axes make new ones in front
 *
 * @example
 * repeat(tensor([1, 2]), [2, 2]); // [[1, 2, 1, 2], [1, 2, 1, 2]]
 *
 * @throws {ShapeError} for fewer repeats than axes, or one that is negative or not whole.
 */
export const repeat = <D extends DType>(x: Tensor<D>, repeats: readonly number[]): Tensor<D> =>
  copies("repeat", x, repeats);

function copies<D extends DType>(operation: string, x: Tensor<D>, repeats: readonly number[]): Tensor<D> {
  x.checkAlive(operation);
  if (repeats.length < x.rank)
    throw new ShapeError(
      operation,
      "wrongRank",
      `repeats ${formatShape(repeats)} came for ${x.describe()}; at least ${x.rank} are wanted`,
    );
  checkShape(operation, repeats);
  const own = reshape(x, [...new Array<number>(repeats.length - x.rank).fill(1), ...x.shape]);
  return tooManyAxes(own.shape, repeats) ? inTwoSteps(operation, own, repeats) : repeated(operation, own, repeats);
}

/**
 * As {@link repeat}, but that fewer repeats than axes are those of the last ones.
 *
 * @example
 * tile(tensor([[1, 2]]), [2]); // [[1, 2, 1, 2]]
 */
export const tile = <D extends DType>(x: Tensor<D>, repeats: readonly number[]): Tensor<D> =>
  copies("tile", x, [...new Array<number>(Math.max(0, x.rank - repeats.length)).fill(1), ...repeats]);

/** Copying sees an axis that is repeated as two: copies, and the elements of each. */
const splits = (size: number, times: number): boolean => size !== 1 && times !== 1;

const tooManyAxes = (shape: Shape, repeats: readonly number[]): boolean =>
  shape.reduce((rank, size, axis) => rank + (splits(size, repeats[axis]!) ? 2 : 1), 0) > MAX_RANK;

/** Half of the axes, then the others: what no loop over eight axes does at once. */
function inTwoSteps<D extends DType>(operation: string, x: Tensor<D>, repeats: readonly number[]): Tensor<D> {
  const last = repeats.map((times, axis) => (axis < MAX_RANK / 2 ? 1 : times));
  const first = repeats.map((times, axis) => (axis < MAX_RANK / 2 ? times : 1));
  return repeated(operation, repeated(operation, x, last), first);
}

function repeated<D extends DType>(operation: string, x: Tensor<D>, repeats: readonly number[]): Tensor<D> {
  const shape = checkShape(
    operation,
    x.shape.map((size, axis) => size * repeats[axis]!),
  );
  const output = empty(shape, x.dtype, {}, operation);
  if (output.size > 0) copyRepeated(output, x, repeats);
  const own = x.shape;
  record(operation, [x], [output], [], ([gradient]) => [sumOfCopies(gradient!, own, repeats)]);
  return output;
}

function copyRepeated(output: Tensor, x: Tensor, repeats: readonly number[]): void {
  const axes = x.shape.flatMap((size, axis) => {
    const times = repeats[axis]!;
    const stride = output.strides[axis]!;
    const whole = { size: size * times, stride, from: times === 1 ? x.strides[axis]! : 0 };
    if (!splits(size, times)) return [whole];
    return [
      { size: times, stride: stride * size, from: 0 },
      { size, stride, from: x.strides[axis]! },
    ];
  });
  const shape = axes.map(({ size }) => size);
  const viewed = (tensor: Tensor, strides: readonly number[]) =>
    new Tensor(tensor.storage, tensor.dtype, shape, strides, tensor.offset);
  using to = viewed(
    output,
    axes.map(({ stride }) => stride),
  );
  using from = viewed(
    x,
    axes.map((axis) => axis.from),
  );
  copyInto(to, from);
}

/** The sum of a gradient over the copies along each axis. */
function sumOfCopies(gradient: Tensor, shape: Shape, repeats: readonly number[]): Tensor {
  let result = gradient;
  for (const [axis, times] of repeats.entries()) {
    if (times === 1) continue;
    const outer = elementCount(result.shape.slice(0, axis));
    const inner = elementCount(result.shape.slice(axis + 1)) * shape[axis]!;
    const summed = sum(reshape(result, [outer, times, inner]), { dim: 1 });
    result = reshape(summed, result.shape.with(axis, shape[axis]!));
  }
  return result;
}
