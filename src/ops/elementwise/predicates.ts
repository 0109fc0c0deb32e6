import { defineUnary } from "./define.ts";
import type { UnaryPredicate } from "./types.ts";

/**
 * Tests whether each element is NaN; false for integers.
 *
 * @example
 * isnan(tensor([1, NaN])); // bool [false, true]
 */
export const isnan: UnaryPredicate = defineUnary("isnan", {
  takes: "everything",
  result: "bool",
  reference: { float: Number.isNaN, integer: () => false },
});

/**
 * Tests whether each element is infinite; false for integers.
 *
 * @example
 * isinf(tensor([1, -Infinity])); // bool [false, true]
 */
export const isinf: UnaryPredicate = defineUnary("isinf", {
  takes: "everything",
  result: "bool",
  reference: { float: (x) => Math.abs(x) === Number.POSITIVE_INFINITY, integer: () => false },
});

/**
 * Tests whether each element is neither infinite nor NaN; true for integers.
 *
 * @example
 * isfinite(tensor([1, NaN])); // bool [true, false]
 */
export const isfinite: UnaryPredicate = defineUnary("isfinite", {
  takes: "everything",
  result: "bool",
  reference: { float: Number.isFinite, integer: () => true },
});

/**
 * Tests whether the sign of each element is negative: true for −0, unspecified for NaN.
 *
 * @example
 * signbit(tensor([-1, -0, 0])); // bool [true, true, false]
 */
export const signbit: UnaryPredicate = defineUnary("signbit", {
  takes: "everything",
  result: "bool",
  reference: { float: (x) => x < 0 || Object.is(x, -0), integer: (x) => x < 0n },
});
