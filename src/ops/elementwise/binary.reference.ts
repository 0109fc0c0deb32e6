import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { type DType, isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** The definition of an operation: on floats, in float64; on integers, exact. Bools are the integers 0 and 1. */
export interface BinaryFormula {
  readonly float?: (a: number, b: number) => number | boolean;
  /** Replaces `float` if the result depends on the dtype's representable numbers. */
  readonly floatOf?: (a: number, b: number, dtype: DType) => number;
  readonly integer?: (a: bigint, b: bigint) => bigint | boolean;
}

export const binaryReference = ({
  float,
  floatOf,
  integer,
}: BinaryFormula): Implementation<undefined, [Tensor, Tensor], [Tensor]> => ({
  run({ inputs: [a, b], outputs: [output] }) {
    const { shape, dtype } = output;
    if (isFloat(a.dtype) || integer === undefined) {
      const right = toNumbers(b, shape);
      const formula = floatOf ? (x: number, y: number) => floatOf(x, y, dtype) : float!;
      store(
        output,
        Array.from(toNumbers(a, shape), (left, index) => formula(left, right[index])),
      );
    } else {
      const right = toIntegers(b, shape);
      store(
        output,
        toIntegers(a, shape).map((left, index) => integer(left, right[index])),
      );
    }
  },
});
