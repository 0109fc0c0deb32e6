import { defineUnary } from "./define.ts";
import type { UnaryPredicate } from "./types.ts";

/**
 * Whether each element is NaN; integers never are.
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
 * Whether each element is an infinity; integers never are.
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
 * Whether each element is neither an infinity nor NaN; integers always are.
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
 * Whether the sign of each element is that of negative numbers: of −0 it is, and of NaN it may be.
 *
 * @example
 * signbit(tensor([-1, -0, 0])); // bool [true, true, false]
 */
export const signbit: UnaryPredicate = defineUnary("signbit", {
  takes: "everything",
  result: "bool",
  reference: { float: (x) => x < 0 || Object.is(x, -0), integer: (x) => x < 0n },
});
