import { mul, square, sub } from "./arithmetic.ts";
import { defineUnary } from "./define.ts";
import type { FloatOperation } from "./types.ts";

/**
 * Computes the hyperbolic tangent of each element. @see {@link exp}
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

/**
 * Computes the hyperbolic sine (eˣ − e⁻ˣ)/2 of each element. @see {@link exp}
 *
 * @example
 * sinh(tensor([0, 1])); // float32 [0, 1.1752]
 */
export const sinh: FloatOperation = defineUnary("sinh", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.sinh },
  gradient: (g, x) => mul(g, cosh(x)),
});

/**
 * Computes the hyperbolic cosine (eˣ + e⁻ˣ)/2 of each element. @see {@link exp}
 *
 * @example
 * cosh(tensor([0, 1])); // float32 [1, 1.54308]
 */
export const cosh: FloatOperation = defineUnary("cosh", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.cosh },
  gradient: (g, x) => mul(g, sinh(x)),
});
