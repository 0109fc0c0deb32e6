import { defineBinary, defineUnary } from "./define.ts";
import type { BinaryOperation, UnaryOperation } from "./types.ts";

/**
 * ¬x for each bit of integers; not x for bools.
 *
 * @example
 * bitwiseNot(tensor([0, 5], { dtype: "int32" })); // int32 [-1, -6]
 *
 * @throws {DTypeError} for floats.
 */
export const bitwiseNot: UnaryOperation = defineUnary("bitwiseNot", {
  takes: "bits",
  reference: { integer: (x) => ~x, bool: (x) => x === 0n },
});

/**
 * a ∧ b for each pair of bits of integers, or bools, broadcast.
 *
 * @example
 * bitwiseAnd(tensor([6], { dtype: "int32" }), 3); // int32 [2]
 *
 * @throws {DTypeError} for floats.
 */
export const bitwiseAnd: BinaryOperation = defineBinary("bitwiseAnd", {
  takes: "bits",
  reference: { integer: (a, b) => a & b },
});

/**
 * a ∨ b for each pair of bits of integers, or bools, broadcast.
 *
 * @example
 * bitwiseOr(tensor([6], { dtype: "int32" }), 3); // int32 [7]
 *
 * @throws {DTypeError} for floats.
 */
export const bitwiseOr: BinaryOperation = defineBinary("bitwiseOr", {
  takes: "bits",
  reference: { integer: (a, b) => a | b },
});

/**
 * a ⊻ b for each pair of bits of integers, or bools, broadcast.
 *
 * @example
 * bitwiseXor(tensor([6], { dtype: "int32" }), 3); // int32 [5]
 *
 * @throws {DTypeError} for floats.
 */
export const bitwiseXor: BinaryOperation = defineBinary("bitwiseXor", {
  takes: "bits",
  reference: { integer: (a, b) => a ^ b },
});
