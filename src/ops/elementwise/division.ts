import { choice, either, nothing } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { tensorOrScalar } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { mul, neg } from "./arithmetic.ts";
import { defineBinary, renamed } from "./define.ts";
import { zerosLike } from "./operands.ts";
import type { BinaryOperation, Operand, ResultOf } from "./types.ts";
import { divisionByZero } from "./zero_divisor.ts";

/** Computes a/b for each pair of elements. */
export const trueDivide: BinaryOperation = defineBinary("div", {
  isPublic: false, // {@link div} is the public function
  takes: "floats",
  saves: "operands",
  reference: { float: (a, b) => a / b },
  gradient: (g, a, b, needs) => [
    needs[0] ? trueDivide(g, b) : null,
    needs[1] ? neg(mul(trueDivide(g, b), trueDivide(a, b))) : null,
  ],
});

/** Computes a/b rounded toward 0. */
export const truncDivide: BinaryOperation = defineBinary("truncDivide", {
  operation: "div",
  takes: "numbers",
  reference: { float: (a, b) => Math.trunc(a / b), integer: (a, b) => a / divisor("div", b) },
  gradient: (g) => [zerosLike(g), zerosLike(g)],
});

/**
 * Computes ⌊a/b⌋ for each pair of elements, with broadcasting. Integers stay integers. The gradient is 0.
 *
 * @example
 * floorDivide(tensor([-7, 7]), 2); // float32 [-4, 3]
 *
 * @throws {ArgumentError} as {@link remainder}.
 */
export const floorDivide: BinaryOperation = defineBinary("floorDivide", {
  takes: "numbers",
  reference: {
    float: floorOfQuotient,
    integer: (a, b) => (a - floorRemainder("floorDivide", a, b)) / b,
  },
  gradient: (g) => [zerosLike(g), zerosLike(g)],
});

/**
 * Computes a − b·⌊a/b⌋ for each pair of elements, with broadcasting: the remainder with the sign of the divisor, as in
 * Python.
 *
 * @example
 * remainder(tensor([-3, 3]), 2); // float32 [1, 1]
 *
 * @throws {ArgumentError} `divisionByZero` for integers; on metal the result is 0 instead, since the check would wait
 * for the device.
 */
export const remainder: BinaryOperation = defineBinary("remainder", {
  takes: "numbers",
  saves: "operands",
  reference: {
    float(a, b) {
      const truncated = a % b;
      return truncated !== 0 && truncated < 0 !== b < 0 ? truncated + b : truncated;
    },
    integer: (a, b) => floorRemainder("remainder", a, b),
  },
  gradient: (g, a, b, needs) => [g, needs[1] ? neg(mul(g, floorDivide(a, b))) : null],
});

/**
 * Computes the remainder with the sign of the dividend, as in C.
 *
 * @example
 * fmod(tensor([-7, 7]), 3); // float32 [-1, 1]
 *
 * @throws {ArgumentError} as {@link remainder}.
 */
export const fmod: BinaryOperation = defineBinary("fmod", {
  takes: "numbers",
  saves: "operands",
  reference: { float: (a, b) => a % b, integer: (a, b) => a % divisor("fmod", b) },
  gradient: (g, a, b, needs) => [g, needs[1] ? neg(mul(g, truncDivide(a, b))) : null],
});

/** Options of {@link div}. */
export interface DivOptions {
  /**
   * `"floor"` rounds the quotient down, `"trunc"` toward 0; with either, integers stay integers. Default null: true
   * division.
   */
  roundingMode?: "floor" | "trunc" | null | undefined;
}

/**
 * Computes a / b for each pair of elements, with broadcasting. Integers become float32 first, unless the quotient is
 * rounded.
 *
 * @example
 * div(tensor([7, -7]), 2); // float32 [3.5, -3.5]
 * div(tensor([7, -7]), 2, { roundingMode: "floor" }); // float32 [3, -4]
 *
 * @throws {ShapeError} if the shapes can't be broadcast together.
 * @throws {ArgumentError} as {@link remainder}, with a rounding mode.
 */
export function div<A extends Operand, B extends Operand>(a: A, b: B, options?: DivOptions): Tensor<ResultOf<A, B>>;
export function div(dividend: Operand, by: Operand, ...options: unknown[]): Tensor {
  if (options.length === 0) return trueDivide(dividend, by);
  const { a, b, roundingMode } = divParameters([dividend, by, ...options]);
  return divisions[roundingMode ?? "true"](a, b);
}
div.method = "promoted" as const;
/** @internal The parameter `roundingMode`. */
export const roundingParameter = named(either(choice("floor", "trunc"), nothing));
const divParameters = parameters("div", {
  a: operand(tensorOrScalar),
  b: operand(tensorOrScalar),
  roundingMode: roundingParameter,
});

const divisions = {
  true: trueDivide,
  floor: renamed("div", floorDivide),
  trunc: truncDivide,
} as const;

function divisor(operation: string, b: bigint): bigint {
  if (b === 0n) throw divisionByZero(operation);
  return b;
}

/** Computes the remainder with the sign of the divisor. */
function floorRemainder(operation: string, a: bigint, b: bigint): bigint {
  const truncated = a % divisor(operation, b);
  return truncated !== 0n && truncated < 0n !== b < 0n ? truncated + b : truncated;
}

/**
 * Computes ⌊a/b⌋ as (a − a % b)/b, minus 1 if remainder and divisor differ in sign. A result of 0 has the sign of a/b.
 */
function floorOfQuotient(a: number, b: number): number {
  if (b === 0) return a / b;
  const truncated = a % b;
  const quotient = (a - truncated) / b - (truncated !== 0 && truncated < 0 !== b < 0 ? 1 : 0);
  return quotient === 0 ? Math.sign(a / b) * 0 : Math.round(quotient);
}
