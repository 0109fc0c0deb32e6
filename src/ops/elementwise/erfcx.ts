import type { Tensor } from "../../tensor/tensor.ts";
import { mul, square, sub } from "./arithmetic.ts";
import { defineUnary } from "./define.ts";
import { div } from "./division.ts";
import { erfcx as exactErfcx, logNdtr as exactLogNdtr, ndtri as exactNdtri } from "./erf.reference.ts";
import { exp } from "./exponential.ts";
import type { FloatOperation } from "./types.ts";

/**
 * Computes exp(x²) · erfc(x), the scaled complementary error function, for each element. It does not underflow for
 * large x. The gradient is 2x · erfcx(x) − 2/√π. @see {@link exp}
 *
 * @example
 * erfcx(tensor([-1, 0, 100])); // float32 [5.00898, 1, 0.00564161]
 */
export const erfcx: FloatOperation = defineUnary("erfcx", {
  takes: "floats",
  saves: "input",
  reference: { float: exactErfcx },
  gradient: (g, x) => mul(g, sub(mul(mul(x, erfcx(x)), 2), 2 / Math.sqrt(Math.PI))),
});

/** √(2/π)/erfcx(−x/√2), the derivative of ln Φ. */
const hazard = (x: Tensor): Tensor => div(Math.sqrt(2 / Math.PI), erfcx(mul(x, -Math.SQRT1_2)));

/**
 * Computes the logarithm of the standard normal distribution function, ln Φ(x), for each element. It is accurate where
 * Φ underflows. @see {@link exp}
 *
 * @example
 * logNdtr(tensor([-20, 0, 2])); // float32 [-203.917155, -0.693147, -0.0230129]
 */
export const logNdtr: FloatOperation = defineUnary("logNdtr", {
  takes: "floats",
  saves: "input",
  reference: { float: exactLogNdtr },
  gradient: (g, x) => mul(g, hazard(x)),
});

/**
 * Computes the quantiles of the standard normal distribution, Φ⁻¹(p), for each element: the inverse of `ndtr`. −∞ at 0,
 * ∞ at 1, NaN outside. The gradient is √(2π) exp(x²/2). @see {@link exp}
 *
 * @example
 * ndtri(tensor([0.025, 0.5, 0.975])); // float32 [-1.95996, 0, 1.95996]
 */
export const ndtri: FloatOperation = defineUnary("ndtri", {
  takes: "floats",
  saves: "output",
  reference: { float: exactNdtri },
  gradient: (g, y) => mul(g, mul(exp(mul(square(y), 0.5)), Math.sqrt(2 * Math.PI))),
});
