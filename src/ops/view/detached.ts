import type { DType } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";

/** @internal The same elements without the history: what an operation cuts into views that are none of the tape's business. */
export function detached<D extends DType>(x: Tensor<D>, operation: string): Tensor<D> {
  x.checkAlive(operation);
  return new Tensor(x.storage, x.dtype, x.shape, x.strides, x.offset);
}
