import { underName } from "../../backend/dispatch.ts";
import { aNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { abs, mul, neg, sub } from "./arithmetic.ts";
import { clamp } from "./clamp.ts";
import { lt } from "./comparison.ts";
import { atanh } from "./inverse_hyperbolic.ts";
import { log, log1p } from "./logarithm.ts";
import type { FloatOf } from "./types.ts";
import { where } from "./where.ts";

/** Options of {@link logit}. */
export interface LogitOptions {
  /** Clamps elements to [eps, 1 − eps] first; elements outside get the gradient 0. Default: no clamping. */
  eps?: number | undefined;
}

/**
 * Computes ln(x/(1 − x)), the inverse of `sigmoid`, for each element: −∞ at 0, ∞ at 1, NaN outside. Integers become
 * float32.
 *
 * @example
 * logit(tensor([0.25, 0.5, 0.75])); // float32 [-1.098612, 0, 1.098612]
 * logit(tensor([0, 0.5, 1]), 0.25); // float32 [-1.098612, 0, 1.098612]
 *
 * @throws {ArgumentError} for an eps outside [0, ½].
 */
export function logit<D extends DType>(x: Tensor<D>, ...options: Given<LogitOptions, ["eps"]>): Tensor<FloatOf<D>>;
export function logit(...values: unknown[]): Tensor {
  const { x, eps } = logitParameters(values);
  return underName("logit", () =>
    tidy(() => {
      const dtype = isFloat(x.dtype) ? x.dtype : "float32";
      const wide = toDType(x, accumulationDType(dtype));
      const bounded = eps === undefined ? wide : clamp(wide, { min: eps, max: 1 - eps });
      return toDType(logitOf(bounded), dtype);
    }),
  );
}
logit.method = "float" as const;
const logitParameters = parameters("logit", {
  x: operand(aTensor),
  eps: optional(aNumber({ holds: (eps) => eps >= 0 && eps <= 0.5, expected: "a number from 0 to 0.5" })),
});

/** Computes ln x − ln(1 − x). Near ½, where that cancels, it computes 2 artanh(2x − 1), whose argument is exact. */
function logitOf(x: Tensor): Tensor {
  const isNear = lt(abs(sub(x, 0.5)), 0.25);
  const [near, far] = [where(isNear, x, 0.5), where(isNear, 0.25, x)];
  const center = mul(atanh(sub(mul(near, 2), 1)), 2);
  return where(isNear, center, sub(log(far), log1p(neg(far))));
}
