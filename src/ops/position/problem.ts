/** What a rotary position embedding computes, and how its rows lie in memory, for every backend. */
import { broadcastStrides, denseStrides, type Shape } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { Rotation } from "./frequencies.ts";

/**
 * Pair i of a row, (a, b), becomes magnitude · (a·cos φ − b·sin φ, a·sin φ + b·cos φ) with φ = frequencies[i] · (offset + the row's
 * position). What lies behind the pairs stays. The gradient is the same with −φ.
 */
export interface RopeAttributes extends Rotation {
  /** Pairs are (2i, 2i + 1), else (i, i + the number of pairs). */
  readonly interleaved: boolean;
  readonly offset: number;
}

/** An operand's strides along the axes of rows, which are all but the last one. */
export interface RowStrides {
  readonly shape: Shape;
  readonly x: readonly number[];
  readonly out: readonly number[];
  /** Of the tensor of positions; without one, such that a place is the position: its number along the axis before the last. */
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

/** The layout of a result: dense rows in the order of the operand's, so that a transposed view's result is one as well. */
export const outputStrides = ({ shape, strides }: Tensor): readonly number[] => {
  const size = shape.at(-1)!;
  return [...denseStrides(shape.slice(0, -1), strides.slice(0, -1)).map((stride) => stride * size), 1];
};

/** The part of a turn that a pair turns a position, in 2⁻⁶⁴: whole turns fall away, and negative ones count backwards. */
export const turnsOf = (frequencies: readonly number[]): BigUint64Array =>
  BigUint64Array.from(frequencies, (frequency) => {
    const turns = Math.abs(frequency) / (2 * Math.PI);
    const fraction = BigInt(Math.floor((turns - Math.floor(turns)) * 2 ** 64));
    return BigInt.asUintN(64, frequency < 0 ? -fraction : fraction);
  });
