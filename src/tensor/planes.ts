/**
 * Views of the real and imaginary parts of complex tensors. They share the storage; their strides and offsets, in
 * elements, are twice as large.
 */
import { isComplex, realDType } from "./dtype.ts";
import { plainList } from "./frozen.ts";
import { Tensor } from "./tensor.ts";

/** A part of complex numbers: 0 is the real one, 1 the imaginary one. */
export type Part = 0 | 1;

/** Returns a view of one part of a complex tensor, which is not recorded in the graph. */
export function plane(x: Tensor, part: Part): Tensor {
  const strides = plainList(x.strides).map((stride) => 2 * stride);
  return new Tensor(x.storage, realDType(x.dtype), x.shape, strides, 2 * x.offset + part);
}

/**
 * Returns a view of a complex tensor with the parts as last axis: [..., 2]. It is not recorded in the graph, and its
 * rank may be one above the limit.
 */
export function realView(x: Tensor): Tensor {
  const strides = [...plainList(x.strides).map((stride) => 2 * stride), 1];
  return new Tensor(x.storage, realDType(x.dtype), [...x.shape, 2], strides, 2 * x.offset);
}

/**
 * Whether a tensor has complex elements. (It is not a type predicate, because that would require the members of Tensor
 * too early.)
 */
export const isComplexTensor = (x: Tensor): boolean => isComplex(x.dtype);
