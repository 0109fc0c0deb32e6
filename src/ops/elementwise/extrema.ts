import { chosen } from "./chosen.ts";
import { defineBinary } from "./define.ts";
import type { BinaryOperation } from "./types.ts";

/**
 * Returns the larger of each pair of elements, with broadcasting; NaN if either is NaN. Equal elements share the
 * gradient. @see {@link add}
 *
 * @example
 * maximum(tensor([1, 5]), 3); // float32 [3, 5]
 */
export const maximum: BinaryOperation = defineBinary("maximum", {
  takes: "everything",
  saves: "operands",
  reference: { float: Math.max, integer: (a, b) => (a > b ? a : b) },
  gradient: (g, a, b) => [chosen(g, b, a), chosen(g, a, b)],
});

/**
 * Returns the smaller of each pair of elements, with broadcasting; NaN if either is NaN. Equal elements share the
 * gradient. @see {@link add}
 *
 * @example
 * minimum(tensor([1, 5]), 3); // float32 [1, 3]
 */
export const minimum: BinaryOperation = defineBinary("minimum", {
  takes: "everything",
  saves: "operands",
  reference: { float: Math.min, integer: (a, b) => (a < b ? a : b) },
  gradient: (g, a, b) => [chosen(g, a, b), chosen(g, b, a)],
});
