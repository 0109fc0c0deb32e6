import type { Tensor } from "../../tensor/tensor.ts";
import { add, mul, neg, square, sub } from "./arithmetic.ts";
import { defineUnary } from "./define.ts";
import { div } from "./division.ts";
import { rsqrt } from "./power.ts";
import type { FloatOperation } from "./types.ts";

/** Computes 1/√(1 − x²) without the cancellation of 1 − x² near ±1. */
const derivativeOfArcsine = (x: Tensor): Tensor => mul(rsqrt(sub(1, x)), rsqrt(add(x, 1)));

/**
 * Computes the arcsine of each element, from −π/2 to π/2; NaN beyond ±1. @see {@link exp}
 *
 * @example
 * asin(tensor([0, 0.5])); // float32 [0, 0.523599]
 */
export const asin: FloatOperation = defineUnary("asin", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.asin },
  gradient: (g, x) => mul(g, derivativeOfArcsine(x)),
});

/**
 * Computes the arccosine of each element, from 0 to π; NaN beyond ±1. @see {@link exp}
 *
 * @example
 * acos(tensor([1, 0.5])); // float32 [0, 1.0472]
 */
export const acos: FloatOperation = defineUnary("acos", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.acos },
  gradient: (g, x) => mul(neg(g), derivativeOfArcsine(x)),
});

/**
 * Computes the arctangent of each element, from −π/2 to π/2. @see {@link atan2}
 *
 * @example
 * atan(tensor([0, 1])); // float32 [0, 0.785398]
 */
export const atan: FloatOperation = defineUnary("atan", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.atan },
  gradient: (g, x) => div(g, add(square(x), 1)),
});
