import { abs, mul } from "../elementwise/arithmetic.ts";
import { lt } from "../elementwise/comparison.ts";
import { defineBinary, defineUnary } from "../elementwise/define.ts";
import type { BinaryOperation, FloatOperation } from "../elementwise/types.ts";
import { where } from "../elementwise/where.ts";

/**
 * Computes the gradient of hardswish's operand from the result's gradient and the operand. The derivative is 0 for x ≤
 * −3 and 1 for x ≥ 3.
 */
const hardswishGradient: BinaryOperation = defineBinary("hardswishGradient", {
  isPublic: false,
  takes: "floats",
  saves: "operands",
  reference: { float: (g, x) => (x <= -3 ? 0 : x < 3 ? g * ((x + 1.5) / 3) : g) },
  gradient: (h, g, x, needs) => [
    needs[0] ? hardswishGradient(h, x) : null,
    needs[1] ? where(lt(abs(x), 3), mul(mul(h, g), 1 / 3), 0) : null,
  ],
});

/**
 * Computes x · min(max(x + 3, 0), 6) / 6 for each element. Integers become float32. The gradient is 0 for x ≤ −3 and 1
 * for x ≥ 3.
 *
 * Source: A. Howard et al., "Searching for MobileNetV3", 2019.
 *
 * @example
 * hardswish(tensor([-4, 0, 1, 4])); // float32 [0, 0, 0.66667, 4]
 */
export const hardswish: FloatOperation = defineUnary("hardswish", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => x * (Math.min(Math.max(x + 3, 0), 6) / 6) },
  gradient: (g, x) => hardswishGradient(g, x),
});
