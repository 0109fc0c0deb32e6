/** The memory layout of rows and the phases of pairs of rotary position embeddings, for every backend. */
import { lastElement } from "../../core/collections.ts";
import { broadcastStrides, denseStrides, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** The strides of operands along the axes of rows: all axes but the last. */
export interface RowStrides {
  readonly shape: Shape;
  readonly x: readonly number[];
  readonly out: readonly number[];
  /**
   * Strides of the positions. Without a tensor of positions, the offset computed with these strides is the position:
   * the index along the axis before the last.
   */
  readonly positions: readonly number[];
}

/** Returns the strides of rows. Positions are [seq], or [batch, seq] with the first axis as batch. */
export function rowsOf(x: Tensor, out: Tensor, positions: Tensor | undefined): RowStrides {
  const shape = x.shape.slice(0, -1);
  const between = new Array<number>(shape.length - 1).fill(0);
  return {
    shape,
    x: x.strides.slice(0, -1),
    out: out.strides.slice(0, -1),
    positions: positions ? positionStrides(positions, shape) : [...between, 1],
  };
}

function positionStrides({ shape: given, strides }: Tensor, shape: Shape): readonly number[] {
  if (given.length === 1) return broadcastStrides(given, strides, shape);
  const between = new Array<number>(shape.length - 2).fill(0);
  return [strides[0], ...between, strides[1]];
}

/**
 * Returns the strides of a result: dense rows in the axis order of the operand, so that the result of a transposed view
 * is a transposed view.
 */
export const outputStrides = ({ shape, strides }: Tensor): readonly number[] => {
  const size = lastElement(shape);
  return [...denseStrides(shape.slice(0, -1), strides.slice(0, -1)).map((stride) => stride * size), 1];
};

/**
 * Returns the phases of pairs per position, in 2⁻⁶⁴ cycles: whole cycles wrap around, and negative ones count
 * backwards.
 */
export const phasesOf = (frequencies: readonly number[]): bigint[] =>
  frequencies.map((frequency) => phaseOf(frequency / (2 * Math.PI)));

/** Returns the phase of a number of cycles per position. */
export function phaseOf(cycles: number): bigint {
  const distance = Math.abs(cycles);
  const fraction = BigInt(Math.floor((distance - Math.floor(distance)) * 2 ** 64));
  return BigInt.asUintN(64, cycles < 0 ? -fraction : fraction);
}
