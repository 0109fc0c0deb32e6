import { abs, add, mul, reciprocal } from "../elementwise/arithmetic.ts";
import { defineUnary } from "../elementwise/define.ts";
import type { FloatOperation } from "../elementwise/types.ts";

/**
 * Computes x/(1 + |x|) for each element. Integers become float32. NaN at ±∞.
 *
 * @example
 * softsign(tensor([-3, 0, 1])); // float32 [-0.75, 0, 0.5]
 */
export const softsign: FloatOperation = defineUnary("softsign", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => x / (1 + Math.abs(x)) },
  gradient(g, x) {
    const share = reciprocal(add(abs(x), 1)); // multiplied twice, since its square may underflow in float16
    return mul(mul(g, share), share);
  },
});
