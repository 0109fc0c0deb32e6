import type { Tensor } from "../../tensor/tensor.ts";
import { mul } from "./arithmetic.ts";
import { eq, lt } from "./comparison.ts";
import { defineBinary } from "./define.ts";
import type { BinaryOperation } from "./types.ts";
import { where } from "./where.ts";

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

/**
 * Returns the gradient of an operand that is the result if `smaller` < `larger`: g in that case, half of g if both are
 * equal, else 0.
 */
const chosen = (g: Tensor, smaller: Tensor, larger: Tensor): Tensor =>
  where(lt(larger, smaller), 0, where(eq(smaller, larger), mul(g, 0.5), g)) as Tensor;
