import type { Tensor } from "../../tensor/tensor.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { reshape } from "../view/reshape.ts";
import { viewOf } from "../view/view.ts";
import { productBefore } from "./scan.ts";

/** @internal For each element the product of all others along the axes: of those before it and those after it, so that zeros do no harm. */
export function productOfOthers(x: Tensor, axes: readonly number[]): Tensor {
  const order = [...x.shape.keys()].filter((axis) => !axes.includes(axis)).concat(axes);
  const last = x.rank - axes.length;
  const moved = permuted(x, order);
  const lines = reshape(moved, [...moved.shape.slice(0, last), axes.reduce((size, axis) => size * x.shape[axis]!, 1)]);
  const products = mul(
    productBefore(lines, { axis: last, reverse: false }),
    productBefore(lines, { axis: last, reverse: true }),
  );
  return permuted(
    reshape(products, moved.shape),
    order.map((_, axis) => order.indexOf(axis)),
  );
}

/** A view with the axes in another order. */
function permuted(x: Tensor, order: readonly number[]): Tensor {
  const shape = order.map((axis) => x.shape[axis]!);
  const strides = order.map((axis) => x.strides[axis]!);
  const inverse = order.map((_, axis) => order.indexOf(axis));
  return viewOf("permute", x, shape, strides, x.offset, ([gradient]) => [permuted(gradient!, inverse)]);
}
