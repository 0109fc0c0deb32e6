import { add, mul, square, sub } from "../elementwise/arithmetic.ts";
import { defineUnary } from "../elementwise/define.ts";
import { tanh } from "../elementwise/hyperbolic.ts";
import type { FloatOperation } from "../elementwise/types.ts";
import { sigmoid } from "./sigmoid.ts";
import { softplus } from "./softplus.ts";

/**
 * Computes x · tanh(ln(1 + eˣ)) for each element. Integers become float32. NaN at −∞.
 *
 * Source: D. Misra, "Mish: a self regularized non-monotonic activation function", 2019.
 *
 * @example
 * mish(tensor([-1, 0, 1])); // float32 [-0.303401, 0, 0.865098]
 */
export const mish: FloatOperation = defineUnary("mish", {
  takes: "floats",
  saves: "input",
  reference: { float: mishOf },
  gradient(g, x) {
    const share = tanh(softplus(x, { threshold: 40 }));
    return mul(g, add(share, mul(mul(x, sigmoid(x)), sub(1, square(share)))));
  },
});

/** Computes mish: with w = eˣ, tanh(ln(1 + w)) is n/(n + 2) with n = w·(w + 2); for w > 1, both are divided by w². */
function mishOf(x: number): number {
  const e = Math.exp(-Math.abs(x));
  const n = x < 0 ? e * (e + 2) : 1 + 2 * e;
  return (x * n) / (n + (x < 0 ? 2 : 2 * e * e));
}
