import { mul, square, sub } from "./arithmetic.ts";
import { defineUnary } from "./define.ts";
import type { FloatOperation } from "./types.ts";

/**
 * The hyperbolic tangent of each element. @see {@link exp}
 *
 * @example
 * tanh(tensor([0, 1])); // float32 [0, 0.76159]
 */
export const tanh: FloatOperation = defineUnary("tanh", {
  takes: "floats",
  saves: "output",
  reference: { float: Math.tanh },
  gradient: (g, y) => mul(g, sub(1, square(y))),
});
