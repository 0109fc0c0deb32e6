import { broadcastShapes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul, type ResultOf } from "../elementwise/binary.ts";
import { promoteOperands } from "../elementwise/operands.ts";
import { silu } from "./silu.ts";

/**
 * silu(gate)·up for each pair of elements, broadcast: the hidden layer of a gated feed-forward network. Operands are read through their
 * strides: two halves of one projection are not copied.
 *
 * Source: N. Shazeer, "GLU variants improve transformer", 2020.
 *
 * @example
 * swiglu(tensor([0, 1]), tensor([5, 2])); // float32 [0, 1.462117]
 * swiglu(...chunk(projection, 2, { dim: -1 }));
 *
 * @throws {ShapeError} where the shapes can't be broadcast together.
 */
export function swiglu<A extends Tensor, B extends Tensor>(gate: A, up: B): Tensor<ResultOf<A, B>> {
  const [left, right] = promoteOperands("swiglu", [gate, up], "floats") as [Tensor, Tensor];
  broadcastShapes("swiglu", left.shape, right.shape);
  return mul(silu(left), right) as Tensor<ResultOf<A, B>>;
}
