/** The primitives of matrix products, with their gradients. */

import { record } from "../../autograd/record.ts";
import type { Primitive } from "../../backend/backend.ts";
import { execute } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { lastElement } from "../../core/collections.ts";
import type { DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { broadcastShapes, broadcastStrides, type Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { mul } from "../elementwise/arithmetic.ts";
import { sumTo } from "../view/expand.ts";
import { productCpu } from "./matmul.cpu.ts";
import { productMetal } from "./matmul.metal.ts";
import { productReference } from "./matmul.reference.ts";
import type { ProductScale } from "./primitive.ts";
import { transposed } from "./views.ts";

/** @internal Defines a matrix product primitive with the given name. */
export const productPrimitive = (name: string): Primitive<ProductScale> =>
  definePrimitive({
    name,
    family: "matmul",
    implementations: { metal: productMetal, cpu: productCpu, reference: productReference },
  });

const matmulPrimitive = productPrimitive("matmul");
const addmmPrimitive = productPrimitive("addmm");

/** Computes alpha · a · b of matrices, or of batches that broadcast. The caller checks the operands. */
export function product<D extends DType>(a: Tensor<D>, b: Tensor<D>, alpha = 1): Tensor<D> {
  const [left, right] = [plainList(a.shape), plainList(b.shape)];
  const batch = broadcastShapes("matmul", left.slice(0, -2), right.slice(0, -2));
  const shape = [...batch, left.at(-2)!, lastElement(right)];
  const output = execute(matmulPrimitive, [a, b], shape, a.dtype, { alpha, beta: 0 });
  const shapes = [a.shape, b.shape] as const;
  record("matmul", [a, b], [output], [a, b], ([gradient], [left, right], needs) => [
    needs[0] ? sumTo(product(gradient, transposed(right), alpha), shapes[0]) : null,
    needs[1] ? sumTo(product(transposed(left), gradient, alpha), shapes[1]) : null,
  ]);
  return output;
}

/**
 * Computes alpha · a · b + beta · input of matrices, or of batches of one shape; the input broadcasts. The caller
 * checks the operands.
 */
export function productWithInput<D extends DType>(
  input: Tensor<D>,
  a: Tensor<D>,
  b: Tensor<D>,
  { alpha, beta }: ProductScale,
): Tensor<D> {
  const shape = [...plainList(a.shape).slice(0, -1), lastElement(plainList(b.shape))];
  using expanded = broadcastTo(input, shape);
  // An input with beta = 0 is ignored, so that its NaNs do not reach the result.
  const output = execute(addmmPrimitive, beta === 0 ? [a, b] : [a, b, expanded], shape, a.dtype, { alpha, beta });
  const inputShape = input.shape;
  record("addmm", [input, a, b], [output], [a, b], ([gradient], [left, right], needs) => [
    needs[0] ? scaled(sumTo(gradient, inputShape), beta) : null,
    needs[1] ? product(gradient, transposed(right), alpha) : null,
    needs[2] ? product(transposed(left), gradient, alpha) : null,
  ]);
  return output;
}

const scaled = <D extends DType>(x: Tensor<D>, factor: number): Tensor => (factor === 1 ? x : mul(x, factor));

/** @internal Broadcasts an operand to a shape: a view that is not recorded in the graph. */
export const broadcastTo = (input: Tensor, shape: Shape): Tensor =>
  new Tensor(input.storage, input.dtype, shape, broadcastStrides(input.shape, input.strides, shape), input.offset);
