/** The Bessel functions J, Y and K of orders 0 and 1 in float64, by the rational and Chebyshev series of Cephes. */
import { bessel } from "./bessel.reference.ts";
import { besselTables } from "./bessel_tables.ts";

type Order = 0 | 1;

/** The squares of the first two zeros of J of each order, other than 0. */
const zeros = [
  [5.783185962946785, 30.471262343662087],
  [14.681970642123893, 49.2184563216946],
] as const;

/** The bounds between the series near 0 and the asymptotic forms, of J and Y, and of K. */
const FAR = 5;
const K_FAR = 2;

/** A polynomial by Horner's rule, the highest coefficient first. */
const polynomial = (x: number, coefficients: readonly number[]): number =>
  coefficients.reduce((sum, coefficient) => sum * x + coefficient, 0);
const withLeadingOne = (x: number, coefficients: readonly number[]): number => polynomial(x, [1, ...coefficients]);

function nearJ(order: Order, x: number): number {
  const [{ rp, rq }, [first, second], z] = [besselTables[order], zeros[order], x * x];
  const value = (z - first) * (z - second) * (polynomial(z, rp) / withLeadingOne(z, rq));
  return order === 0 ? value : value * x;
}

/**
 * J(x) = √(2 / πx) (P cos θ − (5 / x) Q sin θ) and Y(x) = √(2 / πx) (P sin θ + (5 / x) Q cos θ) for x ≥ 5, with
 * θ = x − π/4 for order 0 and x − 3π/4 for order 1. The difference loses digits of a large x, so that cos θ and sin θ
 * are computed from cos x and sin x.
 */
function asymptotic(order: Order, x: number, isFirst: boolean): number {
  const { pp, pq, qp, qq } = besselTables[order];
  const ratio = FAR / x;
  const z = ratio * ratio;
  const p = polynomial(z, pp) / polynomial(z, pq);
  const q = ratio * (polynomial(z, qp) / withLeadingOne(z, qq));
  const [sum, difference] = [Math.sin(x) + Math.cos(x), Math.sin(x) - Math.cos(x)];
  const [cosine, sine] = order === 0 ? [sum, difference] : [difference, -sum]; // √2 cos θ and √2 sin θ
  return (isFirst ? p * cosine - q * sine : p * sine + q * cosine) / Math.sqrt(Math.PI * x);
}

/** Computes J of an order at x. */
export function besselJ(order: Order, x: number): number {
  const magnitude = Math.abs(x);
  const value = magnitude > FAR ? asymptotic(order, magnitude, true) : nearJ(order, magnitude);
  return order === 1 && x < 0 ? -value : value;
}

/** Computes Y of an order at x: −∞ at 0, NaN below. */
export function besselY(order: Order, x: number): number {
  if (x === 0) return Number.NEGATIVE_INFINITY;
  if (!(x > 0)) return Number.NaN;
  if (x > FAR) return asymptotic(order, x, false);
  const [{ yp, yq }, z] = [besselTables[order], x * x];
  const rational = polynomial(z, yp) / withLeadingOne(z, yq);
  const product = nearJ(order, x) * Math.log(x);
  return order === 0 ? rational + (2 / Math.PI) * product : rational * x + (2 / Math.PI) * (product - 1 / x);
}

/** Σ c[k] T[k](x / 2) with the last coefficient halved, by Clenshaw's recurrence; the highest order comes first. */
function chebyshev(x: number, coefficients: readonly number[]): number {
  let [value, before, last] = [0, 0, 0];
  for (const coefficient of coefficients) {
    [last, before] = [before, value];
    value = x * before - last + coefficient;
  }
  return (value - last) / 2;
}

/** Computes K of an order at x, or eˣ K(x): ∞ at 0, NaN below. */
export function besselK(order: Order, x: number, isScaled: boolean): number {
  if (x === 0) return Number.POSITIVE_INFINITY;
  if (!(x > 0)) return Number.NaN;
  const { near, far } = besselTables[order];
  if (x > K_FAR) return (chebyshev(8 / x - 2, far) / Math.sqrt(x)) * (isScaled ? 1 : Math.exp(-x));
  const series = chebyshev(x * x - 2, near);
  const product = Math.log(x / 2) * bessel(order, x);
  return (order === 0 ? series - product : product + series / x) * (isScaled ? Math.exp(x) : 1);
}
