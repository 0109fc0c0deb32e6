import { ArgumentError } from "../../core/errors.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { type DType, hasGradients, isComplex } from "../../tensor/dtype.ts";
import { tensorOrScalar } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { elementwiseDType } from "../autocast/autocast.ts";
import { partOf } from "../complex/part.ts";
import { mul, square, sub } from "./arithmetic.ts";
import { eq, ge } from "./comparison.ts";
import { defineBinary, defineUnary } from "./define.ts";
import { div } from "./division.ts";
import { log } from "./logarithm.ts";
import { logicalAnd } from "./logic.ts";
import { isOperand } from "./operands.ts";
import type { BinaryOperation, FloatOperation, Operand, ResultOf } from "./types.ts";
import { where } from "./where.ts";

/**
 * Computes √x for each element; NaN below 0. @see {@link exp}
 *
 * @example
 * sqrt(tensor([4, 9])); // float32 [2, 3]
 */
export const sqrt: FloatOperation = defineUnary("sqrt", {
  takes: "floats",
  saves: "output",
  reference: { float: Math.sqrt },
  gradient: (g, y) => div(g, mul(y, 2)),
});

/**
 * Computes 1/√x for each element; NaN below 0. @see {@link exp}
 *
 * @example
 * rsqrt(tensor([4, 16])); // float32 [0.5, 0.25]
 */
export const rsqrt: FloatOperation = defineUnary("rsqrt", {
  takes: "floats",
  saves: "output",
  reference: { float: (x) => 1 / Math.sqrt(x) },
  gradient: (g, y) => mul(mul(g, -0.5), mul(y, square(y))),
});

const power: BinaryOperation = defineBinary("pow", {
  isPublic: false,
  takes: "numbers",
  saves: "operands",
  reference: { float: powerOf, integer: integerPower },
  gradient: (g, a, b, needs) => [
    needs[0] ? gradientOfBase(g, a, b) : null,
    needs[1] ? gradientOfExponent(g, a, b) : null,
  ],
});

/** Computes b·aᵇ⁻¹; 0 if b is 0, for any a. */
const gradientOfBase = (g: Tensor, a: Tensor, b: Tensor): Tensor =>
  where(eq(b, 0), 0, mul(g, mul(b, pow(a, sub(b, 1)))));

/** Computes aᵇ·ln a; 0 if a is 0 and b is not negative. */
const gradientOfExponent = (g: Tensor, a: Tensor, b: Tensor): Tensor =>
  where(logicalAnd(eq(a, 0), ge(realPart(b), 0)), 0, mul(g, mul(pow(a, b), log(a))));

/**
 * Computes aᵇ for each pair of elements, with broadcasting. Integers stay integers and wrap around.
 *
 * @example
 * pow(tensor([1, 2, 3]), 2); // float32 [1, 4, 9]
 *
 * @throws {ArgumentError} if integers are raised to a negative number. With a tensor of exponents, the result is 0
 * instead, or ±1 for ±1.
 */
export function pow<A extends Operand, B extends Operand>(a: A, b: B): Tensor<ResultOf<A, B>>;
export function pow<A extends Operand, B extends Operand>(a: A, b: B, ...extra: unknown[]): Tensor<ResultOf<A, B>> {
  if (extra.length > 0 || !isOperand(a) || !isOperand(b)) powParameters([a, b, ...extra]);
  if (a instanceof Tensor && b === 2 && a.dtype !== "bool" && elementwiseDType("pow", a.dtype) === a.dtype)
    return square(a);
  if (a instanceof Tensor && typeof b !== "object" && Number(b) < 0 && isWhole(a.dtype, b))
    throw new ArgumentError(
      "pow",
      "negativeExponent",
      `integers can't be raised to ${b}; convert them to a float first`,
    );
  return power(a, b);
}
const realPart = (x: Tensor): Tensor => (isComplex(x.dtype) ? partOf("real", x, 0) : x);

pow.method = "promoted" as const;
const powParameters = parameters("pow", { a: operand(tensorOrScalar), b: operand(tensorOrScalar) });

const isWhole = (dtype: DType, exponent: unknown): boolean =>
  !hasGradients(dtype) && (typeof exponent === "bigint" || Number.isInteger(exponent));

/** Computes JavaScript's power, except for (±1)^±∞ and 1^NaN, which are 1 in IEEE 754. */
function powerOf(a: number, b: number): number {
  return a === 1 || (a === -1 && Math.abs(b) === Number.POSITIVE_INFINITY) ? 1 : a ** b;
}

/** Computes powers modulo 2⁶⁴. A negative exponent gives 0, except for ±1. */
function integerPower(a: bigint, b: bigint): bigint {
  if (b < 0n) return a === 1n ? 1n : a === -1n ? (b % 2n === 0n ? 1n : -1n) : 0n;
  let result = 1n;
  let factor = a;
  for (let bits = b; bits > 0n; bits >>= 1n) {
    if (bits & 1n) result = BigInt.asIntN(64, result * factor);
    factor = BigInt.asIntN(64, factor * factor);
  }
  return result;
}
