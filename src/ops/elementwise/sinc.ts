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
  gradient: (g, x) =>
    isComplex(x.dtype)
      ? mul(g, complexDerivative(x))
      : mul(g, toDType(derivative(toDType(x, accumulationDType(x.dtype))), g.dtype)),
});

/** Computes (cos πz − sinc z)/z, and 0 for 0, as PyTorch does. */
function complexDerivative(z: Tensor): Tensor {
  const isZero = eq(z, 0);
  const divisor = where(isZero, 1, z);
  return where(isZero, 0, div(sub(cos(mul(z, Math.PI)), sinc(z)), divisor));
}

/** Computes (cos πx − sinc x)/x; for |x| < ¼, where that cancels, by its series. */
function derivative(x: Tensor): Tensor {
  const isNear = lt(square(x), 1 / 16);
  const near = where(isNear, x, 0);
  const squares = square(near);
  const divisor = where(isNear, 1, x);
  const far = div(sub(cos(mul(x, Math.PI)), sinc(x)), divisor);
  const series = coefficients.reduce<Tensor>((sum, next) => add(mul(sum, squares), next), zerosLike(near));
  return where(isNear, mul(series, near), far);
}

/**
 * Coefficients of x²ᵏ⁻¹ in the derivative, (−1)ᵏ·π²ᵏ·2k/(2k + 1)!, the highest first; enough terms for higher
 * derivatives in float64.
 */
const coefficients: readonly number[] = Array.from({ length: 11 }, (_, at) => {
  const k = 11 - at;
  let coefficient = 2 * k;
  for (let factor = 1; factor <= k; factor++) coefficient *= -(Math.PI ** 2) / (2 * factor * (2 * factor + 1));
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
