import { record } from "../../autograd/record.ts";
import { ShapeError } from "../../core/errors.ts";
import type { DType } from "../../tensor/dtype.ts";
import { formatShape, normalizeAxis } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { copyOf } from "../copy/copy.ts";

/**
 * A copy with axes reversed. It is read backwards through negative strides, so each element moves once.
 *
 * @example
 * flip(tensor([[1, 2], [3, 4]]), [1]); // [[2, 1], [4, 3]]
 *
 * @throws {ShapeError} for an axis out of range or named twice.
 */
export function flip<D extends DType>(x: Tensor<D>, dims: number | readonly number[]): Tensor<D> {
  const axes = [dims].flat().map((dim) => normalizeAxis("flip", dim, x.rank));
  if (new Set(axes).size !== axes.length)
    throw new ShapeError("flip", "axisTwice", `dims ${formatShape([dims].flat())} names an axis twice`);
  x.checkAlive("flip");
  const isReversed = x.shape.map((size, axis) => axes.includes(axis) && size > 0);
  const strides = x.strides.map((stride, axis) => (isReversed[axis] ? -stride : stride));
  const start = x.shape.reduce(
    (sum, size, axis) => sum + (isReversed[axis] ? (size - 1) * x.strides[axis]! : 0),
    x.offset,
  );
  const reversed = new Tensor(x.storage, x.dtype, x.shape, strides, x.size === 0 ? x.offset : start);
  const output = copyOf("flip", reversed);
  reversed.dispose();
  record("flip", [x], [output], [], ([gradient]) => [flip(gradient!, dims)]);
  return output;
}
flip.method = "same" as const;
