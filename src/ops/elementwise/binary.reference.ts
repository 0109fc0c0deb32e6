import type { Implementation } from "../../backend/backend.ts";
import { store, toIntegers, toNumbers } from "../../backend/reference/elements.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { divisionByZero } from "./division.ts";
import { gated, gatedDerivative, logisticShare, normalShare, tanhShare } from "./gated.reference.ts";
import type { BinaryName } from "./primitive.ts";

/** The definition of each operation: on floats, in float64; on integers, exact. Bools are the integers 0 and 1. */
interface Formula {
  readonly float: (a: number, b: number) => number | boolean;
  readonly integer?: (a: bigint, b: bigint) => bigint | boolean;
}

const formulas: Readonly<Record<BinaryName, Formula>> = {
  add: { float: (a, b) => a + b, integer: (a, b) => a + b },
  sub: { float: (a, b) => a - b, integer: (a, b) => a - b },
  mul: { float: (a, b) => a * b, integer: (a, b) => a * b },
  div: { float: (a, b) => a / b },
  floorDivide: { float: floorQuotient, integer: (a, b) => (a - floorRemainder(a, b)) / divisor("floorDivide", b) },
  truncDivide: { float: (a, b) => Math.trunc(a / b), integer: (a, b) => a / divisor("div", b) },
  remainder: { float: remainder, integer: (a, b) => floorRemainder(a, divisor("remainder", b)) },
  fmod: { float: (a, b) => a % b, integer: (a, b) => a % divisor("fmod", b) },
  pow: { float: power, integer: integerPower },
  maximum: { float: Math.max, integer: (a, b) => (a > b ? a : b) },
  minimum: { float: Math.min, integer: (a, b) => (a < b ? a : b) },
  atan2: { float: Math.atan2 },
  swiglu: { float: (gate, up) => gated(logisticShare, gate) * up },
  geluGradient: { float: (g, x) => g * gatedDerivative(normalShare, x) },
  geluTanhGradient: { float: (g, x) => g * gatedDerivative(tanhShare, x) },
  siluGradient: { float: (g, x) => g * gatedDerivative(logisticShare, x) },
  bitwiseAnd: { float: Number, integer: (a, b) => a & b },
  bitwiseOr: { float: Number, integer: (a, b) => a | b },
  bitwiseXor: { float: Number, integer: (a, b) => a ^ b },
  eq: { float: (a, b) => a === b, integer: (a, b) => a === b },
  ne: { float: (a, b) => a !== b, integer: (a, b) => a !== b },
  lt: { float: (a, b) => a < b, integer: (a, b) => a < b },
  le: { float: (a, b) => a <= b, integer: (a, b) => a <= b },
  gt: { float: (a, b) => a > b, integer: (a, b) => a > b },
  ge: { float: (a, b) => a >= b, integer: (a, b) => a >= b },
  logicalAnd: { float: (a, b) => a !== 0 && b !== 0, integer: (a, b) => a !== 0n && b !== 0n },
  logicalOr: { float: (a, b) => a !== 0 || b !== 0, integer: (a, b) => a !== 0n || b !== 0n },
  logicalXor: { float: (a, b) => (a !== 0) !== (b !== 0), integer: (a, b) => (a !== 0n) !== (b !== 0n) },
};

function divisor(operation: string, b: bigint): bigint {
  if (b === 0n) throw divisionByZero(operation);
  return b;
}

/** With the sign of the divisor. */
function remainder(a: number, b: number): number {
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
}

function floorRemainder(a: bigint, b: bigint): bigint {
  const rest = a % divisor("floorDivide", b);
  return rest !== 0n && rest < 0n !== b < 0n ? rest + b : rest;
}

/** (a − a % b)/b is a whole number, one too many where the remainder has the other sign. The sign of a 0 is that of a/b. */
function floorQuotient(a: number, b: number): number {
  if (b === 0) return a / b;
  const rest = a % b;
  const quotient = (a - rest) / b - (rest !== 0 && rest < 0 !== b < 0 ? 1 : 0);
  return quotient === 0 ? Math.sign(a / b) * 0 : Math.round(quotient);
}

/** JavaScript's own, but that IEEE 754 has 1 for (±1)^±∞ and 1^NaN. */
function power(a: number, b: number): number {
  return a === 1 || (a === -1 && Math.abs(b) === Number.POSITIVE_INFINITY) ? 1 : a ** b;
}

/** Modulo 2⁶⁴. A negative exponent leaves 0 of all but ±1. */
function integerPower(a: bigint, b: bigint): bigint {
  if (b < 0n) return a === 1n ? 1n : a === -1n ? (b % 2n === 0n ? 1n : -1n) : 0n;
  let result = 1n;
  let factor = a;
  for (let rest = b; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = BigInt.asIntN(64, result * factor);
    factor = BigInt.asIntN(64, factor * factor);
  }
  return result;
}

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
