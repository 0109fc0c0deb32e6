import type { Tensor } from "../../tensor/tensor.ts";
import { mul, neg, square, sub } from "./arithmetic.ts";
import { eq, gt, lt } from "./comparison.ts";
import { composeUnary } from "./compose.ts";
import { defineUnary } from "./define.ts";
import { div } from "./division.ts";
import { erfcx as exactErfcx, logNdtr as exactLogNdtr } from "./erf.reference.ts";
import { erfinv } from "./erf.ts";
import { exp } from "./exponential.ts";
import { log } from "./logarithm.ts";
import { sqrt } from "./power.ts";
import type { FloatOperation } from "./types.ts";
import { where } from "./where.ts";

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
  gradient: (g, x) => mul(g, sub(mul(mul(x, erfcx(x)), 2), 2 / Math.sqrt(Math.PI))) as Tensor,
});

/** √(2/π)/erfcx(−x/√2), the derivative of ln Φ. */
const hazard = (x: Tensor): Tensor => div(Math.sqrt(2 / Math.PI), erfcx(mul(x, -Math.SQRT1_2) as Tensor)) as Tensor;

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
  gradient: (g, x) => mul(g, hazard(x)) as Tensor,
});

/** Newton's steps on ln Φ(x) = ln p for p ≤ 0.1, where x is concave in ln p. */
const NEWTON_STEPS = 5;

/** Φ⁻¹: by erfinv in the middle, and in the tails by Newton's method from the asymptotic value. */
function quantile(p: Tensor): Tensor {
  const isUpper = gt(p, 0.5);
  const q = where(isUpper, sub(1, p), p) as Tensor;
  const isTail = lt(q, 0.1);
  const middle = mul(erfinv(sub(mul(where(isTail, 0.25, q), 2), 1) as Tensor), Math.SQRT2);
  const isEnd = eq(q, 0);
  const logQ = log(where(isTail, where(isEnd, 0.05, q), 0.05) as Tensor);
  const square_ = mul(logQ, -2) as Tensor;
  let x = neg(sqrt(sub(square_, log(mul(square_, 2 * Math.PI) as Tensor)) as Tensor)) as Tensor;
  for (let step = 0; step < NEWTON_STEPS; step++) x = sub(x, div(sub(logNdtr(x), logQ), hazard(x))) as Tensor;
  const tail = where(isEnd, Number.NEGATIVE_INFINITY, x);
  const lower = where(isTail, tail, middle) as Tensor;
  const value = where(isUpper, neg(lower), lower);
  return where(lt(q, 0), Number.NaN, value) as Tensor;
}

/**
 * Computes the quantiles of the standard normal distribution, Φ⁻¹(p), for each element: the inverse of `ndtr`. −∞ at 0,
 * ∞ at 1, NaN outside. The gradient is √(2π) exp(x²/2). @see {@link exp}
 *
 * @example
 * ndtri(tensor([0.025, 0.5, 0.975])); // float32 [-1.95996, 0, 1.95996]
 */
export const ndtri: FloatOperation = composeUnary("ndtri", {
  compute: quantile,
  gradient: (g, _, y) => mul(g, mul(exp(mul(square(y), 0.5) as Tensor), Math.sqrt(2 * Math.PI))) as Tensor,
});
