import { record } from "../../autograd/record.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";

/**
 * @internal Creates and records a view: the same storage with another shape, strides or offset. `backward` is its
 * gradient; it commutes with complex conjugation.
 */
export function viewOf<D extends DType>(
  operation: string,
  x: Tensor<D>,
  shape: Shape,
  strides: readonly number[],
  offset: number,
  backward: (gradients: readonly [Tensor]) => readonly (Tensor | null)[],
): Tensor<D> {
  x.checkAlive(operation);
  const view = new Tensor(x.storage, x.dtype, shape, strides, offset);
  record(operation, [x], [view], [], backward, "none");
  return view;
}
