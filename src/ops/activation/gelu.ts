import { choice } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import type { DType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { add, mul, neg, square, sub } from "../elementwise/arithmetic.ts";
import { defineBinary, defineUnary } from "../elementwise/define.ts";
import { exp } from "../elementwise/exponential.ts";
import { gated, gatedDerivative, normalShare, tanhShare } from "../elementwise/gated.reference.ts";
import type { BinaryOperation, FloatOf, FloatOperation } from "../elementwise/types.ts";
import { sigmoid } from "./sigmoid.ts";

/** Computes the gradient of gelu's operand from the result's gradient and the operand. */
export const geluGradient: BinaryOperation = defineBinary("geluGradient", {
  isPublic: false,
  takes: "floats",
  saves: "operands",
  reference: { float: (g, x) => g * gatedDerivative(normalShare, x) },
  gradient: (h, g, x, needs) => [
    needs[0] ? geluGradient(h, x) : null,
    needs[1] ? mul(mul(h, g), geluSecondDerivative(x)) : null,
  ],
});

/** Computes (xΦ)″ = φ(x)·(2 − x²). */
function geluSecondDerivative(x: Tensor): Tensor {
  const squares = square(x);
  return mul(mul(exp(mul(squares, -0.5)), sub(2, squares)), 1 / Math.sqrt(2 * Math.PI));
}

/** Computes the gradient of the tanh approximation's operand. */
export const geluTanhGradient: BinaryOperation = defineBinary("geluTanhGradient", {
  isPublic: false,
  takes: "floats",
  saves: "operands",
  reference: { float: (g, x) => g * gatedDerivative(tanhShare, x) },
  gradient: (h, g, x, needs) => [
    needs[0] ? geluTanhGradient(h, x) : null,
    needs[1] ? mul(mul(h, g), geluTanhSecondDerivative(x)) : null,
  ],
});

/** Computes (xσ(v))″ = σ′·(2v′ + x·v″ + x·v′²·(1 − 2σ)) with v = √(8/π)·(x + 0.044715·x³) and σ′ = σ(v)·σ(−v). */
function geluTanhSecondDerivative(x: Tensor): Tensor {
  const [linear, cubic] = [Math.sqrt(8 / Math.PI), Math.sqrt(8 / Math.PI) * 0.044715];
  const squares = square(x);
  const v = mul(x, add(mul(squares, cubic), linear));
  const share = sigmoid(v);
  const first = add(mul(squares, 3 * cubic), linear);
  const bend = mul(mul(x, square(first)), sub(1, mul(share, 2)));
  return mul(mul(share, sigmoid(neg(v))), add(add(mul(first, 2), mul(squares, 6 * cubic)), bend));
}

const exactGelu: FloatOperation = defineUnary("gelu", {
  isPublic: false,
  takes: "floats",
  saves: "input",
  reference: { float: (x) => gated(normalShare, x) },
  gradient: (g, x) => geluGradient(g, x),
});

const tanhGelu: FloatOperation = defineUnary("geluTanh", {
  operation: "gelu",
  takes: "floats",
  saves: "input",
  reference: { float: (x) => gated(tanhShare, x) },
  gradient: (g, x) => geluTanhGradient(g, x),
});

/** Options of {@link gelu}. */
export interface GeluOptions {
  /** `"none"` (the default) uses the error function; `"tanh"` uses the tanh approximation, as GPT-2 does. */
  approximate?: "none" | "tanh" | undefined;
}

/**
 * Computes x·Φ(x) for each element, where Φ is the cumulative distribution function of the normal distribution: Φ(x) =
 * (1 + erf(x/√2))/2. With `approximate: "tanh"`, Φ(x) is (1 + tanh(√(2/π)·(x + 0.044715·x³)))/2. Integers become
 * float32.
 *
 * Source: D. Hendrycks and K. Gimpel, "Gaussian error linear units (GELUs)", 2016.
 *
 * @returns a tensor of x's shape
 *
 * @example
 * gelu(tensor([-1, 0, 1])); // float32 [-0.158655, 0, 0.841345]
 *
 * @throws {ArgumentError} for an unknown approximation.
 */
export function gelu<D extends DType>(x: Tensor<D>, options?: GeluOptions): Tensor<FloatOf<D>>;
export function gelu(...values: unknown[]): Tensor {
  const { x, approximate } = geluParameters(values);
  return approximate === "tanh" ? tanhGelu(x) : exactGelu(x);
}
gelu.method = "float" as const;
const geluParameters = parameters("gelu", {
  x: operand(aTensor),
  approximate: named(choice("none", "tanh"), "none"),
});
