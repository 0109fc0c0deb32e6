/** Arithmetic, exponentials and logarithms of complex numbers by formulas on the real and the imaginary parts. */

import type { Tensor } from "../../tensor/tensor.ts";
import { abs, neg, square } from "../elementwise/arithmetic.ts";
import { eq, ge, gt, lt } from "../elementwise/comparison.ts";
import { copysign } from "../elementwise/copysign.ts";
import { exp } from "../elementwise/exponential.ts";
import { maximum, minimum } from "../elementwise/extrema.ts";
import { hypot } from "../elementwise/hypot.ts";
import { log, log1p } from "../elementwise/logarithm.ts";
import { logicalAnd, logicalNot, logicalOr } from "../elementwise/logic.ts";
import { sqrt } from "../elementwise/power.ts";
import { isfinite, isinf } from "../elementwise/predicates.ts";
import { atan2, cos, sin } from "../elementwise/trigonometric.ts";
import { choose, filledLike, minus, over, type Parts, plus, times } from "./real_operations.ts";

/** Computes (a + bi)(c + di) = (ac − bd) + (ad + bc)i. */
export const product = (x: Parts, y: Parts): Parts => ({
  re: minus(times(x.re, y.re), times(x.im, y.im)),
  im: plus(times(x.re, y.im), times(x.im, y.re)),
});

/**
 * Divides by the larger part first, so that no square overflows (Smith, "Algorithm 116: Complex division", 1962). A
 * division by 0 divides both parts by it.
 */
export function quotient({ re: a, im: b }: Parts, { re: c, im: d }: Parts): Parts {
  const isRealLarger = ge(abs(c), abs(d));
  const larger = choose(isRealLarger, c, d);
  const smaller = choose(isRealLarger, d, c);
  const isZero = eq(larger, 0);
  const ratio = choose(isZero, 0, over(smaller, larger));
  const scale = over(1, choose(isZero, abs(larger), plus(larger, times(smaller, ratio))));
  const first = choose(isRealLarger, a, b);
  const second = choose(isRealLarger, b, a);
  const across = minus(second, times(first, ratio));
  return {
    re: times(plus(first, times(second, ratio)), scale),
    im: times(choose(isRealLarger, across, neg(across)), scale),
  };
}

/** Computes e^re · (cos im + i · sin im). */
export const exponential = ({ re, im }: Parts): Parts => polarForm(exp(re), im, im);

/**
 * Computes size · (cos angle + i · sin angle). The result is real for im = 0, even if the size is infinite. It is 0 for
 * the size 0, even if the angle is not finite.
 */
export function polarForm(size: Tensor, angle: Tensor, im: Tensor): Parts {
  const isReal = eq(im, 0);
  const isZero = logicalAnd(eq(size, 0), logicalNot(isfinite(angle)));
  const part = (whole: Tensor, factor: Tensor) => choose(isReal, whole, choose(isZero, 0, times(size, factor)));
  return { re: part(size, cos(angle)), im: part(im, sin(angle)) };
}

/** Computes z / |z|; 0 for 0. */
export function direction({ re, im }: Parts): Parts {
  const size = hypot(re, im);
  const isZero = eq(size, 0);
  return { re: choose(isZero, 0, over(re, size)), im: choose(isZero, 0, over(im, size)) };
}

/**
 * Computes the square root with re ≥ 0 (Kahan, "Branch Cuts for Complex Elementary Functions", 1987). The parts are
 * scaled so that their absolute value does not overflow.
 */
export function root({ re, im }: Parts): Parts {
  const [a, b] = [times(re, 0.25), times(im, 0.25)];
  const larger = times(sqrt(times(plus(abs(a), hypot(a, b)), 0.5)), 2); // √((|re| + |z|)/2)
  const isZero = eq(larger, 0);
  const smaller = choose(isZero, 0, over(im, times(choose(isZero, 1, larger), 2)));
  const isRight = ge(re, 0);
  const isInfinite = isinf(im);
  const infinity = filledLike(re, Number.POSITIVE_INFINITY);
  return {
    re: choose(isInfinite, infinity, choose(isRight, larger, abs(smaller))),
    im: choose(isInfinite, im, choose(isRight, copysign(smaller, im), copysign(larger, im))),
  };
}

/** Computes the principal logarithm: ln|z| + i · angle, with the imaginary part in [−π, π]. */
export const logarithm = ({ re, im }: Parts): Parts => ({ re: logOfSize(re, im), im: atan2(im, re) });

/** ln|z|. Near |z| = 1 it is ½ · ln(1 + (m − 1)(m + 1) + n²) with the larger part m, which does not cancel. */
function logOfSize(re: Tensor, im: Tensor): Tensor {
  const [a, b] = [abs(re), abs(im)];
  const [m, n] = [maximum(a, b), minimum(a, b)];
  const near = times(log1p(plus(times(minus(m, 1), plus(m, 1)), square(n))), 0.5);
  const far = plus(log(hypot(times(m, 0.5), times(n, 0.5))), Math.LN2);
  const small = log(hypot(m, n));
  const isInfinite = logicalOr(isinf(a), isinf(b));
  const known = choose(logicalAnd(gt(m, 0.5), lt(m, 2)), near, choose(gt(m, 1), far, small));
  return choose(isInfinite, Number.POSITIVE_INFINITY, known);
}

/** Computes ln(1 + z), accurate near 0: the real part is ½ · ln(1 + re · (2 + re) + im²). */
export function logarithmOfSum({ re, im }: Parts): Parts {
  const isNear = lt(maximum(abs(re), abs(im)), 0.5);
  const near = times(log1p(plus(times(re, plus(re, 2)), square(im))), 0.5);
  const sum = plus(re, 1);
  return { re: choose(isNear, near, logOfSize(sum, im)), im: atan2(im, sum) };
}

/** Computes xʸ = e^(y · ln x). 0ʸ is 1 for y = 0, and 0 for a positive real part of y. */
export function power(x: Parts, y: Parts): Parts {
  const isZero = logicalAnd(eq(x.re, 0), eq(x.im, 0));
  const result = exponential(product(y, logarithm({ re: choose(isZero, 1, x.re), im: x.im })));
  const isOne = logicalAnd(eq(y.re, 0), eq(y.im, 0));
  const ofZero = choose(isOne, 1, choose(gt(y.re, 0), filledLike(result.re, 0), Number.NaN));
  return {
    re: choose(isZero, ofZero, result.re),
    im: choose(isZero, choose(logicalOr(isOne, gt(y.re, 0)), filledLike(result.im, 0), Number.NaN), result.im),
  };
}

/** Multiplies by a real number. */
export const scaled = ({ re, im }: Parts, factor: number): Parts => ({ re: times(re, factor), im: times(im, factor) });
