import { defineBinary, defineUnary } from "./define.ts";
import type { BinaryOperation, UnaryOperation } from "./types.ts";

/**
 * Computes ¬x for each bit of integers, and logical not for bools.
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
 * Computes a ∧ b for each pair of bits of integers, or of bools, with broadcasting.
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
 * Computes a ∨ b for each pair of bits of integers, or of bools, with broadcasting.
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
 * Computes a ⊻ b for each pair of bits of integers, or of bools, with broadcasting.
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

/**
 * Shifts the bits of a left by b for each pair of integers, with broadcasting: a · 2ᵇ without the bits beyond the
 * dtype's. The result is 0 if b is negative or at least the dtype's number of bits.
 *
 * @example
 * bitwiseLeftShift(tensor([1, 3], { dtype: "int32" }), 2); // int32 [4, 12]
 *
 * @throws {DTypeError} for floats and bools.
 */
export const bitwiseLeftShift: BinaryOperation = defineBinary("bitwiseLeftShift", {
  takes: "integers",
  reference: { integer: (a, b) => (isShift(b) ? a << b : 0n) },
});

/**
 * Shifts the bits of a right by b for each pair of integers, with broadcasting: ⌊a / 2ᵇ⌋. If b is negative or at least
 * the dtype's number of bits, the result is −1 for negative a and 0 for others.
 *
 * @example
 * bitwiseRightShift(tensor([8, -3], { dtype: "int32" }), 1); // int32 [4, -2]
 *
 * @throws {DTypeError} for floats and bools.
 */
export const bitwiseRightShift: BinaryOperation = defineBinary("bitwiseRightShift", {
  takes: "integers",
  reference: { integer: (a, b) => (isShift(b) ? a >> b : a < 0n ? -1n : 0n) },
});

/** Tests whether a shift is less than the widest dtype's number of bits. */
const isShift = (bits: bigint): boolean => bits >= 0n && bits < 64n;
