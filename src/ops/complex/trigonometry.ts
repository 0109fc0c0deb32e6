/**
 * Trigonometric and hyperbolic functions of complex numbers on the real and the imaginary parts. The inverse functions
 * follow Kahan, "Branch Cuts for Complex Elementary Functions", 1987: branch cuts depend on signed zeros, as in C99.
 */

import type { Tensor } from "../../tensor/tensor.ts";
import { abs, neg, square } from "../elementwise/arithmetic.ts";
import { eq, gt } from "../elementwise/comparison.ts";
import { copysign } from "../elementwise/copysign.ts";
import { exp } from "../elementwise/exponential.ts";
import { cosh, sinh } from "../elementwise/hyperbolic.ts";
import { asinh } from "../elementwise/inverse_hyperbolic.ts";
import { log1p } from "../elementwise/logarithm.ts";
import { sqrt } from "../elementwise/power.ts";
import { isinf, isnan } from "../elementwise/predicates.ts";
import { atan2, cos, sin, tan } from "../elementwise/trigonometric.ts";
import { root } from "./formulas.ts";
import { choose, filledLike, minus, over, type Parts, plus, times } from "./real_operations.ts";

/** i · z. */
const turned = ({ re, im }: Parts): Parts => ({ re: neg(im), im: re });
/** −i · z. */
const turnedBack = ({ re, im }: Parts): Parts => ({ re: im, im: neg(re) });

/** The product f(re) · g(im), without NaN for 0 · ∞. */
const timesZero = (large: Tensor, factor: Tensor): Tensor => choose(eq(factor, 0), factor, times(large, factor));

/** Computes sinh z = sinh re · cos im + i · cosh re · sin im. */
export const hyperbolicSine = ({ re, im }: Parts): Parts => ({
  re: timesZero(cos(im), sinh(re)),
  im: timesZero(cosh(re), sin(im)),
});

/** Computes cosh z = cosh re · cos im + i · sinh re · sin im. */
export const hyperbolicCosine = ({ re, im }: Parts): Parts => ({
  re: times(cosh(re), cos(im)),
  im: choose(eq(re, 0), times(re, sin(im)), timesZero(sinh(re), sin(im))),
});

/** Above this |re|, tanh is ±1 in float64. */
const SATURATED = 20;

/**
 * Computes tanh z = (β ρ s + i · t) / (1 + β s²) with t = tan im, β = 1 + t², s = sinh re, ρ = √(1 + s²). For large
 * |re| the imaginary part is 4 · sin im · cos im · e^(−2|re|).
 */
export function hyperbolicTangent({ re, im }: Parts): Parts {
  const size = abs(re);
  const isLarge = gt(size, SATURATED);
  const s = sinh(choose(isLarge, 0, re));
  const t = tan(im);
  const beta = plus(square(t), 1);
  const divisor = plus(times(beta, square(s)), 1);
  const rho = sqrt(plus(square(s), 1));
  const decay = exp(times(size, -2));
  const tail = choose(eq(decay, 0), 0, times(times(times(sin(im), cos(im)), decay), 4));
  return {
    re: choose(isLarge, copysign(filledLike(re, 1), re), over(times(times(beta, rho), s), divisor)),
    im: choose(isLarge, tail, over(t, divisor)),
  };
}

export const sine = (z: Parts): Parts => turnedBack(hyperbolicSine(turned(z)));
export const cosine = (z: Parts): Parts => hyperbolicCosine(turned(z));
export const tangent = (z: Parts): Parts => turnedBack(hyperbolicTangent(turned(z)));

/** √(1 − z) and √(1 + z). */
const roots = ({ re, im }: Parts): readonly [Parts, Parts] => [
  root({ re: minus(1, re), im: neg(im) }),
  root({ re: plus(re, 1), im }),
];

/** The imaginary part of conj(x) · y. */
const crossed = (x: Parts, y: Parts): Tensor => minus(times(x.re, y.im), times(x.im, y.re));
/** The real part of conj(x) · y. */
const dotted = (x: Parts, y: Parts): Tensor => plus(times(x.re, y.re), times(x.im, y.im));

/** Whether a part is infinite and none is NaN: the inverse functions then have the limits of C99. */
const isInfinite = ({ re, im }: Parts): Tensor => isinf(plus(abs(re), abs(im)));

export function arcsine(z: Parts): Parts {
  const [less, more] = roots(z);
  const cosine = minus(times(less.re, more.re), times(less.im, more.im));
  const re = atan2(z.re, choose(isInfinite(z), abs(z.im), cosine));
  return { re, im: asinh(crossed(less, more)) };
}

export function arccosine(z: Parts): Parts {
  const [less, more] = roots(z);
  const re = choose(isInfinite(z), atan2(abs(z.im), z.re), times(atan2(less.re, more.re), 2));
  return { re: choose(isnan(z.re), z.re, re), im: asinh(crossed(more, less)) };
}

export function hyperbolicArccosine({ re, im }: Parts): Parts {
  const less = root({ re: minus(re, 1), im });
  const more = root({ re: plus(re, 1), im });
  const angle = times(atan2(less.im, more.re), 2);
  return {
    re: asinh(dotted(less, more)),
    im: choose(isnan(re), re, choose(isInfinite({ re, im }), atan2(im, re), angle)),
  };
}

/** Computes artanh z: ¼ · ln(1 + 4 re / ((1 − re)² + im²)) + ½ i · atan2(2 im, (1 − re)(1 + re) − im²). */
export function hyperbolicArctangent({ re, im }: Parts): Parts {
  const less = minus(1, re);
  const ratio = over(times(abs(re), 4), plus(square(minus(abs(re), 1)), square(im)));
  const angle = atan2(times(im, 2), minus(times(less, plus(re, 1)), square(im)));
  const isFar = isInfinite({ re, im });
  return {
    re: copysign(choose(isFar, 0, times(log1p(ratio), 0.25)), re),
    im: choose(isFar, copysign(filledLike(im, Math.PI / 2), im), times(angle, 0.5)),
  };
}

export const hyperbolicArcsine = (z: Parts): Parts => turnedBack(arcsine(turned(z)));
export const arctangent = (z: Parts): Parts => turnedBack(hyperbolicArctangent(turned(z)));
