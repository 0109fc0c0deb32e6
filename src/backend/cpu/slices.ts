/** Slices along an axis, for calls of the cpu dylib (`native/cpu/slices.h`). */
import type { Slices } from "../../tensor/slices.ts";
import { array, type CpuField, cpuMembers, type Field, whole } from "../fields.ts";
import { nest } from "./call.ts";

/** A field for slices of a number of operands: `SlicesBlock<operands>`. */
export function slices(operands: number): Field<Slices> {
  const fields = {
    length: whole,
    along: array(whole, operands, "operands"),
    offsets: array(whole, operands, "operands"),
    nest: nest(operands),
  };
  const { members, length } = cpuMembers(fields);
  const writeNest = fields.nest.cpu!.write;
  // Writes the members one by one: a generic loop over `members` would take longer than the writes.
  const write: CpuField<Slices>["write"] = (block, at, slices, ordinals) => {
    block[at] = slices.length;
    for (let operand = 0; operand < operands; operand++) {
      block[at + 1 + operand] = slices.along[operand];
      block[at + 1 + operands + operand] = slices.offsets[operand];
    }
    writeNest(block, at + 1 + 2 * operands, slices.nest, ordinals);
  };
  return { cpu: { type: `SlicesBlock<${operands}>`, length, members, write } };
}
