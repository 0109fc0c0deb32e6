import { record } from "../../autograd/record.ts";
import { ShapeError } from "../../core/errors.ts";
import { axesInline } from "../../core/kinds.ts";
import { operand, parameters, required } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { formatShape, normalizeAxis } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { copyOf } from "../copy/copy.ts";

/**
 * Returns a copy with axes reversed. It reads x through negative strides, so each element is copied once.
 *
 * @param dims the axes to reverse, in a list or one by one
 *
 * @example
 * flip(tensor([[1, 2], [3, 4]]), [1]); // [[2, 1], [4, 3]]
 *
 * @throws {ShapeError} for an axis out of range or given twice.
 */
export function flip<D extends DType>(x: Tensor<D>, ...dims: [dims: number | readonly number[]] | number[]): Tensor<D>;
export function flip(...values: unknown[]): Tensor {
  const { x, dims } = flipParameters(values);
  const axes = [dims].flat().map((dim) => normalizeAxis("flip", dim, x.rank, "dims"));
  if (new Set(axes).size !== axes.length)
    throw new ShapeError("flip", "axisTwice", `dims ${formatShape([dims].flat())} names an axis twice`);
  const isReversed = x.shape.map((size, axis) => axes.includes(axis) && size > 0);
  const strides = x.strides.map((stride, axis) => (isReversed[axis] ? -stride : stride));
  const start = x.shape.reduce(
    (sum, size, axis) => sum + (isReversed[axis] ? (size - 1) * x.strides[axis] : 0),
    x.offset,
  );
  const reversed = new Tensor(x.storage, x.dtype, x.shape, strides, x.size === 0 ? x.offset : start);
  const output = copyOf("flip", reversed);
  reversed.dispose();
  record("flip", [x], [output], [], ([gradient]) => [flip(gradient, axes)]);
  return output;
}
flip.method = "same" as const;
const flipParameters = parameters("flip", { x: operand(aTensor), dims: required(axesInline) });
