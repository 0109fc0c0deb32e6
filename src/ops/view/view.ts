import type { BackwardRule } from "../../autograd/node.ts";
import { record } from "../../autograd/record.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";

/** @internal A view: the same storage, another shape, strides or offset. `backward` carries the gradient back. */
export function viewOf<D extends DType>(
  operation: string,
  x: Tensor<D>,
  shape: Shape,
  strides: readonly number[],
  offset: number,
  backward: BackwardRule,
): Tensor<D> {
  x.checkAlive(operation);
  const view = new Tensor(x.storage, x.dtype, shape, strides, offset);
  record(operation, [x], [view], [], backward);
  return view;
}
