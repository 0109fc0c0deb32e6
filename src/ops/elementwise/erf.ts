import { mul, neg, square } from "./arithmetic.ts";
import { defineUnary } from "./define.ts";
import { erf as exactErf, erfc as exactErfc, erfinv as exactErfinv } from "./erf.reference.ts";
import { exp } from "./exponential.ts";
import { normalShare } from "./gated.reference.ts";
import type { FloatOperation } from "./types.ts";

/**
 * Computes the error function 2/√π · ∫₀ˣ exp(−t²) dt of each element. @see {@link exp}
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

/**
 * Computes 1 − erf(x) for each element, accurate even if erf(x) is near 1. @see {@link exp}
 *
 * @example
 * erfc(tensor([0, 1])); // float32 [1, 0.1573]
 */
export const erfc: FloatOperation = defineUnary("erfc", {
  takes: "floats",
  saves: "input",
  reference: { float: exactErfc },
  gradient: (g, x) => mul(g, mul(exp(neg(square(x))), -2 / Math.sqrt(Math.PI))),
});

/**
 * Computes the inverse of {@link erf} for each element: erf(erfinv(x)) is x. It is ±∞ at ±1, and NaN beyond. @see
 * {@link exp}
 *
 * @example
 * erfinv(tensor([0, 0.5])); // float32 [0, 0.476936]
 */
export const erfinv: FloatOperation = defineUnary("erfinv", {
  takes: "floats",
  saves: "output",
  reference: { float: exactErfinv },
  gradient: (g, y) => mul(g, mul(exp(square(y)), Math.sqrt(Math.PI) / 2)),
});

/**
 * Computes the distribution function of the standard normal distribution, erfc(−x/√2)/2, for each element. It is
 * accurate also where it is near 0. @see {@link exp}
 *
 * @example
 * ndtr(tensor([-2, 0, 2])); // float32 [0.0227501, 0.5, 0.97725]
 */
export const ndtr: FloatOperation = defineUnary("ndtr", {
  takes: "floats",
  saves: "input",
  reference: { float: normalShare.value },
  gradient: (g, x) => mul(g, mul(exp(mul(square(x), -0.5)), 1 / Math.sqrt(2 * Math.PI))),
});
