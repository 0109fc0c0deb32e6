import { mul } from "./arithmetic.ts";
import { defineBinary } from "./define.ts";
import { div } from "./division.ts";
import type { BinaryOperation } from "./types.ts";

/**
 * √(a² + b²) for each pair of elements, broadcast, whose squares can't overflow; integers become float32. It is ∞ where
 * either operand is infinite, even with NaN. The gradients are a/√(a² + b²) and b/√(a² + b²), which are NaN where both
 * are 0, as in PyTorch. @see {@link add}
 *
 * @example
 * hypot(tensor([3, 5]), tensor([4, 12])); // float32 [5, 13]
 */
export const hypot: BinaryOperation = defineBinary("hypot", {
  takes: "floats",
  saves: "operands",
  reference: { float: Math.hypot },
  gradient: (g, a, b, needs) => {
    const length = hypot(a, b);
    return [needs[0] ? mul(g, div(a, length)) : null, needs[1] ? mul(g, div(b, length)) : null];
  },
});
