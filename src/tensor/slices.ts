/** Slices of tensors along one axis: the elements along that axis for each index of the other axes. */

import { plainList, serialOf } from "./frozen.ts";
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
export function slicesOf(operands: readonly Tensor[], axis: number, order: SliceOrder = {}): Slices {
  const { reverse = false } = order;
  const { length, along, nest } = traversalOf(operands, axis, order);
  const offsets = new Array<number>(operands.length);
  for (let at = 0; at < operands.length; at++)
    offsets[at] = operands[at].offset + (reverse ? (1 - length) * along[at] : 0);
  return { length, along, offsets, nest };
}

/** The part of {@link Slices} that depends on shapes and strides alone. */
type Traversal = Omit<Slices, "offsets">;

/** A traversal and the arguments that it was computed from. */
interface Known {
  readonly shape: readonly number[];
  readonly strides: readonly (readonly number[])[];
  readonly key: number;
  readonly traversal: Traversal;
}

/** Number of cached traversals, one per hash. A small softmax would spend a third of its time on computing one. */
const SLOTS = 256;
const known = new Array<Known | null>(SLOTS).fill(null);

function traversalOf(operands: readonly Tensor[], axis: number, order: SliceOrder): Traversal {
  const { shape } = operands[0];
  const key = axis * 4 + (order.reverse ? 2 : 0) + (order.isOrdered ? 1 : 0);
  let hash = Math.imul(serialOf(shape) + operands.length, 0x9e3779b1) + key;
  for (let at = 0; at < operands.length; at++) hash = Math.imul(hash ^ serialOf(operands[at].strides), 0x9e3779b1);
  const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1);
  const found = known[slot]!;
  if (found !== null && found.shape === shape && found.key === key && haveStrides(operands, found.strides))
    return found.traversal;
  const traversal = traverse(operands, axis, order);
  known[slot] = { shape, strides: operands.map(({ strides }) => strides), key, traversal };
  return traversal;
}

function haveStrides(operands: readonly Tensor[], strides: readonly (readonly number[])[]): boolean {
  if (operands.length !== strides.length) return false;
  for (let at = 0; at < operands.length; at++) if (operands[at].strides !== strides[at]) return false;
  return true;
}

function traverse(
  operands: readonly Tensor[],
  axis: number,
  { reverse = false, isOrdered = false }: SliceOrder,
): Traversal {
  const shape = plainList(operands[0].shape);
  const strides = plainList(operands[0].strides);
  const length = shape[axis] ?? 1;
  const along = operands.map((operand) => plainList(operand.strides)[axis] ?? 1);
  const others: number[] = [];
  for (let other = 0; other < shape.length; other++) if (other !== axis) others.push(other);
  const distance = (other: number) => Math.abs(strides[other]) || Number.MAX_SAFE_INTEGER;
  if (!isOrdered && others.length > 1) others.sort((a, b) => distance(b) - distance(a));
  const nest = collapse(
    others.map((other) => shape[other]),
    operands.map((operand) => {
      const steps = plainList(operand.strides);
      return others.map((other) => steps[other]);
    }),
  );
  return {
    length,
    along: reverse ? along.map((stride) => -stride) : along,
    nest: nest.shape.length > 0 ? nest : { shape: [1], strides: operands.map(() => [1]) },
  };
}

/** Returns the number of slices. */
export const sliceCount = ({ nest }: Slices): number => elementCount(nest.shape);
