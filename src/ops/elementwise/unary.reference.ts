import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { UnaryName } from "./codes.ts";

/** The definition of each operation: on a float, in float64; on integers, exact, where it has a meaning of its own there. */
interface Formula {
  readonly float: (x: number) => number | boolean;
  readonly integer?: (x: bigint) => bigint | boolean;
}

const formulas: Readonly<Record<UnaryName, Formula>> = {
  neg: { float: (x) => -x, integer: (x) => -x },
  exp: { float: Math.exp },
};

export const unaryReference = (name: UnaryName): Implementation<undefined> => ({
  run({ inputs: [input], outputs: [output] }) {
    const { float, integer } = formulas[name];
    if (isFloat(input!.dtype) || integer === undefined) store(output!, Array.from(toNumbers(input!), float));
    else store(output!, toIntegers(input!).map(integer));
  },
});
