import { noGrad } from "../../autograd/modes.ts";
import { record } from "../../autograd/record.ts";
import { execute, underName } from "../../backend/dispatch.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { accumulationDType } from "../../tensor/dtype.ts";
import { tensorOrScalar } from "../../tensor/kinds.ts";
import { broadcastShapes } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { contiguous } from "../copy/copy.ts";
import { expand } from "../view/expand.ts";
import { add, mul, neg, sub } from "./arithmetic.ts";
import { eq, ge, lt } from "./comparison.ts";
import { div } from "./division.ts";
import { exp } from "./exponential.ts";
import { lgamma } from "./gamma.ts";
import { gammaIntegrals } from "./gamma_integrals.ts";
import { gammaPairPrimitive, hasGammaPair } from "./incomplete_gamma.cpu.ts";
import { log, log1p } from "./logarithm.ts";
import { logicalAnd, logicalOr } from "./logic.ts";
import { promoteOperands } from "./operands.ts";
import type { Operand, ResultOf } from "./types.ts";
import { where } from "./where.ts";
import { withoutDerivative } from "./without_derivative.ts";
import { xlogy } from "./xlogy.ts";

/** The shape from which x p(x) is computed by Stirling's series. */
const FAR = 10;
/**
 * The coefficients of 1/a, 1/a³, …, the highest first. Source: NIST Digital Library of Mathematical Functions, 5.11.1.
 */
const stirling = [-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12];

/**
 * x p(x) = xᵃ e⁻ˣ/Γ(a). Large powers cancel, so that for a ≥ 10 it is √(a/2π) e^(a (ln(1 + e) − e) − δ(a)) with e = (x
 * − a)/a and δ the error of Stirling's formula.
 */
function weightedDensity(a: Tensor, x: Tensor): Tensor {
  const isFar = ge(a, FAR);
  const near = where(isFar, 1, a);
  const direct = exp(sub(sub(xlogy(near, x), x), lgamma(near)));
  const far = where(isFar, a, FAR);
  const r = div(1, far);
  const z = mul(r, r);
  const [first, ...others] = stirling;
  let error = add(mul(z, 0), first);
  for (const coefficient of others) error = add(mul(error, z), coefficient);
  const e = div(sub(x, far), far);
  const power = sub(mul(far, sub(log1p(e), e)), mul(error, r));
  const scaled = mul(exp(power), exp(mul(log(mul(far, 1 / (2 * Math.PI))), 0.5)));
  return where(isFar, scaled, direct);
}

/** The number of terms of the power series below 1. */
const TERMS = 18;

/** P(a, x) for x < 1: xᵃ/Γ(a + 1) · (1 + a Σ (−x)ⁿ/(n! (a + n))) */
function powerSeries(a: Tensor, x: Tensor): Tensor {
  let factor = neg(x);
  let sum = div(factor, add(a, 1));
  for (let n = 2; n <= TERMS; n++) {
    factor = mul(factor, mul(x, -1 / n));
    sum = add(sum, div(factor, add(a, n)));
  }
  return mul(exp(sub(xlogy(a, x), lgamma(add(a, 1)))), add(mul(a, sum), 1));
}

/** P(a, x) or Q(a, x) = 1 − P(a, x), of floats. */
function share(a: Tensor, x: Tensor, isUpper: boolean): Tensor {
  if (hasGammaPair(a, x)) {
    const attributes = { function: isUpper ? "upper" : "lower", order: 0 } as const;
    return execute(gammaPairPrimitive, [contiguous(a), contiguous(x)], x.shape, x.dtype, attributes);
  }
  const isSmall = lt(x, 1);
  const isRegular = logicalAnd(lt(x, Number.POSITIVE_INFINITY), lt(a, Number.POSITIVE_INFINITY));
  const isInside = logicalAnd(isRegular, logicalAnd(ge(x, 0), ge(a, 0)));
  const [safeA, safeX] = [where(isInside, a, 1), where(isInside, x, 1)];
  const small = powerSeries(safeA, where(isSmall, safeX, 0.5));
  const largeX = where(isSmall, 1, safeX);
  const { sigma, whole } = gammaIntegrals(safeA, largeX, { hasMoment: false });
  const part = mul(weightedDensity(safeA, largeX), whole);
  // whether the integral covers the side of x that was not asked for
  const isOther = isUpper ? lt(sigma, 0) : ge(sigma, 0);
  const large = where(isOther, sub(1, part), part);
  const value = where(isSmall, isUpper ? sub(1, small) : small, large);
  return withLimits(a, x, where(isInside, value, Number.NaN), isUpper);
}

/** P(a, ∞) = P(0, x) = 1 and P(∞, x) = 0; NaN for P(0, 0) and P(∞, ∞), and below 0. */
function withLimits(a: Tensor, x: Tensor, value: Tensor, isUpper: boolean): Tensor {
  const [one, zero] = isUpper ? [0, 1] : [1, 0];
  const isInfinite = eq(x, Number.POSITIVE_INFINITY);
  const isWhole = logicalAnd(ge(a, 0), logicalOr(isInfinite, logicalAnd(eq(a, 0), ge(x, 0))));
  const isNone = logicalAnd(eq(a, Number.POSITIVE_INFINITY), ge(x, 0));
  const undefinedAt = logicalOr(logicalAnd(isNone, isInfinite), logicalAnd(eq(a, 0), eq(x, 0)));
  const limited = where(isNone, zero, where(isWhole, one, value));
  return where(undefinedAt, Number.NaN, limited);
}

/** Runs the function on broadcast operands, and records the gradient of x: ±x^(a − 1) e⁻ˣ/Γ(a). */
function incomplete(operation: string, given: readonly [Operand, Operand], isUpper: boolean): Tensor {
  return underName(operation, () =>
    tidy(() => {
      const [left, right] = promoteOperands(operation, [given[0], given[1]], "floats");
      const dtype = left.dtype;
      const shape = broadcastShapes(operation, left.shape, right.shape);
      const [a, x] = [left, right].map((own) => expand(toDType(own, accumulationDType(dtype)), shape));
      const wide = noGrad(() => tidy(() => share(a, x, isUpper)));
      record(operation, [a, x], [wide], [a, x], ([g], [savedA, savedX], [needsA]) => {
        if (needsA) throw withoutDerivative(operation, "a");
        const density = exp(sub(sub(xlogy(sub(savedA, 1), savedX), savedX), lgamma(savedA)));
        return [null, mul(isUpper ? neg(g) : g, density)];
      });
      return toDType(wide, dtype);
    }),
  );
}

/**
 * Computes the regularized lower incomplete gamma function P(a, x) for each pair of elements, with broadcasting: the
 * integral of t^(a − 1) e⁻ᵗ/Γ(a) from 0 to x. Both must be at least 0; otherwise the result is NaN. Integers become
 * float32. Only x has a gradient: as in PyTorch, backward() throws an `AutogradError` if a requires one.
 *
 * @example
 * gammainc(tensor([1, 2]), tensor([1, 1])); // float32 [0.632121, 0.264241]
 *
 * @throws {ShapeError} if the operands can't be broadcast.
 */
export function gammainc<A extends Operand, B extends Operand>(a: A, x: B): Tensor<ResultOf<A, B>>;
export function gammainc(...values: unknown[]): Tensor {
  const { a, x } = gammaincParameters(values);
  return incomplete("gammainc", [a, x], false);
}
gammainc.method = "promoted" as const;
const gammaincParameters = parameters("gammainc", { a: operand(tensorOrScalar), x: operand(tensorOrScalar) });

/**
 * Computes the regularized upper incomplete gamma function Q(a, x) = 1 − P(a, x) for each pair of elements. @see {@link
 * gammainc}
 *
 * @example
 * gammaincc(tensor([1, 2]), tensor([1, 1])); // float32 [0.367879, 0.735759]
 *
 * @throws {ShapeError} if the operands can't be broadcast.
 */
export function gammaincc<A extends Operand, B extends Operand>(a: A, x: B): Tensor<ResultOf<A, B>>;
export function gammaincc(...values: unknown[]): Tensor {
  const { a, x } = gammainccParameters(values);
  return incomplete("gammaincc", [a, x], true);
}
gammaincc.method = "promoted" as const;
const gammainccParameters = parameters("gammaincc", { a: operand(tensorOrScalar), x: operand(tensorOrScalar) });
