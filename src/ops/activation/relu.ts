import { le } from "../elementwise/comparison.ts";
import { defineUnary } from "../elementwise/define.ts";
import type { UnaryOperation } from "../elementwise/types.ts";
import { where } from "../elementwise/where.ts";

/**
 * Computes max(x, 0) for each element; NaN stays NaN. The gradient is 0 at 0 and 1 at NaN. @see {@link neg}
 *
 * @example
 * relu(tensor([-2, 3])); // float32 [0, 3]
 */
export const relu: UnaryOperation = defineUnary("relu", {
  takes: "numbers",
  saves: "output",
  reference: { float: (x) => (x < 0 ? 0 : x), integer: (x) => (x < 0n ? 0n : x) },
  gradient: (g, y) => where(le(y, 0), 0, g),
});
