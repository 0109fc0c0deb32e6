import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** The definition of an operation: on floats, in float64; on integers, exact. A bool is 0 or 1. */
export interface TernaryFormula {
  readonly float: (a: number, b: number, c: number) => number;
  readonly integer?: (a: bigint, b: bigint, c: bigint) => bigint;
}

export const ternaryReference = ({
  float,
  integer,
}: TernaryFormula): Implementation<undefined, [Tensor, Tensor, Tensor], [Tensor]> => ({
  run({ inputs: [a, b, c], outputs: [output] }) {
    const { shape, dtype } = output;
    if (isFloat(dtype) || integer === undefined) {
      const [second, third] = [toNumbers(b, shape), toNumbers(c, shape)];
      const result = toNumbers(a, shape).map((first, index) => float(first, second[index], third[index]));
      store(output, result);
    } else {
      const [second, third] = [toIntegers(b, shape), toIntegers(c, shape)];
      const result = toIntegers(a, shape).map((first, index) => integer(first, second[index], third[index]));
      store(output, result);
    }
  },
});
