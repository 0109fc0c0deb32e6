/** Bessel functions of the first and second kind, J and Y, and modified ones of the second kind, K. */
import type { Tensor } from "../../tensor/tensor.ts";
import { abs, add, mul, neg, sign, square, sub } from "./arithmetic.ts";
import { i0, i1 } from "./bessel.ts";
import { besselTables } from "./bessel_tables.ts";
import { eq, gt, lt } from "./comparison.ts";
import { composeUnary, polynomialOf } from "./compose.ts";
import { div } from "./division.ts";
import { exp } from "./exponential.ts";
import { log } from "./logarithm.ts";
import { rsqrt } from "./power.ts";
import { cos, sin } from "./trigonometric.ts";
import type { FloatOperation } from "./types.ts";
import { where } from "./where.ts";

type Order = 0 | 1;

/** The squares of the first two zeros of J of each order, other than 0. */
const zeros = [
  [5.783185962946785, 30.471262343662087],
  [14.681970642123893, 49.2184563216946],
] as const;

/** The bound between the polynomials near 0 and the asymptotic form. */
const NEAR = 5;
const ROOT = Math.sqrt(2 / Math.PI);

const withLeadingOne = (x: Tensor, coefficients: readonly number[]): Tensor => polynomialOf(x, [1, ...coefficients]);
const times = (a: Tensor, b: Tensor | number): Tensor => mul(a, b);
const over = (a: Tensor | number, b: Tensor): Tensor => div(a, b);

/** J(x) for 0 ≤ x ≤ 5. */
function firstKindNear(order: Order, x: Tensor): Tensor {
  const { rp, rq } = besselTables[order];
  const [z, [one, two]] = [square(x), zeros[order]];
  const product = times(sub(z, one), sub(z, two));
  const value = times(product, over(polynomialOf(z, rp), withLeadingOne(z, rq)));
  return order === 0 ? value : times(value, x);
}

/**
 * J(x) = √(2 / πx) (P cos θ − (5 / x) Q sin θ) and Y(x) = √(2 / πx) (P sin θ + (5 / x) Q cos θ) for x ≥ 5, with
 * θ = x − π/4 for order 0 and x − 3π/4 for order 1.
 */
function asymptotic(order: Order, x: Tensor, isFirst: boolean): Tensor {
  const { pp, pq, qp, qq } = besselTables[order];
  const ratio = over(NEAR, x);
  const z = square(ratio);
  const p = over(polynomialOf(z, pp), polynomialOf(z, pq));
  const q = times(ratio, over(polynomialOf(z, qp), withLeadingOne(z, qq)));
  const angle = sub(x, ((2 * order + 1) * Math.PI) / 4);
  const [cosine, sine] = [cos(angle), sin(angle)];
  const wave = isFirst ? sub(times(p, cosine), times(q, sine)) : add(times(p, sine), times(q, cosine));
  return times(times(wave, ROOT), rsqrt(x));
}

/** x where a condition holds, and elsewhere a number for which a branch that is not chosen is finite. */
const chosen = (condition: Tensor, x: Tensor, other: number): Tensor => where(condition, x, other);

function firstKind(order: Order, x: Tensor): Tensor {
  const size = abs(x);
  const isFar = gt(size, NEAR);
  const value = where(
    isFar,
    asymptotic(order, chosen(isFar, size, NEAR), true),
    firstKindNear(order, where(isFar, 0, size)),
  );
  return order === 0 ? value : times(value, sign(x));
}

/** −∞ at 0 or ∞ at 0, and NaN below. */
const atEdge = (x: Tensor, value: Tensor, edge: number): Tensor =>
  where(eq(x, 0), edge, where(lt(x, 0), Number.NaN, value));

function secondKind(order: Order, x: Tensor): Tensor {
  const { yp, yq } = besselTables[order];
  const isFar = gt(x, NEAR);
  const near = where(isFar, 1, x);
  const z = square(near);
  const rational = over(polynomialOf(z, yp), withLeadingOne(z, yq));
  const logarithm = times(firstKindNear(order, near), log(near));
  const small =
    order === 0
      ? add(rational, times(logarithm, 2 / Math.PI))
      : add(times(rational, near), times(sub(logarithm, over(1, near)), 2 / Math.PI));
  const value = where(isFar, asymptotic(order, chosen(isFar, x, NEAR), false), small);
  return atEdge(x, value, Number.NEGATIVE_INFINITY);
}

/** Σ c[k] T[k](x / 2) with the last coefficient halved, by Clenshaw's recurrence; the highest order comes first. */
function chebyshev(x: Tensor, coefficients: readonly number[]): Tensor {
  const zero = times(x, 0);
  let [value, before, last] = [zero, zero, zero];
  for (const coefficient of coefficients) {
    [last, before] = [before, value];
    value = add(sub(times(x, before), last), coefficient);
  }
  return times(sub(value, last), 0.5);
}

/** K(x) eˣ if `isScaled`, else K(x). */
function modified(order: Order, x: Tensor, isScaled: boolean): Tensor {
  const { near, far } = besselTables[order];
  const isFar = gt(x, 2);
  const small = where(isFar, 1, x);
  const series = chebyshev(sub(square(small), 2), near);
  const logarithm = log(times(small, 0.5));
  const close =
    order === 0 ? sub(series, times(logarithm, i0(small))) : add(times(logarithm, i1(small)), over(series, small));
  const large = chosen(isFar, x, 2);
  const tail = times(chebyshev(sub(over(8, large), 2), far), rsqrt(large));
  const value = isScaled
    ? where(isFar, tail, times(close, exp(small)))
    : where(isFar, times(tail, exp(neg(large))), close);
  return atEdge(x, value, Number.POSITIVE_INFINITY);
}

/** f(x) / x. */
const perArgument = (y: Tensor, x: Tensor): Tensor => over(y, x);

/**
 * Computes J₀(x), the Bessel function of the first kind of order 0, for each element. The gradient is −J₁(x). @see
 * {@link exp}
 *
 * @example
 * besselJ0(tensor([0, 1, 10])); // float32 [1, 0.765198, -0.245936]
 */
export const besselJ0: FloatOperation = composeUnary("besselJ0", {
  compute: (x) => firstKind(0, x),
  gradient: (g, x) => neg(times(g, besselJ1(x))),
});

/**
 * Computes J₁(x), the Bessel function of the first kind of order 1, for each element. The gradient is J₀(x) − J₁(x)/x,
 * which is ½ at 0. @see {@link exp}
 *
 * @example
 * besselJ1(tensor([0, 1, 10])); // float32 [0, 0.440051, 0.0434727]
 */
export const besselJ1: FloatOperation = composeUnary("besselJ1", {
  compute: (x) => firstKind(1, x),
  gradient(g, x) {
    const isZero = eq(x, 0);
    const divisor = where(isZero, 1, x);
    const ratio = where(isZero, 0.5, perArgument(besselJ1(divisor), divisor));
    return times(g, sub(besselJ0(x), ratio));
  },
});

/**
 * Computes Y₀(x), the Bessel function of the second kind of order 0, for each element: −∞ at 0, and NaN below. The
 * gradient is −Y₁(x). @see {@link exp}
 *
 * @example
 * besselY0(tensor([1, 10])); // float32 [0.0882570, 0.0556712]
 */
export const besselY0: FloatOperation = composeUnary("besselY0", {
  compute: (x) => secondKind(0, x),
  gradient: (g, x) => neg(times(g, besselY1(x))),
});

/**
 * Computes Y₁(x), the Bessel function of the second kind of order 1, for each element: −∞ at 0, and NaN below. The
 * gradient is Y₀(x) − Y₁(x)/x. @see {@link exp}
 *
 * @example
 * besselY1(tensor([1, 10])); // float32 [-0.781213, 0.249015]
 */
export const besselY1: FloatOperation = composeUnary("besselY1", {
  compute: (x) => secondKind(1, x),
  gradient: (g, x, y) => times(g, sub(besselY0(x), perArgument(y, x))),
});

/**
 * Computes K₀(x), the modified Bessel function of the second kind of order 0, for each element: ∞ at 0, and NaN below.
 * The gradient is −K₁(x). @see {@link exp}
 *
 * @example
 * modifiedBesselK0(tensor([1, 2])); // float32 [0.421024, 0.113894]
 */
export const modifiedBesselK0: FloatOperation = composeUnary("modifiedBesselK0", {
  compute: (x) => modified(0, x, false),
  gradient: (g, x) => neg(times(g, modifiedBesselK1(x))),
});

/**
 * Computes K₁(x), the modified Bessel function of the second kind of order 1, for each element: ∞ at 0, and NaN below.
 * The gradient is −K₀(x) − K₁(x)/x. @see {@link exp}
 *
 * @example
 * modifiedBesselK1(tensor([1, 2])); // float32 [0.601907, 0.139866]
 */
export const modifiedBesselK1: FloatOperation = composeUnary("modifiedBesselK1", {
  compute: (x) => modified(1, x, false),
  gradient: (g, x, y) => neg(times(g, add(modifiedBesselK0(x), perArgument(y, x)))),
});

/**
 * Computes eˣ K₀(x) for each element, which does not underflow. The gradient is eˣ (K₀(x) − K₁(x)). @see {@link exp}
 *
 * @example
 * scaledModifiedBesselK0(tensor([1, 1000])); // float32 [1.14446, 0.0396282]
 */
export const scaledModifiedBesselK0: FloatOperation = composeUnary("scaledModifiedBesselK0", {
  compute: (x) => modified(0, x, true),
  gradient: (g, x, y) => times(g, sub(y, scaledModifiedBesselK1(x))),
});

/**
 * Computes eˣ K₁(x) for each element, which does not underflow. The gradient is eˣ (K₁(x) (1 − 1/x) − K₀(x)). @see
 * {@link exp}
 *
 * @example
 * scaledModifiedBesselK1(tensor([1, 1000])); // float32 [1.63615, 0.0396480]
 */
export const scaledModifiedBesselK1: FloatOperation = composeUnary("scaledModifiedBesselK1", {
  compute: (x) => modified(1, x, true),
  gradient: (g, x, y) => times(g, sub(sub(y, perArgument(y, x)), scaledModifiedBesselK0(x))),
});
