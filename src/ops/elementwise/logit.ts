import { underName } from "../../backend/dispatch.ts";
import { aNumber } from "../../core/kinds.ts";
import { type Given, operand, optional, parameters } from "../../core/parameters.ts";
import { accumulationDType, type DType, isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { toDType } from "../copy/cast.ts";
import { mul, sub } from "./arithmetic.ts";
import { clamp } from "./clamp.ts";
import { defineUnary } from "./define.ts";
import { div } from "./division.ts";
import type { FloatOf, FloatOperation } from "./types.ts";

/** Options of {@link logit}. */
export interface LogitOptions {
  /** Clamps elements to [eps, 1 − eps] first; elements outside get the gradient 0. Default: no clamping. */
  eps?: number | undefined;
}

/**
 * Computes ln(x/(1 − x)), the inverse of `sigmoid`, for each element: −∞ at 0, ∞ at 1, NaN outside. Integers become
 * float32.
 *
 * @returns a tensor of x's shape
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
      if (eps === undefined) return logitOf(x);
      const dtype = isFloat(x.dtype) ? x.dtype : "float32";
      const wide = toDType(x, accumulationDType(dtype)); // 1 − eps may round to 1 in 16 bits
      return toDType(logitOf(clamp(wide, { min: eps, max: 1 - eps })), dtype);
    }),
  );
}
logit.method = "float" as const;
const logitParameters = parameters("logit", {
  x: operand(aTensor),
  eps: optional(aNumber({ holds: (eps) => eps >= 0 && eps <= 0.5, expected: "a number from 0 to 0.5" })),
});

/** Computes ln x − ln(1 − x). Near ½, where that cancels, it computes 2 artanh(2x − 1), whose argument is exact. */
const logitOf: FloatOperation = defineUnary("logit", {
  takes: "floats",
  isPublic: false,
  saves: "input",
  reference: {
    float: (x) => (Math.abs(x - 0.5) < 0.25 ? 2 * Math.atanh(2 * x - 1) : Math.log(x) - Math.log1p(-x)),
  },
  gradient: (g, x) => div(g, mul(x, sub(1, x))),
});
