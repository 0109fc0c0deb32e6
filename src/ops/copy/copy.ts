import { record } from "../../autograd/record.ts";
import { execute, executeInto } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { copyCpu } from "./copy.cpu.ts";
import { copyMetal } from "./copy.metal.ts";
import { copyReference } from "./copy.reference.ts";

/**
 * Copies elements from any strides to any strides, converting the dtype; the input is broadcast to the output's shape.
 */
export const copyPrimitive = definePrimitive({
  name: "copy",
  family: "copy",
  implementations: { metal: copyMetal, cpu: copyCpu, reference: copyReference },
});

/**
 * Returns a contiguous copy in new memory, of the shape and dtype of x. It is part of the graph; for a copy without
 * history, call `x.detach().clone()`.
 *
 * @example
 * const x = tensor([1, 2]);
 * clone(x).fill_(0); // x is unchanged
 */
export function clone<D extends DType>(x: Tensor<D>): Tensor<D>;
export function clone(...values: unknown[]): Tensor {
  return copyOf("clone", cloneParameters(values).x);
}
clone.method = "same" as const;
const cloneParameters = parameters("clone", { x: operand(aTensor) });

/** @internal Returns a copy, with the name of another operation for errors. */
export function copyOf<D extends DType>(operation: string, x: Tensor<D>): Tensor<D> {
  const output = execute(copyPrimitive, [x], x.shape, x.dtype, undefined, operation);
  record(operation, [x], [output], [], (gradients) => gradients);
  return output;
}

/**
 * Returns the tensor itself if it is contiguous (row-major without gaps), else a contiguous copy.
 *
 * @returns a tensor of x's shape and dtype
 *
 * @example
 * contiguous(transpose(ones([2, 3]), 0, 1)).strides; // [2, 1]
 */
export function contiguous<D extends DType>(x: Tensor<D>): Tensor<D>;
export function contiguous(...values: unknown[]): Tensor {
  const { x } = contiguousParameters(values);
  return x.isContiguous ? x : copyOf("contiguous", x);
}
contiguous.method = "same" as const;
const contiguousParameters = parameters("contiguous", { x: operand(aTensor) });

/** @internal Copies into an existing tensor or view, converting the dtype, without recording it. */
export function copyInto(target: Tensor, source: Tensor): void {
  executeInto(copyPrimitive, [source], [target], undefined);
}
