/** Slices along an axis, for calls of the cpu dylib (`native/cpu/slices.h`). */
import type { Slices } from "../../tensor/slices.ts";
import { array, type CpuField, cpuMembers, type Field, type NativeOrdinals, whole } from "../fields.ts";
import { nest } from "./call.ts";

/** A field for slices of a number of operands: `SlicesBlock<operands>`. */
export function slices(operands: number): Field<Slices> {
  const fields = {
    length: whole,
    along: array(whole, operands),
    offsets: array(whole, operands),
    nest: nest(operands),
  };
  const { members, length } = cpuMembers(fields);
  const placed = Object.entries(members);
  const write = (block: Float64Array, at: number, values: Slices, ordinals: NativeOrdinals): void => {
    for (const [name, { field, offset }] of placed)
      (field as CpuField<unknown>).write(block, at + offset, values[name as keyof Slices], ordinals);
  };
  return { cpu: { type: `SlicesBlock<${operands}>`, length, members, write } };
}
