/** The derivative of gamma samples with respect to the shape of their distribution. */
import { gammaIntegrals } from "../ops/elementwise/gamma_integrals.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { add, constant, digamma, div, exp, lt, mul, neg, sub, where } from "./arithmetic.ts";

/** The number of terms of the power series for x < 1. */
const TERMS = 18;

/**
 * Computes d ln x / da for a sample x of the gamma distribution of shape a, at a constant value of its distribution
 * function F: −(∂F/∂a)/(x p(x)), by ∂F/∂a = ∫ (ln t − ψ(a)) p(t) dt up to x. Source: M. Figurnov et al., "Implicit
 * reparameterization gradients", 2018. Below 1 the integral is a power series in x.
 *
 * @param logX ln x, which is finite even where x is not above 0
 */
export function logGammaDerivative(a: Tensor, x: Tensor, logX: Tensor): Tensor {
  const isSmall = lt(x, 1);
  const small = where(isSmall, x, 0.5);
  const smallLog = where(isSmall, logX, Math.log(0.5));
  const difference = sub(logX, digamma(a));
  // The first term is (ln x − ψ(a))/a − 1/a², in a form without cancellation for small a.
  let series = div(sub(smallLog, digamma(add(a, 1))), a);
  let factor = constant(1, x);
  for (let n = 1; n <= TERMS; n++) {
    factor = mul(factor, div(small, -n));
    const r = div(1, add(a, n));
    series = add(series, mul(factor, mul(r, sub(sub(smallLog, digamma(a)), r))));
  }
  const { sigma, whole, moment } = gammaIntegrals(a, where(isSmall, 1, x), { hasMoment: true });
  const large = add(mul(sigma, mul(difference, whole)), moment);
  return where(isSmall, neg(mul(exp(small), series)), large);
}
