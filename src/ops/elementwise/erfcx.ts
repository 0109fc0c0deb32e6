import type { Tensor } from "../../tensor/tensor.ts";
import { abs, add, mul, neg, square, sub } from "./arithmetic.ts";
import { eq, gt, lt } from "./comparison.ts";
import { composeUnary } from "./compose.ts";
import { div } from "./division.ts";
import { erfc, erfinv } from "./erf.ts";
import { exp } from "./exponential.ts";
import { legendreRule } from "./legendre.ts";
import { log, log1p } from "./logarithm.ts";
import { sqrt } from "./power.ts";
import type { FloatOperation } from "./types.ts";
import { where } from "./where.ts";

/** The exponent below which an integrand is neglected. */
const DEPTH = 40;

/** 2/√π ∫ exp(−t² − 2xt) dt over t from 0 to ∞, for x ≥ 0. */
function scaledOfPositive(x: Tensor): Tensor {
  const end = div(DEPTH, add(sqrt(add(square(x), DEPTH) as Tensor), x)) as Tensor; // where t² + 2xt is DEPTH
  let sum = mul(end, 0) as Tensor;
  for (const { at, weight } of legendreRule()) {
    const t = mul(end, at) as Tensor;
    sum = add(sum, mul(exp(neg(mul(t, add(t, mul(x, 2)))) as Tensor), weight)) as Tensor;
  }
  return mul(mul(sum, end), 2 / Math.sqrt(Math.PI)) as Tensor;
}

/** For x < 0: 2 exp(x²) − erfcx(−x) */
function scaled(x: Tensor): Tensor {
  const a = abs(x) as Tensor;
  const isHuge = gt(a, 1e8);
  const bounded = where(isHuge, 1, a) as Tensor;
  const far = div(1 / Math.sqrt(Math.PI), where(isHuge, a, 1));
  const positive = where(isHuge, far, scaledOfPositive(bounded)) as Tensor;
  return where(lt(x, 0), sub(mul(exp(square(x) as Tensor), 2), positive), positive) as Tensor;
}

/**
 * Computes exp(x²) · erfc(x), the scaled complementary error function, for each element. It does not underflow for
 * large x. The gradient is 2x · erfcx(x) − 2/√π. @see {@link exp}
 *
 * @example
 * erfcx(tensor([-1, 0, 100])); // float32 [5.00898, 1, 0.00564161]
 */
export const erfcx: FloatOperation = composeUnary("erfcx", {
  compute: scaled,
  gradient: (g, x, y) => mul(g, sub(mul(mul(x, y), 2), 2 / Math.sqrt(Math.PI))) as Tensor,
});

/** ln Φ(x): by erfcx below 0, where Φ underflows, and by ln(1 − Φ(−x)) above. */
function logShare(x: Tensor): Tensor {
  const isBelow = lt(x, 0);
  const below = where(isBelow, x, 0) as Tensor;
  const above = where(isBelow, 0, x) as Tensor;
  const tail = log(mul(scaled(mul(below, -Math.SQRT1_2) as Tensor), 0.5) as Tensor);
  const rest = log1p(mul(erfc(mul(above, Math.SQRT1_2) as Tensor), -0.5) as Tensor);
  return where(isBelow, sub(tail, mul(square(below), 0.5)), rest) as Tensor;
}

/** √(2/π)/erfcx(−x/√2), the derivative of ln Φ. */
const hazard = (x: Tensor): Tensor => div(Math.sqrt(2 / Math.PI), erfcx(mul(x, -Math.SQRT1_2) as Tensor)) as Tensor;

/** ln Φ(−∞) = −∞, where the square and the logarithm of erfcx are both infinite. */
function withInfinity(x: Tensor): Tensor {
  const isInfinite = eq(x, Number.NEGATIVE_INFINITY);
  return where(isInfinite, Number.NEGATIVE_INFINITY, logShare(where(isInfinite, 0, x) as Tensor)) as Tensor;
}

/**
 * Computes the logarithm of the standard normal distribution function, ln Φ(x), for each element. It is accurate where
 * Φ underflows. @see {@link exp}
 *
 * @example
 * logNdtr(tensor([-20, 0, 2])); // float32 [-203.917155, -0.693147, -0.0230129]
 */
export const logNdtr: FloatOperation = composeUnary("logNdtr", {
  compute: withInfinity,
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
  for (let step = 0; step < NEWTON_STEPS; step++) x = sub(x, div(sub(logShare(x), logQ), hazard(x))) as Tensor;
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
