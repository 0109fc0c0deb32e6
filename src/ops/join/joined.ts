/** Tensors joined along an axis, for the functions that check them first. */
import { needsGradient, record } from "../../autograd/record.ts";
import { emptyFor } from "../../backend/allocation.ts";
import type { DType } from "../../tensor/dtype.ts";
import { plainList } from "../../tensor/frozen.ts";
import { promote } from "../../tensor/promotion.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { copyInto } from "../copy/copy.ts";
import { reshape } from "../view/reshape.ts";
import { narrow } from "../view/slice.ts";

/** Computes `cat` of tensors that are already checked against `model`. */
export function joined<D extends DType>(
  operation: string,
  tensors: readonly Tensor<D>[],
  model: Tensor,
  axis: number,
): Tensor<D> {
  const [sizes, starts]: [number[], number[]] = [[], []];
  let total = 0;
  for (let index = 0; index < tensors.length; index++) {
    const x = tensors[index];
    const size = isNothing(x) ? 0 : plainList(x.shape)[axis];
    sizes.push(size);
    starts.push(total);
    total += size;
  }
  const shape = plainList(model.shape).with(axis, total);
  const output = emptyFor(tensors, shape, commonDType(tensors), operation) as Tensor<D>;
  const step = plainList(output.strides)[axis];
  for (let index = 0; index < tensors.length; index++) {
    const x = tensors[index];
    if (x.size === 0) continue;
    const offset = starts[index] * step;
    using part = new Tensor(output.storage, output.dtype, shape.with(axis, sizes[index]), output.strides, offset);
    copyInto(part, x);
  }
  if (!needsGradient(...tensors)) return output;
  const specs = tensors.map(({ shape, dtype }) => ({ shape, dtype }));
  record(operation, tensors, [output], [], ([gradient], _, needs) =>
    specs.map(({ shape, dtype }, index) => {
      if (!needs[index]) return null;
      return reshape(toDType(narrow(gradient, axis, starts[index], sizes[index]), dtype), shape);
    }),
  );
  return output;
}

/** Tensors of shape [0] can be joined with any others, as in PyTorch. */
export const isNothing = (x: Tensor): boolean => x.rank === 1 && x.shape[0] === 0;

export const commonDType = (tensors: readonly Tensor[]): DType =>
  tensors.reduce<DType>((dtype, x) => promote(dtype, x.dtype), tensors[0].dtype);

/** Whether two tensors have equal sizes on all axes but one. */
export function fitsAlong(x: Tensor, model: Tensor, axis: number): boolean {
  if (x === model) return true;
  const [sizes, others] = [plainList(x.shape), plainList(model.shape)];
  for (let at = 0; at < sizes.length; at++) if (at !== axis && sizes[at] !== others[at]) return false;
  return sizes.length === others.length;
}
