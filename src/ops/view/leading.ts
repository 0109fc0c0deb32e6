import type { DType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { narrow } from "./slice.ts";

/** @internal {@link leading} as a view that the tape knows nothing of, and that the caller disposes of. */
export const leadingPart = <D extends DType>({ storage, dtype, strides, offset }: Tensor<D>, shape: Shape): Tensor<D> =>
  new Tensor(storage, dtype, shape, strides, offset);

/** @internal The part of a tensor with the first so many indices of each axis. */
export const leading = <D extends DType>(x: Tensor<D>, shape: Shape): Tensor<D> =>
  shape.reduce((view, size, axis) => (size === view.shape[axis] ? view : narrow(view, axis, 0, size)), x);
