import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { erf } from "./erf.reference.ts";
import { gated, logistic, logisticShare, normalShare, tanhShare } from "./gated.reference.ts";
import type { UnaryName } from "./primitive.ts";

/** The definition of each operation: on a float, in float64; on integers, exact, where it has a meaning of its own there. */
interface Formula {
  readonly float: (x: number) => number | boolean;
  readonly integer?: (x: bigint) => bigint | boolean;
}

const itself = (x: bigint) => x;

const formulas: Readonly<Record<UnaryName, Formula>> = {
  neg: { float: (x) => -x, integer: (x) => -x },
  abs: { float: Math.abs, integer: (x) => (x < 0n ? -x : x) },
  sign: { float: (x) => Number(x > 0) - Number(x < 0), integer: (x) => (x > 0n ? 1n : x < 0n ? -1n : 0n) },
  square: { float: (x) => x * x, integer: (x) => x * x },
  relu: { float: (x) => (x < 0 ? 0 : x), integer: (x) => (x < 0n ? 0n : x) },
  floor: { float: Math.floor, integer: itself },
  ceil: { float: Math.ceil, integer: itself },
  round: { float: roundHalfToEven, integer: itself },
  reciprocal: { float: (x) => 1 / x },
  sqrt: { float: Math.sqrt },
  rsqrt: { float: (x) => 1 / Math.sqrt(x) },
  exp: { float: Math.exp },
  exp2: { float: (x) => 2 ** x },
  expm1: { float: Math.expm1 },
  log: { float: Math.log },
  log2: { float: Math.log2 },
  log10: { float: Math.log10 },
  log1p: { float: Math.log1p },
  tanh: { float: Math.tanh },
  sigmoid: { float: logistic },
  erf: { float: erf },
  sin: { float: Math.sin },
  cos: { float: Math.cos },
  tan: { float: Math.tan },
  gelu: { float: (x) => gated(normalShare, x) },
  geluTanh: { float: (x) => gated(tanhShare, x) },
  silu: { float: (x) => gated(logisticShare, x) },
  bitwiseNot: { float: Number, integer: (x) => ~x },
  logicalNot: { float: (x) => x === 0, integer: (x) => x === 0n },
  isnan: { float: Number.isNaN, integer: () => false },
  isinf: { float: (x) => Math.abs(x) === Number.POSITIVE_INFINITY, integer: () => false },
  isfinite: { float: Number.isFinite, integer: () => true },
};

function roundHalfToEven(x: number): number {
  const below = Math.floor(x);
  const isUp = x - below > 0.5 || (x - below === 0.5 && below % 2 !== 0);
  return isUp ? below + 1 : below;
}

const bitwiseNotOfBool = (x: bigint) => x === 0n;

export const unaryReference = (name: UnaryName): Implementation<undefined> => ({
  run({ inputs: [input], outputs: [output] }) {
    const { float, integer } = formulas[name];
    if (isFloat(input!.dtype) || integer === undefined) store(output!, Array.from(toNumbers(input!), float));
    else if (name === "bitwiseNot" && input!.dtype === "bool") store(output!, toIntegers(input!).map(bitwiseNotOfBool));
    else store(output!, toIntegers(input!).map(integer));
  },
});
