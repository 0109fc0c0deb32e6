/** How the rows of a rotary position embedding lie in memory, and how far pairs rotate, for every backend. */
import { broadcastStrides, denseStrides, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** An operand's strides along the axes of rows, which are all but the last one. */
export interface RowStrides {
  readonly shape: Shape;
  readonly x: readonly number[];
  readonly out: readonly number[];
  /**
   * Of the tensor of positions; without one, such that the offset is the position: the index along the axis before the
   * last.
   */
  readonly positions: readonly number[];
}

/** How rows lie. Positions are [seq], or [batch, seq], where batch is the first axis. */
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

function positionStrides({ shape: own, strides }: Tensor, shape: Shape): readonly number[] {
  if (own.length === 1) return broadcastStrides(own, strides, shape);
  const between = new Array<number>(shape.length - 2).fill(0);
  return [strides[0]!, ...between, strides[1]!];
}

/**
 * The layout of a result: dense rows in the order of the operand's, so that a transposed view's result is one as well.
 */
export const outputStrides = ({ shape, strides }: Tensor): readonly number[] => {
  const size = shape.at(-1)!;
  return [...denseStrides(shape.slice(0, -1), strides.slice(0, -1)).map((stride) => stride * size), 1];
};

/**
 * The phase by which a pair rotates a position, in 2⁻⁶⁴ cycles: whole cycles drop out, and negative ones count
 * backwards.
 */
export const phasesOf = (frequencies: readonly number[]): bigint[] =>
  frequencies.map((frequency) => {
    const cycles = Math.abs(frequency) / (2 * Math.PI);
    const fraction = BigInt(Math.floor((cycles - Math.floor(cycles)) * 2 ** 64));
    return BigInt.asUintN(64, frequency < 0 ? -fraction : fraction);
  });
