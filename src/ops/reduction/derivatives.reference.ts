import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { elementCount } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { DerivativeAttributes, DerivativeName, SelectAttributes } from "./primitive.ts";

const isTie = (x: number, y: number): boolean => x === y || (Number.isNaN(x) && Number.isNaN(y));

const formulas: Readonly<Record<DerivativeName, (x: number, y: number, p: number) => number>> = {
  tie: (x, y) => (isTie(x, y) ? 1 : 0),
  sign: (x) => Math.sign(x),
  quotient: (x, y) => (y === 0 ? 0 : x / y),
  power: (x, y, p) => (x === 0 || y === 0 ? 0 : Math.sign(x) * Math.abs(x / y) ** (p - 1)),
};

export const derivativeReference: Implementation<DerivativeAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, y], outputs: [output], attributes: { name, parameter } }) {
    const { shape } = output;
    const right = toNumbers(y, shape);
    store(
      output,
      Array.from(toNumbers(x, shape), (left, index) => formulas[name](left, right[index], parameter)),
    );
  },
};

export const selectReference: Implementation<SelectAttributes, [Tensor, Tensor], [Tensor]> = {
  run({ inputs: [x, indices], outputs: [output], attributes: { axis } }) {
    const { shape } = output;
    const size = shape[axis] ?? 1;
    const inner = elementCount(shape.slice(axis + 1));
    const chosen = toIntegers(indices, shape);
    store(
      output,
      Array.from(toNumbers(x, shape), (value, index) =>
        BigInt(Math.floor(index / inner) % size) === chosen[index] ? value : 0,
      ),
    );
  },
};
