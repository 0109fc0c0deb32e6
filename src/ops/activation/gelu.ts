import { checkChoice } from "../../core/options.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type FloatOf, unary } from "../elementwise/unary.ts";

/** Options of {@link gelu}. */
export interface GeluOptions {
  /** `"none"` (the default): by the error function; `"tanh"`: the approximation by a hyperbolic tangent that GPT-2 uses. */
  approximate?: "none" | "tanh" | undefined;
}

/**
 * x·Φ(x) for each element, where Φ is the distribution function of the normal distribution: Φ(x) = (1 + erf(x/√2))/2; integers become
 * float32. With `approximate: "tanh"` Φ(x) is (1 + tanh(√(2/π)·(x + 0.044715·x³)))/2.
 *
 * Source: D. Hendrycks and K. Gimpel, "Gaussian error linear units (GELUs)", 2016.
 *
 * @example
 * gelu(tensor([-1, 0, 1])); // float32 [-0.158655, 0, 0.841345]
 *
 * @throws {ArgumentError} for another approximation.
 */
export function gelu<D extends DType>(x: Tensor<D>, { approximate = "none" }: GeluOptions = {}): Tensor<FloatOf<D>> {
  checkChoice("gelu", "approximate", approximate, ["none", "tanh"]);
  return unary(approximate === "tanh" ? "geluTanh" : "gelu", x, "gelu") as Tensor<FloatOf<D>>;
}
