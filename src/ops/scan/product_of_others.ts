import type { Tensor } from "../../tensor/tensor.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { permute } from "../view/permute.ts";
import { reshape } from "../view/reshape.ts";
import { productBefore } from "./scan.ts";

/**
 * @internal Computes, for each element, the product of all others along the axes. It multiplies the product of the
 * elements before by the product of the elements after, which is also correct if elements are 0.
 */
export function productOfOthers(x: Tensor, axes: readonly number[]): Tensor {
  const order = [...x.shape.keys()].filter((axis) => !axes.includes(axis)).concat(axes);
  const last = x.rank - axes.length;
  const moved = permute(x, order);
  const length = axes.reduce((size, axis) => size * x.shape[axis], 1);
  const slices = reshape(moved, [...moved.shape.slice(0, last), length]);
  const products = mul(
    productBefore(slices, { axis: last, reverse: false }),
    productBefore(slices, { axis: last, reverse: true }),
  );
  return permute(
    reshape(products, moved.shape),
    order.map((_, axis) => order.indexOf(axis)),
  );
}
