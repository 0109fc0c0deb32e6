import { accumulationDType, isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { add, mul, square, sub } from "./arithmetic.ts";
import { eq, lt } from "./comparison.ts";
import { defineUnary } from "./define.ts";
import { div } from "./division.ts";
import { zerosLike } from "./operands.ts";
import { cos } from "./trigonometric.ts";
import type { FloatOperation } from "./types.ts";
import { where } from "./where.ts";

/**
 * Computes sin(πx)/(πx) for each element; 1 at 0, and exactly 0 at other integers. @see {@link exp}
 *
 * @example
 * sinc(tensor([0, 0.5, 1])); // float32 [1, 0.63662, 0]
 */
export const sinc: FloatOperation = defineUnary("sinc", {
  takes: "floats",
  saves: "input",
  reference: { float: sincOf },
  gradient: (g, x) => (isComplex(x.dtype) ? mul(g, complexDerivative(x)) : mul(g, derivative(x, sinc, Math.PI))),
});

/**
 * Computes the spherical Bessel function j₀(x) = sin(x)/x for each element; 1 at 0, and 0 at ±∞. @see {@link exp}
 *
 * Source: DLMF 10.49.3.
 *
 * @example
 * sphericalBesselJ0(tensor([0, 1, 2])); // float32 [1, 0.841471, 0.454649]
 */
export const sphericalBesselJ0: FloatOperation = defineUnary("sphericalBesselJ0", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => (x === 0 ? 1 : Math.abs(x) === Infinity ? 0 : Math.sin(x) / x) },
  gradient: (g, x) => mul(g, derivative(x, sphericalBesselJ0, 1)),
});

/** Computes (cos πz − sinc z)/z, and 0 for 0, as PyTorch does. */
function complexDerivative(z: Tensor): Tensor {
  const isZero = eq(z, 0);
  const divisor = where(isZero, 1, z);
  return where(isZero, 0, div(sub(cos(mul(z, Math.PI)), sinc(z)), divisor));
}

/**
 * Computes the derivative of f(x) = sin(sx)/(sx), which is (cos sx − f(x))/x; for s|x| < π/4, where that cancels, by
 * its series.
 */
function derivative(given: Tensor, f: FloatOperation, s: number): Tensor {
  const x = toDType(given, accumulationDType(given.dtype));
  const isNear = lt(square(x), (Math.PI / 4 / s) ** 2);
  const near = where(isNear, x, 0);
  const squares = square(mul(near, s));
  const divisor = where(isNear, 1, x);
  const far = div(sub(cos(mul(x, s)), f(x)), divisor);
  const series = coefficients.reduce<Tensor>((sum, next) => add(mul(sum, squares), next), zerosLike(near));
  return toDType(where(isNear, mul(series, mul(near, s ** 2)), far), given.dtype);
}

/**
 * Coefficients of s²ᵏ·x²ᵏ⁻¹ in the derivative, (−1)ᵏ·2k/(2k + 1)!, the highest first; enough terms for higher
 * derivatives in float64.
 */
const coefficients: readonly number[] = Array.from({ length: 11 }, (_, at) => {
  const k = 11 - at;
  let coefficient = 2 * k;
  for (let factor = 1; factor <= k; factor++) coefficient /= -2 * factor * (2 * factor + 1);
  return coefficient;
});

/** Computes sinc. The remainder r by the nearest integer is exact, and sin(πr) = ±sin(πx). */
function sincOf(x: number): number {
  const magnitude = Math.abs(x);
  if (magnitude === 0) return 1;
  const whole = Math.round(magnitude);
  const sine = Math.sin(Math.PI * (magnitude - whole));
  return (whole % 2 === 0 ? sine : -sine) / (Math.PI * magnitude);
}
