import { abs, mul } from "../elementwise/arithmetic.ts";
import { lt } from "../elementwise/comparison.ts";
import { defineUnary } from "../elementwise/define.ts";
import type { FloatOperation } from "../elementwise/types.ts";
import { where } from "../elementwise/where.ts";

/**
 * Computes min(max(x + 3, 0), 6) / 6 for each element. Integers become float32. The gradient is 0 for x ≤ −3 and x ≥ 3.
 *
 * @example
 * hardsigmoid(tensor([-4, 0, 1, 4])); // float32 [0, 0.5, 0.66667, 1]
 */
export const hardsigmoid: FloatOperation = defineUnary("hardsigmoid", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => Math.min(Math.max(x + 3, 0), 6) / 6 },
  gradient: (g, x) => where(lt(abs(x), 3), mul(g, 1 / 6), 0),
});
