import { mul, neg } from "../elementwise/arithmetic.ts";
import { defineUnary } from "../elementwise/define.ts";
import type { FloatOperation } from "../elementwise/types.ts";
import { sigmoid } from "./sigmoid.ts";

/**
 * Computes ln(1/(1 + e⁻ˣ)) for each element; accurate even if the sigmoid rounds to 0 or 1. Integers become float32.
 *
 * @example
 * logSigmoid(tensor([-1, 0, 1])); // float32 [-1.313262, -0.693147, -0.313262]
 */
export const logSigmoid: FloatOperation = defineUnary("logSigmoid", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x))) },
  gradient: (g, x) => mul(g, sigmoid(neg(x))),
});
