import { mul, sign, sub } from "./arithmetic.ts";
import { scaledBessel } from "./bessel.reference.ts";
import { eq } from "./comparison.ts";
import { defineUnary } from "./define.ts";
import { div } from "./division.ts";
import type { FloatOperation } from "./types.ts";
import { where } from "./where.ts";

/**
 * Computes e^−|x| I₀(x) for each element, which does not overflow. The gradient is i1e(x) − sign(x) i0e(x). @see {@link
 * exp}
 *
 * @example
 * i0e(tensor([0, 1, 1000])); // float32 [1, 0.46576, 0.0126173]
 */
export const i0e: FloatOperation = defineUnary("i0e", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => scaledBessel(0, x) },
  gradient: (g, x) => mul(g, sub(i1e(x), mul(sign(x), i0e(x)))),
});

/**
 * Computes e^−|x| I₁(x) for each element, which does not overflow. The gradient is i0e(x) − i1e(x) (sign(x) + 1/x), ½
 * at 0. @see {@link exp}
 *
 * @example
 * i1e(tensor([0, 1, 1000])); // float32 [0, 0.20791, 0.012611]
 */
export const i1e: FloatOperation = defineUnary("i1e", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => scaledBessel(1, x) },
  gradient(g, x) {
    const y = i1e(x);
    const isZero = eq(x, 0);
    const divisor = where(isZero, 1, x);
    const slope = sub(sub(i0e(x), mul(sign(x), y)), div(y, divisor));
    return mul(g, where(isZero, 0.5, slope));
  },
});
