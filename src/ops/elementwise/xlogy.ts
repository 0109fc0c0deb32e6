import type { Tensor } from "../../tensor/tensor.ts";
import { add, mul, sub } from "./arithmetic.ts";
import { eq, le } from "./comparison.ts";
import { defineBinary, defineUnary } from "./define.ts";
import { div } from "./division.ts";
import { log } from "./logarithm.ts";
import { logicalAnd } from "./logic.ts";
import type { BinaryOperation, FloatOperation } from "./types.ts";
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
  where(logicalAnd(eq(a, 0), le(b, 0)), 0, xlogy(g, b));

/**
 * Computes a·ln(1 + b) for each pair of elements, with broadcasting. It is accurate for small b. It is 0 if a is 0,
 * unless b is NaN. Integers become float32. @see {@link add}
 *
 * @example
 * xlog1py(tensor([0, 2]), tensor([10, 1e-6])); // float32 [0, 0.000002]
 */
export const xlog1py: BinaryOperation = defineBinary("xlog1py", {
  takes: "floats",
  saves: "operands",
  reference: { float: (a, b) => (a === 0 && !Number.isNaN(b) ? 0 : a * Math.log1p(b)) },
  gradient: (g, a, b, needs) => [
    needs[0] ? where(logicalAnd(eq(a, 0), le(b, -1)), 0, xlog1py(g, b)) : null,
    needs[1] ? mul(g, div(a, add(b, 1))) : null,
  ],
});

/**
 * Computes the entropy −x·ln x of each element; 0 at 0, and −∞ below. The gradient is −ln x − 1. @see {@link exp}
 *
 * @example
 * entr(tensor([0, 0.5, 1])); // float32 [0, 0.346574, 0]
 */
export const entr: FloatOperation = defineUnary("entr", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => (x < 0 ? Number.NEGATIVE_INFINITY : x === 0 ? 0 : -x * Math.log(x)) },
  gradient: (g, x) => mul(g, sub(-1, log(x))),
});
