import { mul, square } from "../elementwise/arithmetic.ts";
import { defineUnary } from "../elementwise/define.ts";
import { tanh } from "../elementwise/hyperbolic.ts";
import type { FloatOperation } from "../elementwise/types.ts";

/**
 * Computes x − tanh x for each element, accurate near 0. Integers become float32.
 *
 * @example
 * tanhshrink(tensor([-1, 0, 2])); // float32 [-0.238406, 0, 1.035972]
 */
export const tanhshrink: FloatOperation = defineUnary("tanhshrink", {
  takes: "floats",
  saves: "input",
  reference: { float: tanhshrinkOf },
  gradient: (g, x) => mul(g, square(tanh(x))),
});

/**
 * Computes x − tanh x = x·k/(1 + k) for |x| below 2, by Lambert's continued fraction, tanh x = x/(1 + k) with k = x²/(3
 * + x²/(5 + …)), which has no cancellation. Source: NIST Digital Library of Mathematical Functions, 4.39.1.
 */
function tanhshrinkOf(x: number): number {
  if (!(Math.abs(x) < 2)) return x - Math.tanh(x);
  let k = 0;
  for (let odd = 25; odd >= 3; odd -= 2) k = (x * x) / (odd + k);
  return (x * k) / (1 + k);
}
