import { mul, sub } from "../elementwise/arithmetic.ts";
import { defineUnary } from "../elementwise/define.ts";
import { logistic } from "../elementwise/gated.reference.ts";
import type { FloatOperation } from "../elementwise/types.ts";

/**
 * Computes 1/(1 + e⁻ˣ) for each element. @see {@link exp}
 *
 * @example
 * sigmoid(tensor([0, 1])); // float32 [0.5, 0.73106]
 */
export const sigmoid: FloatOperation = defineUnary("sigmoid", {
  takes: "floats",
  saves: "output",
  reference: { float: logistic },
  gradient: (g, y) => mul(g, mul(y, sub(1, y))),
});
