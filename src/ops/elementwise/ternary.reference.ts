import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import type { TernaryName } from "./primitive.ts";

interface Formula {
  readonly float: (a: number, b: number, c: number) => number;
  readonly integer?: (a: bigint, b: bigint, c: bigint) => bigint;
}

const formulas: Readonly<Record<TernaryName, Formula>> = {
  where: { float: (condition, a, b) => (condition ? a : b), integer: (condition, a, b) => (condition ? a : b) },
  clamp: {
    float: (x, least, most) => Math.min(Math.max(x, least), most),
    integer(x, least, most) {
      const lifted = x > least ? x : least;
      return lifted < most ? lifted : most;
    },
  },
  lerp: {
    float: (a, b, weight) => (Math.abs(weight) < 0.5 ? a + weight * (b - a) : b - (b - a) * (1 - weight)),
  },
  softplus: {
    float: (x, beta, threshold) => (x * beta > threshold ? x : Math.log1p(Math.exp(x * beta)) / beta),
  },
};

export const ternaryReference = (name: TernaryName): Implementation<undefined> => ({
  run({ inputs: [a, b, c], outputs: [output] }) {
    const { float, integer } = formulas[name];
    const { shape, dtype } = output!;
    if (isFloat(dtype) || integer === undefined) {
      const [second, third] = [toNumbers(b!, shape), toNumbers(c!, shape)];
      const result = toNumbers(a!, shape).map((first, index) => float(first, second[index]!, third[index]!));
      store(output!, result);
    } else {
      const [second, third] = [toIntegers(b!, shape), toIntegers(c!, shape)];
      const result = toIntegers(a!, shape).map((first, index) => integer(first, second[index]!, third[index]!));
      store(output!, result);
    }
  },
});
