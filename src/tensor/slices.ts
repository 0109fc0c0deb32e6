/** Slices of tensors along one axis: the elements along that axis for each index of the other axes. */

import { plainList } from "./frozen.ts";
import { collapse, elementCount, type LoopNest } from "./shape.ts";
import type { Tensor } from "./tensor.ts";

/** The traversal of operands of one shape along an axis. */
export interface Slices {
  /** The number of elements of a slice. */
  readonly length: number;
  /** The stride between elements of a slice, for each operand. */
  readonly along: readonly number[];
  /** The storage offset of the first slice's first element, for each operand. */
  readonly offsets: readonly number[];
  /** The other axes, at least one, with each operand's strides. Each element is a slice. */
  readonly nest: LoopNest;
}

/** Options of {@link slicesOf}. */
export interface SliceOrder {
  /** Whether to traverse slices from the last element to the first. */
  readonly reverse?: boolean;
  /** Whether slices keep row-major order. Otherwise the axis that is contiguous in the first operand is innermost. */
  readonly isOrdered?: boolean;
}

/** Returns the slices of operands of one shape along an axis. */
export function slicesOf(
  operands: readonly Tensor[],
  axis: number,
  { reverse = false, isOrdered = false }: SliceOrder = {},
): Slices {
  const shape = plainList(operands[0]!.shape);
  const strides = plainList(operands[0]!.strides);
  const length = shape[axis] ?? 1;
  const along = operands.map((operand) => plainList(operand.strides)[axis] ?? 1);
  const others: number[] = [];
  for (let other = 0; other < shape.length; other++) if (other !== axis) others.push(other);
  const distance = (other: number) => Math.abs(strides[other]!) || Number.MAX_SAFE_INTEGER;
  if (!isOrdered && others.length > 1) others.sort((a, b) => distance(b) - distance(a));
  const nest = collapse(
    others.map((other) => shape[other]!),
    operands.map((operand) => {
      const steps = plainList(operand.strides);
      return others.map((other) => steps[other]!);
    }),
  );
  return {
    length,
    along: reverse ? along.map((stride) => -stride) : along,
    offsets: operands.map(({ offset }, operand) => offset + (reverse ? (length - 1) * along[operand]! : 0)),
    nest: nest.shape.length > 0 ? nest : { shape: [1], strides: operands.map(() => [1]) },
  };
}

/** Returns the number of slices. */
export const sliceCount = ({ nest }: Slices): number => elementCount(nest.shape);
