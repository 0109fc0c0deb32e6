/** Slices along an axis, for calls of the cpu dylib (`native/cpu/slices.h`). */
import type { Slices } from "../../tensor/slices.ts";
import { array, type Field, whole } from "../fields.ts";
import { nest } from "./call.ts";

/** Slices of so many operands: `SlicesBlock<operands>`. */
export function slices(operands: number): Field<Slices> {
  const numbers = array(whole, operands).cpu;
  const others = nest(operands).cpu!;
  const type = `SlicesBlock<${operands}>`;
  return {
    cpu: {
      type,
      length: 1 + 2 * operands + others.length,
      write(block, at, value, ordinals) {
        block[at] = value.length;
        numbers.write(block, at + 1, value.along, ordinals);
        numbers.write(block, at + 1 + operands, value.offsets, ordinals);
        others.write(block, at + 1 + 2 * operands, value.nest, ordinals);
      },
    },
  };
}
