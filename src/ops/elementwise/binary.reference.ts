import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { BinaryName } from "./codes.ts";

interface Formula {
  readonly float: (a: number, b: number) => number | boolean;
  readonly integer?: (a: bigint, b: bigint) => bigint | boolean;
}

const formulas: Readonly<Record<BinaryName, Formula>> = {
  add: { float: (a, b) => a + b, integer: (a, b) => a + b },
  sub: { float: (a, b) => a - b, integer: (a, b) => a - b },
  mul: { float: (a, b) => a * b, integer: (a, b) => a * b },
  div: { float: (a, b) => a / b },
};

export const binaryReference = (name: BinaryName): Implementation<undefined> => ({
  run({ inputs: [a, b], outputs: [output] }) {
    const { float, integer } = formulas[name];
    const { shape } = output!;
    if (isFloat(a!.dtype) || integer === undefined) {
      const right = toNumbers(b!, shape);
      store(
        output!,
        Array.from(toNumbers(a!, shape), (left, index) => float(left, right[index]!)),
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
