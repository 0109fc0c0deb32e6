import { mul } from "./arithmetic.ts";
import { defineBinary } from "./define.ts";
import { div } from "./division.ts";
import type { BinaryOperation } from "./types.ts";

/**
 * Computes √(a² + b²) for each pair of elements, with broadcasting; squares do not overflow. Integers become float32.
 * The result is ∞ if either operand is infinite, even if the other is NaN. The gradients are a/√(a² + b²) and b/√(a² +
 * b²), which are NaN if both operands are 0, as in PyTorch. @see {@link add}
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
