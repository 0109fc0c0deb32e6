/** Maximum and minimum that ignore NaN. */
import type { Tensor } from "../../tensor/tensor.ts";
import { chosen } from "./chosen.ts";
import { defineBinary } from "./define.ts";
import { isnan } from "./predicates.ts";
import type { BinaryOperation } from "./types.ts";
import { where } from "./where.ts";

/**
 * Returns the larger of each pair of elements, with broadcasting; if one is NaN, the other. Equal elements share the
 * gradient. @see {@link maximum}
 *
 * @example
 * fmax(tensor([1, NaN, 5]), 3); // float32 [3, 3, 5]
 *
 * @throws {ShapeError} if the shapes can't be broadcast together.
 */
export const fmax: BinaryOperation = defineBinary("fmax", {
  takes: "everything",
  saves: "operands",
  reference: { float: (a, b) => (a > b || Number.isNaN(b) ? a : b), integer: (a, b) => (a > b ? a : b) },
  gradient: (g, a, b) => [ofNumber(g, a, b, chosen(g, b, a)), ofNumber(g, b, a, chosen(g, a, b))],
});

/**
 * Returns the smaller of each pair of elements, with broadcasting; if one is NaN, the other. Equal elements share the
 * gradient. @see {@link minimum}
 *
 * @example
 * fmin(tensor([1, NaN, 5]), 3); // float32 [1, 3, 3]
 *
 * @throws {ShapeError} if the shapes can't be broadcast together.
 */
export const fmin: BinaryOperation = defineBinary("fmin", {
  takes: "everything",
  saves: "operands",
  reference: { float: (a, b) => (a < b || Number.isNaN(b) ? a : b), integer: (a, b) => (a < b ? a : b) },
  gradient: (g, a, b) => [ofNumber(g, a, b, chosen(g, a, b)), ofNumber(g, b, a, chosen(g, b, a))],
});

/** Returns the gradient of x: g if the other operand is NaN, 0 if only x is NaN, else the gradient for two numbers. */
const ofNumber = (g: Tensor, x: Tensor, other: Tensor, ofNumbers: Tensor): Tensor =>
  where(isnan(other), g, where(isnan(x), 0, ofNumbers));
