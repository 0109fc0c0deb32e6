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

/**
 * a · 2ᵇ for each pair of integers, broadcast: the bits of a moved up by b, those beyond the dtype's lost. It is 0
 * where b is negative, or the dtype has no more bits than b.
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
 * ⌊a / 2ᵇ⌋ for each pair of integers, broadcast: the bits of a moved down by b. Where b is negative, or the dtype has
 * no more bits than b, it is −1 for negative a and 0 for others.
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

/** Whether so many bits are not more than the widest dtype has. */
const isShift = (bits: bigint): boolean => bits >= 0n && bits < 64n;
