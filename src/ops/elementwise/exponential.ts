import { mul } from "./arithmetic.ts";
import { defineUnary } from "./define.ts";
import type { FloatOperation } from "./types.ts";

/**
 * Computes eˣ for each element. Integers and bools become float32, as for all functions of real numbers.
 *
 * @example
 * exp(tensor([0, 1])); // float32 [1, 2.7183]
 */
export const exp: FloatOperation = defineUnary("exp", {
  takes: "floats",
  saves: "output",
  reference: { float: Math.exp },
  gradient: (g, y) => mul(g, y),
});

/**
 * Computes 2ˣ for each element. @see {@link exp}
 *
 * @example
 * exp2(tensor([0, 3])); // float32 [1, 8]
 */
export const exp2: FloatOperation = defineUnary("exp2", {
  takes: "floats",
  saves: "output",
  reference: { float: (x) => 2 ** x },
  gradient: (g, y) => mul(g, mul(y, Math.LN2)),
});

/**
 * Computes eˣ − 1 for each element, accurate near 0. @see {@link exp}
 *
 * @example
 * expm1(tensor([0, 1])); // float32 [0, 1.71828]
 */
export const expm1: FloatOperation = defineUnary("expm1", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.expm1 },
  gradient: (g, x) => mul(g, exp(x)),
});
