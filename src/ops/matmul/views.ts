/** Views of the operands of products; nothing is copied. */
import { record } from "../../autograd/record.ts";
import type { DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import type { Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { clone, copyInto } from "../copy/copy.ts";
import { scalarTensor } from "../elementwise/operands.ts";
import { expand } from "../view/expand.ts";
import { reshape } from "../view/reshape.ts";
import { viewOf } from "../view/view.ts";

/** Swaps the last two axes. */
export function transposed<D extends DType>(x: Tensor<D>): Tensor<D> {
  const { rank } = x;
  return permuted(x, [...Array(rank - 2).keys(), rank - 1, rank - 2]);
}

/** Returns vectors [..., k] as rows [..., 1, k]. */
export const asRows = <D extends DType>(x: Tensor<D>): Tensor<D> => vectorsAs("row", x);
/** Returns vectors [..., k] as columns [..., k, 1]. */
export const asColumns = <D extends DType>(x: Tensor<D>): Tensor<D> => vectorsAs("column", x);

function vectorsAs<D extends DType>(kind: "row" | "column", x: Tensor<D>): Tensor<D> {
  const { shape, rank } = x;
  const axis = kind === "row" ? rank - 1 : rank;
  const [sizes, steps] = [plainList(shape).toSpliced(axis, 0, 1), plainList(x.strides).toSpliced(axis, 0, 0)];
  return viewOf("unsqueeze", x, sizes, steps, x.offset, ([gradient]) => [reshape(gradient, shape)]);
}

/** Returns matrices [..., 1, 1] as numbers [...]. */
export function asNumbers(x: Tensor): Tensor {
  const { shape } = x;
  const [sizes, steps] = [plainList(shape).slice(0, -2), plainList(x.strides).slice(0, -2)];
  return viewOf("squeeze", x, sizes, steps, x.offset, ([gradient]) => [reshape(gradient, shape)]);
}

/** Permutes axes: axis i of the result is axis `order[i]` of x. */
export function permuted<D extends DType>(x: Tensor<D>, order: readonly number[]): Tensor<D> {
  if (order.every((from, axis) => from === axis)) return x;
  const inverse = order.map((_, axis) => order.indexOf(axis));
  const pick = (values: readonly number[]) => {
    const plain = plainList(values);
    return order.map((axis) => plain[axis]);
  };
  return viewOf("permute", x, pick(x.shape), pick(x.strides), x.offset, ([gradient]) => [permuted(gradient, inverse)]);
}

/** Returns the diagonal of two axes of equal size, in the place of the first axis. */
export function diagonalOf<D extends DType>(x: Tensor<D>, first: number, second: number): Tensor<D> {
  const strides = x.strides.with(first, x.strides[first] + x.strides[second]).toSpliced(second, 1);
  const shape = x.shape;
  return viewOf("diagonal", x, shape.toSpliced(second, 1), strides, x.offset, ([gradient]) => [
    diagonalEmbedded(gradient, shape, first, second),
  ]);
}

/** Returns zeros with `x` on the diagonal of two axes. */
function diagonalEmbedded(x: Tensor, shape: Shape, first: number, second: number): Tensor {
  const whole = clone(expand(scalarTensor(0, x.dtype), shape));
  copyInto(diagonalOf(whole, first, second), x);
  record("diagonalEmbed", [x], [whole], [], ([gradient]) => [diagonalOf(gradient, first, second)]);
  return whole;
}
