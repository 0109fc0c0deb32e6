import { defineBinary, defineUnary } from "./define.ts";
import type { BinaryPredicate, UnaryPredicate } from "./types.ts";

/**
 * Tests whether each element is 0.
 *
 * @example
 * logicalNot(tensor([0, 2])); // bool [true, false]
 */
export const logicalNot: UnaryPredicate = defineUnary("logicalNot", {
  takes: "everything",
  result: "bool",
  reference: { float: (x) => x === 0, integer: (x) => x === 0n },
});

/**
 * Tests whether both elements of each pair are nonzero. @see {@link eq}
 *
 * @example
 * logicalAnd(tensor([0, 2]), tensor([1, 1])); // bool [false, true]
 */
export const logicalAnd: BinaryPredicate = defineBinary("logicalAnd", {
  takes: "everything",
  result: "bool",
  reference: { float: (a, b) => a !== 0 && b !== 0, integer: (a, b) => a !== 0n && b !== 0n },
});

/**
 * Tests whether at least one element of each pair is nonzero. @see {@link eq}
 *
 * @example
 * logicalOr(tensor([0, 2]), tensor([0, 0])); // bool [false, true]
 */
export const logicalOr: BinaryPredicate = defineBinary("logicalOr", {
  takes: "everything",
  result: "bool",
  reference: { float: (a, b) => a !== 0 || b !== 0, integer: (a, b) => a !== 0n || b !== 0n },
});

/**
 * Tests whether exactly one element of each pair is nonzero. @see {@link eq}
 *
 * @example
 * logicalXor(tensor([0, 2]), tensor([1, 1])); // bool [true, false]
 */
export const logicalXor: BinaryPredicate = defineBinary("logicalXor", {
  takes: "everything",
  result: "bool",
  reference: { float: (a, b) => (a !== 0) !== (b !== 0), integer: (a, b) => (a !== 0n) !== (b !== 0n) },
});
