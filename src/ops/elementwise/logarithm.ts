import { mul, sub } from "./arithmetic.ts";
import { defineUnary } from "./define.ts";
import { div } from "./division.ts";
import type { FloatOperation } from "./types.ts";

/**
 * Computes ln x for each element; NaN below 0. @see {@link exp}
 *
 * @example
 * log(tensor([1, 10])); // float32 [0, 2.30259]
 */
export const log: FloatOperation = defineUnary("log", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.log },
  gradient: (g, x) => div(g, x),
});

/**
 * Computes log₂ x for each element; NaN below 0. @see {@link exp}
 *
 * @example
 * log2(tensor([1, 8])); // float32 [0, 3]
 */
export const log2: FloatOperation = defineUnary("log2", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.log2 },
  gradient: (g, x) => div(g, mul(x, Math.LN2)),
});

/**
 * Computes log₁₀ x for each element; NaN below 0. @see {@link exp}
 *
 * @example
 * log10(tensor([1, 1000])); // float32 [0, 3]
 */
export const log10: FloatOperation = defineUnary("log10", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.log10 },
  gradient: (g, x) => div(g, mul(x, Math.LN10)),
});

/**
 * Computes ln(1 + x) for each element, accurate near 0; NaN below −1. @see {@link exp}
 *
 * @example
 * log1p(tensor([0, 1])); // float32 [0, 0.69315]
 */
export const log1p: FloatOperation = defineUnary("log1p", {
  takes: "floats",
  saves: "input",
  reference: { float: Math.log1p },
  gradient: (g, x) => div(g, sub(x, -1)),
});
