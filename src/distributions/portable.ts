/**
 * Functions that give the same bits on every backend. They consist only of sums, products, quotients, square roots,
 * comparisons and selections, whose results IEEE 754 defines exactly. Samples are computed with them, since the
 * backends' exponentials and logarithms may differ in the last bit. They have no gradients unless stated otherwise.
 *
 * Errors are a few units in the last place of the largest term.
 */

import { noGrad } from "../autograd/modes.ts";
import { record } from "../autograd/record.ts";
import { lastElement } from "../core/collections.ts";
import { amax, clamp, narrow, round, take, tensor, toDType } from "../ops/index.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import {
  abs,
  add,
  constant,
  div,
  floor,
  ge,
  gt,
  le,
  lt,
  mul,
  neg,
  polynomial,
  sqrt,
  sub,
  sumLast,
  where,
} from "./arithmetic.ts";

const without = <Result>(body: () => Result): Result => noGrad(() => tidy(body));

const isWide = (x: Tensor): boolean => x.dtype === "float64";

/** The powers of two for finding an exponent by bisection, for the range of each dtype. */
const steps = { float32: [64, 32, 16, 8, 4, 2, 1], float64: [512, 256, 128, 64, 32, 16, 8, 4, 2, 1] } as const;
const stepsOf = (x: Tensor): readonly number[] => (isWide(x) ? steps.float64 : steps.float32);

/** Coefficients of Σ z^k / (2k + 1), the highest first: artanh(s) = s · Σ s^2k / (2k + 1). */
const artanhTerms = (count: number): number[] => Array.from({ length: count }, (_, at) => 1 / (2 * (count - at) - 1));

/** Computes ln((1 + s)/(1 − s)) for |s| ≤ 0.18. */
function twiceArtanh(s: Tensor): Tensor {
  return mul(mul(s, 2), polynomial(mul(s, s), artanhTerms(isWide(s) ? 12 : 6)));
}

/** Computes ln x for finite x in the normal range above 0. `isBelowTwo` saves steps if x is known to be below 2. */
export function portableLog(x: Tensor, { isBelowTwo = false } = {}): Tensor {
  return without(() => {
    let mantissa: Tensor = x;
    let exponent = constant(0, x);
    for (const step of isBelowTwo ? [] : stepsOf(x)) {
      const isLarge = ge(mantissa, 2 ** step);
      mantissa = where(isLarge, mul(mantissa, 2 ** -step), mantissa);
      exponent = where(isLarge, add(exponent, step), exponent);
    }
    for (const step of stepsOf(x)) {
      const isSmall = lt(mantissa, 2 ** (1 - step));
      mantissa = where(isSmall, mul(mantissa, 2 ** step), mantissa);
      exponent = where(isSmall, sub(exponent, step), exponent);
    }
    const isUpper = gt(mantissa, Math.SQRT2);
    mantissa = where(isUpper, mul(mantissa, 0.5), mantissa);
    exponent = where(isUpper, add(exponent, 1), exponent);
    return add(mul(exponent, Math.LN2), twiceArtanh(div(sub(mantissa, 1), add(mantissa, 1))));
  });
}

/** Computes ln(1 + x) for x > −1; it is accurate for small x. */
export function portableLog1p(x: Tensor): Tensor {
  return without(() => {
    const isNear = le(abs(x), 0.25);
    const near = where(isNear, x, 0);
    return where(isNear, twiceArtanh(div(near, add(near, 2))), portableLog(where(isNear, 1, add(x, 1))));
  });
}

/** ln 2 in two parts; the upper one has few bits, so that its multiples are exact. */
const LN2_HIGH = 0.693359375;
const LN2_LOW = Math.LN2 - LN2_HIGH;

/** Coefficients of Σ r^k / k!, the highest first. */
const exponentialTerms = (count: number): number[] => {
  const terms = [1];
  for (let k = 1; k < count; k++) terms.unshift(terms[0] / k);
  return terms;
};

/** Computes eˣ; 0 where the result would be subnormal, and ∞ where it would overflow. */
export function portableExp(x: Tensor): Tensor {
  return without(() => {
    const most = isWide(x) ? 708 : 87;
    const bounded = clamp(x, { min: -most, max: most });
    const exponent = round(mul(bounded, Math.LOG2E));
    const rest = sub(sub(bounded, mul(exponent, LN2_HIGH)), mul(exponent, LN2_LOW));
    const value = polynomial(rest, exponentialTerms(isWide(x) ? 15 : 8));
    const scaled = timesPowerOfTwo(value, exponent);
    return where(lt(x, -most), 0, where(gt(x, most), Number.POSITIVE_INFINITY, scaled));
  });
}

/** Computes x · 2ⁿ for whole n. */
function timesPowerOfTwo(x: Tensor, n: Tensor): Tensor {
  let rest: Tensor = abs(n);
  let factor = constant(1, x);
  for (const step of stepsOf(x)) {
    const isLarge = ge(rest, step);
    rest = where(isLarge, sub(rest, step), rest);
    factor = where(isLarge, mul(factor, 2 ** step), factor);
  }
  return where(lt(n, 0), div(x, factor), mul(x, factor));
}

/** As {@link portableExp}, with the gradient of the exponential. */
export function differentiableExp(x: Tensor): Tensor {
  const y = portableExp(x);
  record("exp", [x], [y], [y], ([g], [saved]) => [mul(g, saved)]);
  return y;
}

/** Computes 1/(1 + e⁻ˣ). */
export const portableSigmoid = (x: Tensor): Tensor =>
  without(() => {
    const small = portableExp(neg(abs(x)));
    return div(where(lt(x, 0), small, 1), add(small, 1));
  });

/** Sums the last axis in order, one element after the other. */
export function portableSum(x: Tensor): Tensor {
  let total = narrow(x, -1, 0, 1);
  for (let at = 1; at < lastElement(x.shape); at++) total = add(total, narrow(x, -1, at, 1));
  return total;
}

/** Computes the softmax of the last axis. It has a gradient. */
export function portableSoftmax(x: Tensor): Tensor {
  const y = without(() => {
    const powers = portableExp(sub(x, amax(x, -1, true)));
    return div(powers, portableSum(powers));
  });
  record("softmax", [x], [y], [y], ([g], [saved]) => {
    const product = mul(g, saved);
    return [sub(product, mul(saved, sumLast(product, 1, true)))];
  });
  return y;
}

/** Computes arctan x for x ≥ 0. It inverts x above 1, and halves the angle twice. */
export function portableAtan(x: Tensor): Tensor {
  return without(() => {
    const isLarge = gt(x, 1);
    let t = where(isLarge, div(1, where(isLarge, x, 1)), x);
    for (let halving = 0; halving < 2; halving++) t = div(t, add(sqrt(add(mul(t, t), 1)), 1));
    const terms = artanhTerms(isWide(x) ? 13 : 7);
    const angle = mul(mul(t, 4), polynomial(neg(mul(t, t)), terms));
    return where(isLarge, sub(Math.PI / 2, angle), angle);
  });
}

/** Up to this number, {@link stirlingError} uses a table; beyond it, a series. */
const TABLE = 16;
const errors = Array.from({ length: TABLE + 1 }, (_, k) => {
  let logFactorial = 0;
  for (let factor = 2; factor <= k; factor++) logFactorial += Math.log(factor);
  return k === 0 ? 0 : logFactorial - (0.5 * Math.log(2 * Math.PI * k) + k * Math.log(k) - k);
});
/**
 * The coefficients of 1/k, 1/k³, …, the highest first. Source: NIST Digital Library of Mathematical Functions, 5.11.1.
 */
const stirling = [-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12];

/**
 * Computes ln k! − ln(√(2πk) (k/e)ᵏ) for whole k ≥ 1. Source: C. Loader, "Fast and accurate computation of binomial
 * probabilities", 2000.
 */
export function stirlingError(k: Tensor): Tensor {
  return without(() => {
    const isSmall = le(k, TABLE);
    const index = toDType(floor(clamp(k, { min: 0, max: TABLE })), "int64");
    const listed = take(tensor(errors, { dtype: k.dtype }), index);
    const r = div(1, where(isSmall, 1, k));
    return where(isSmall, listed, mul(r, polynomial(mul(r, r), stirling)));
  });
}

/** Computes x ln(x/mean) + mean − x, Loader's deviance, for x and mean above 0. */
export const deviance = (x: Tensor, mean: Tensor): Tensor =>
  without(() => {
    const e = div(sub(mean, x), x);
    return mul(x, sub(e, portableLog1p(e)));
  });
