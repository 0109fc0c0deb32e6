import type { OrchardError } from "../../core/errors.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { IndexDType } from "./indices.ts";
import { checkSignedRange } from "./places.ts";
import type { IndexAttributes } from "./primitive.ts";
import { errorWithRange } from "./range.cpu.ts";

const vectorOf = ({ storage, dtype, shape, strides, offset }: Tensor, dim: number): Tensor =>
  new Tensor(storage, dtype, [shape[dim]], [strides[dim]], offset);

/** Returns the error of a call that checks the indices of an axis itself, naming the index that it rejected. */
export function indexRefusal(
  error: OrchardError,
  index: Tensor,
  size: number,
  { operation, dim, axes, isSigned, wraps }: IndexAttributes,
): unknown {
  // an index that is broadcast along the other axes is reported as the vector that it is
  if (wraps) checkSignedRange(operation, (axes ? vectorOf(index, dim) : index) as Tensor<IndexDType>, size);
  return errorWithRange(error, { operation, index, size, axes, isSigned });
}
