import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";

/** The definition of an operation: on floats, in float64; on integers, exact. Bools are the integers 0 and 1. */
export interface BinaryFormula {
  readonly float?: (a: number, b: number) => number | boolean;
  readonly integer?: (a: bigint, b: bigint) => bigint | boolean;
}

export const binaryReference = ({ float, integer }: BinaryFormula): Implementation<undefined> => ({
  run({ inputs: [a, b], outputs: [output] }) {
    const { shape } = output!;
    if (isFloat(a!.dtype) || integer === undefined) {
      const right = toNumbers(b!, shape);
      store(
        output!,
        Array.from(toNumbers(a!, shape), (left, index) => float!(left, right[index]!)),
      );
    } else {
      const right = toIntegers(b!, shape);
      store(
        output!,
        toIntegers(a!, shape).map((left, index) => integer(left, right[index]!)),
      );
    }
  },
});
