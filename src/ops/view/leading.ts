import type { DType } from "../../tensor/dtype.ts";
import type { Shape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { narrow } from "./slice.ts";

/** @internal Returns {@link leading} as a view that is not recorded, and that the caller disposes of. */
export const leadingPart = <D extends DType>({ storage, dtype, strides, offset }: Tensor<D>, shape: Shape): Tensor<D> =>
  new Tensor(storage, dtype, shape, strides, offset);

/** @internal Returns the first `shape[i]` elements along each axis i. */
export const leading = <D extends DType>(x: Tensor<D>, shape: Shape): Tensor<D> =>
  shape.reduce((view, size, axis) => (size === view.shape[axis] ? view : narrow(view, axis, 0, size)), x);
