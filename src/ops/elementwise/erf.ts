import { mul, neg, square } from "./arithmetic.ts";
import { defineUnary } from "./define.ts";
import { erf as exactErf } from "./erf.reference.ts";
import { exp } from "./exponential.ts";
import type { FloatOperation } from "./types.ts";

/**
 * The error function 2/√π · ∫₀ˣ exp(−t²) dt of each element. @see {@link exp}
 *
 * @example
 * erf(tensor([0, 1])); // float32 [0, 0.8427]
 */
export const erf: FloatOperation = defineUnary("erf", {
  takes: "floats",
  saves: "input",
  reference: { float: exactErf },
  gradient: (g, x) => mul(g, mul(exp(neg(square(x))), 2 / Math.sqrt(Math.PI))),
});
