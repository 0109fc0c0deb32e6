import type { Tensor } from "../../tensor/tensor.ts";
import { abs, mul, neg, sign, sub } from "./arithmetic.ts";
import { i0, i1 } from "./bessel.ts";
import { eq, le } from "./comparison.ts";
import { composeUnary, polynomialOf } from "./compose.ts";
import { div } from "./division.ts";
import { exp } from "./exponential.ts";
import { rsqrt } from "./power.ts";
import type { FloatOperation } from "./types.ts";
import { where } from "./where.ts";

/** Coefficients of Hankel's series in 1/x. Source: NIST Digital Library of Mathematical Functions, 10.40.1. */
function hankel(order: 0 | 1, count: number): number[] {
  const terms = [1];
  for (let k = 1; k < count; k++) terms.unshift((terms[0]! * ((2 * k - 1) ** 2 - 4 * order * order)) / (8 * k));
  return terms;
}

/** e^−|x| I(x) for order 0 or 1: the product up to `end`, where I is a power series, and Hankel's series beyond. */
function scaled(order: 0 | 1, x: Tensor): Tensor {
  const isWide = x.dtype === "float64";
  const end = isWide ? 20 : 12;
  const a = abs(x) as Tensor;
  const isNear = le(a, end);
  const near = where(isNear, a, 0) as Tensor;
  const far = where(isNear, end, a) as Tensor;
  const small = mul(exp(neg(near) as Tensor), order === 0 ? i0(near) : i1(near));
  const series = polynomialOf(div(1, far) as Tensor, hankel(order, isWide ? 30 : 13));
  const large = mul(rsqrt(mul(far, 2 * Math.PI) as Tensor), series);
  const value = where(isNear, small, large) as Tensor;
  return order === 0 ? value : (mul(value, sign(x)) as Tensor);
}

/**
 * Computes e^−|x| I₀(x) for each element, which does not overflow. The gradient is i1e(x) − sign(x) i0e(x). @see {@link
 * exp}
 *
 * @example
 * i0e(tensor([0, 1, 1000])); // float32 [1, 0.46576, 0.0126173]
 */
export const i0e: FloatOperation = composeUnary("i0e", {
  compute: (x) => scaled(0, x),
  gradient: (g, x, y) => mul(g, sub(i1e(x), mul(sign(x), y))) as Tensor,
});

/**
 * Computes e^−|x| I₁(x) for each element, which does not overflow. The gradient is i0e(x) − i1e(x) (sign(x) + 1/x), ½
 * at 0. @see {@link exp}
 *
 * @example
 * i1e(tensor([0, 1, 1000])); // float32 [0, 0.20791, 0.012611]
 */
export const i1e: FloatOperation = composeUnary("i1e", {
  compute: (x) => scaled(1, x),
  gradient(g, x, y) {
    const isZero = eq(x, 0);
    const divisor = where(isZero, 1, x) as Tensor;
    const slope = sub(sub(i0e(x), mul(sign(x), y)), div(y, divisor));
    return mul(g, where(isZero, 0.5, slope) as Tensor) as Tensor;
  },
});
