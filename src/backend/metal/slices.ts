/** Slices along an axis, for kernels (`kernels/common/slices.h`). */
import { getOrMake } from "../../core/collections.ts";
import { reachOf } from "../../tensor/reach.ts";
import type { Slices } from "../../tensor/slices.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { array, whole } from "../fields.ts";
import { loopNestOf, type NestValues, nestValues } from "./loop.ts";
import { type Struct, struct } from "./struct.ts";

/** The values of a `Slices` of `kernels/common/slices.h`. */
export interface SliceValues {
  readonly nest: NestValues;
  readonly along: readonly number[];
  readonly length: number;
}

const described = new Map<number, Struct<SliceValues>>();

/**
 * Returns a struct field for slices of a number of operands: `Slices<operands>`, with the values of {@link
 * sliceValues}.
 */
export const slicesFor = (operands: number): Struct<SliceValues> =>
  getOrMake(described, operands, () =>
    struct(`Slices<${operands}>`, {
      nest: loopNestOf(operands),
      along: array(whole, operands, "operands"),
      length: whole,
    }),
  );

/**
 * Returns the values for slices of these operands. Offsets are relative to the element at which each operand is bound.
 */
export const sliceValues = ({ nest, along, offsets, length }: Slices, operands: readonly Tensor[]): SliceValues => ({
  nest: nestValues(
    nest,
    offsets.map((offset, operand) => offset - reachOf(operands[operand]).first),
  ),
  along,
  length,
});
