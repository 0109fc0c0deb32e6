/**
 * Integrals of the gamma density by one quadrature, for the incomplete gamma functions and the gradients of gamma
 * samples.
 *
 * With t = x eˢ, the part of the density p on one side of x is x p(x) ∫ f(s) e^h(s) ds over s from 0 to ∞, where h(s) =
 * σ a s − x (e^σs − 1), and σ is 1 above x and −1 below. The side without the density's maximum is integrated, so h
 * never rises. A Gauss-Legendre rule covers the part where e^h is not negligible.
 */
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, sub } from "./arithmetic.ts";
import { ge, lt } from "./comparison.ts";
import { div } from "./division.ts";
import { exp, expm1 } from "./exponential.ts";
import { legendreRule } from "./legendre.ts";
import { log1p } from "./logarithm.ts";
import { sqrt } from "./power.ts";
import { where } from "./where.ts";

/** The exponent below which e^h is neglected. */
const DEPTH = 40;

/** ∫ e^h ds and, if requested, ∫ s e^h ds for x ≥ 1 (else zeros), with σ: 1 if x ≥ a. */
export function gammaIntegrals(
  a: Tensor,
  x: Tensor,
  { hasMoment }: { readonly hasMoment: boolean },
): { sigma: Tensor; whole: Tensor; moment: Tensor } {
  const isUpper = ge(x, a);
  const sigma = sub(mul(toDType(isUpper, x.dtype), 2), 1);
  const larger = where(isUpper, x, a); // h ≤ −larger · s²/2 near 0
  const near = sqrt(div(2 * DEPTH, larger));
  const slow = div(DEPTH / 3, larger);
  const below = add(slow, sqrt(add(mul(slow, slow), div(2 * DEPTH, larger))));
  const above = where(lt(x, 8), log1p(div(2 * DEPTH, larger)), near);
  const end = where(isUpper, above, below);
  let whole: Tensor = mul(end, 0);
  let moment = whole;
  for (const { at, weight } of legendreRule()) {
    // Each step frees its terms, so that the next step reuses their memory.
    [whole, moment] = tidy((): [Tensor, Tensor] => {
      const s = mul(end, at);
      const t = mul(sigma, s);
      const density = mul(exp(sub(mul(a, t), mul(x, expm1(t)))), weight);
      return [add(whole, density), hasMoment ? add(moment, mul(density, s)) : moment];
    });
  }
  return { sigma, whole: mul(whole, end), moment: mul(moment, end) };
}
