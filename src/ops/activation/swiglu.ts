import type { Tensor } from "../../tensor/tensor.ts";
import { binary, type ResultOf } from "../elementwise/binary.ts";

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
export const swiglu = <A extends Tensor, B extends Tensor>(gate: A, up: B): Tensor<ResultOf<A, B>> =>
  binary("swiglu", gate, up) as Tensor<ResultOf<A, B>>;
