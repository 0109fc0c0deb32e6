import { lastElement } from "../../core/collections.ts";
import type { DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { collapse, elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { reshape } from "../view/reshape.ts";
import { checkFactors } from "./checks.ts";
import { product } from "./product.ts";
import { asColumns, asRows } from "./views.ts";

/** Computes `matmul` for other operations: `autocast` does not convert its operands. */
export function plainMatmul<D extends DType>(a: Tensor<D>, b: Tensor<D>): Tensor<D> {
  checkFactors("matmul", a, b);
  const row = a.rank === 1;
  const column = b.rank === 1;
  const left = row ? asRows(a) : a;
  const right = column ? asColumns(b) : b;
  const result = folded(left, right) ?? product(left, right);
  if (!row && !column) return result;
  const shape = plainList(result.shape);
  return reshape(result, [
    ...shape.slice(0, -2),
    ...(row ? [] : [shape.at(-2)!]),
    ...(column ? [] : [lastElement(shape)]),
  ]);
}

/**
 * Computes a batch times one matrix as a product of two matrices, by stacking the rows of the batch. The gradient of
 * the matrix is then one product too, instead of a sum over a batch of products. Returns null if stacking would copy
 * the rows without need.
 */
function folded<D extends DType>(a: Tensor<D>, b: Tensor<D>): Tensor<D> | null {
  if (a.rank === 2 || b.rank !== 2) return null;
  const shape = plainList(a.shape);
  const lead = shape.slice(0, -1);
  const isOneRun = collapse(lead, [plainList(a.strides).slice(0, -1)]).shape.length <= 1;
  if (!isOneRun && !b.requiresGrad) return null;
  return tidy(() => {
    const rows = reshape(a, [elementCount(lead), lastElement(shape)]);
    return reshape(product(rows, b), [...lead, plainList(b.shape)[1]]);
  });
}
