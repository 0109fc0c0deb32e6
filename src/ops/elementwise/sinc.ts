import { accumulationDType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { toDType } from "../copy/cast.ts";
import { mul, sub } from "./arithmetic.ts";
import { eq } from "./comparison.ts";
import { defineUnary } from "./define.ts";
import { div } from "./division.ts";
import { cos } from "./trigonometric.ts";
import type { FloatOperation } from "./types.ts";
import { where } from "./where.ts";

/**
 * sin(πx)/(πx) for each element; 1 at 0, and exactly 0 at other whole numbers. @see {@link exp}
 *
 * @example
 * sinc(tensor([0, 0.5, 1])); // float32 [1, 0.63662, 0]
 */
export const sinc: FloatOperation = defineUnary("sinc", {
  takes: "floats",
  saves: "input",
  reference: { float: sincOf },
  gradient: (g, x) => mul(g, toDType(derivative(toDType(x, accumulationDType(x.dtype))), g.dtype)),
});

/** (cos πx − sinc x)/x; 0 at 0. */
function derivative(x: Tensor): Tensor {
  const isZero = eq(x, 0);
  const divisor = where(isZero, 1, x) as Tensor;
  return where(isZero, 0, div(sub(cos(mul(x, Math.PI)), sinc(x)), divisor)) as Tensor;
}

/** The remainder by the nearest whole number is exact, and the sine of its product with π is that of πx but for its sign. */
function sincOf(x: number): number {
  const magnitude = Math.abs(x);
  if (magnitude === 0) return 1;
  const whole = Math.round(magnitude);
  const sine = Math.sin(Math.PI * (magnitude - whole));
  return (whole % 2 === 0 ? sine : -sine) / (Math.PI * magnitude);
}
