import { isComplex } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { add, mul, square, sub } from "./arithmetic.ts";
import { defineUnary } from "./define.ts";
import { div } from "./division.ts";
import { hypot } from "./hypot.ts";
import { rsqrt } from "./power.ts";
import type { FloatOperation } from "./types.ts";

/** Computes 1/√(1 + z²) of complex numbers. */
const inverseRoots = (z: Tensor): Tensor => rsqrt(add(square(z), 1));

/**
 * Computes the inverse hyperbolic sine ln(x + √(x² + 1)) of each element. @see {@link exp}
 *
 * @example
 * asinh(tensor([0, 1])); // float32 [0, 0.881374]
 */
export const asinh: FloatOperation = defineUnary("asinh", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.asinh },
  gradient: (g, x) => (isComplex(x.dtype) ? mul(g, inverseRoots(x)) : div(g, hypot(x, 1))),
});

/**
 * Computes the inverse hyperbolic cosine ln(x + √(x² − 1)) of each element; NaN below 1. @see {@link exp}
 *
 * @example
 * acosh(tensor([1, 2])); // float32 [0, 1.31696]
 */
export const acosh: FloatOperation = defineUnary("acosh", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.acosh },
  gradient: (g, x) => mul(g, mul(rsqrt(sub(x, 1)), rsqrt(add(x, 1)))),
});

/**
 * Computes the inverse hyperbolic tangent ½ ln((1 + x)/(1 − x)) of each element; ±∞ at ±1, NaN beyond. @see {@link exp}
 *
 * @example
 * atanh(tensor([0, 0.5])); // float32 [0, 0.549306]
 */
export const atanh: FloatOperation = defineUnary("atanh", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.atanh },
  gradient: (g, x) => div(g, mul(sub(1, x), add(x, 1))),
});
