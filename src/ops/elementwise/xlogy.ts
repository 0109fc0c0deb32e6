import type { Tensor } from "../../tensor/tensor.ts";
import { mul } from "./arithmetic.ts";
import { eq, le } from "./comparison.ts";
import { defineBinary } from "./define.ts";
import { div } from "./division.ts";
import { logicalAnd } from "./logic.ts";
import type { BinaryOperation } from "./types.ts";
import { where } from "./where.ts";

/**
 * Computes a·ln b for each pair of elements, with broadcasting; 0 if a is 0, unless b is NaN. Integers become float32.
 * @see {@link add}
 *
 * @example
 * xlogy(tensor([0, 2]), tensor([0, 10])); // float32 [0, 4.60517]
 */
export const xlogy: BinaryOperation = defineBinary("xlogy", {
  takes: "floats",
  saves: "operands",
  reference: { float: (a, b) => (a === 0 && !Number.isNaN(b) ? 0 : a * Math.log(b)) },
  gradient: (g, a, b, needs) => [needs[0] ? gradientOfFactor(g, a, b) : null, needs[1] ? mul(g, div(a, b)) : null],
});

/** Computes g·ln b; 0 if a is 0 and b is not above 0. */
const gradientOfFactor = (g: Tensor, a: Tensor, b: Tensor): Tensor =>
  where(logicalAnd(eq(a, 0), le(b, 0)), 0, xlogy(g, b)) as Tensor;
