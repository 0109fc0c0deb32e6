import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/**
 * The definition of an operation: on floats, in float64; on integers and bools, exact, if the operation is defined for
 * them separately.
 */
export interface UnaryFormula {
  readonly float?: (x: number) => number | boolean;
  readonly integer?: (x: bigint) => bigint | boolean;
  /** The formula for bools, given as 0n and 1n. Default: `integer`. */
  readonly bool?: (x: bigint) => boolean;
}

export const unaryReference = ({
  float,
  integer,
  bool,
}: UnaryFormula): Implementation<undefined, [Tensor], [Tensor]> => ({
  run({ inputs: [input], outputs: [output] }) {
    const exact = isFloat(input.dtype) ? undefined : input.dtype === "bool" ? (bool ?? integer) : integer;
    if (exact) store(output, toIntegers(input).map(exact));
    else store(output, Array.from(toNumbers(input), float!));
  },
});
