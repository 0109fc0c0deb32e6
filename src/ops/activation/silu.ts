import type { Tensor } from "../../tensor/tensor.ts";
import { add, mul, neg, sub } from "../elementwise/arithmetic.ts";
import { defineBinary, defineUnary } from "../elementwise/define.ts";
import { gated, gatedDerivative, logisticShare } from "../elementwise/gated.reference.ts";
import type { BinaryOperation, FloatOperation } from "../elementwise/types.ts";
import { sigmoid } from "./sigmoid.ts";

/** Computes the gradient of silu's operand from the result's gradient and the operand. */
export const siluGradient: BinaryOperation = defineBinary("siluGradient", {
  isPublic: false,
  takes: "floats",
  saves: "operands",
  reference: { float: (g, x) => g * gatedDerivative(logisticShare, x) },
  gradient: (h, g, x, needs) => [
    needs[0] ? siluGradient(h, x) : null,
    needs[1] ? mul(mul(h, g), siluSecondDerivative(x)) : null,
  ],
});

/** Computes (xσ)″ = σ′·(2 + x·(1 − 2σ)) with σ′ = σ(x)·σ(−x). */
export function siluSecondDerivative(x: Tensor): Tensor {
  const share = sigmoid(x);
  return mul(mul(share, sigmoid(neg(x))), add(2, mul(x, sub(1, mul(share, 2)))));
}

/**
 * Computes x/(1 + e⁻ˣ), also called swish, for each element. Integers become float32.
 *
 * @example
 * silu(tensor([-1, 0, 1])); // float32 [-0.268941, 0, 0.731059]
 */
export const silu: FloatOperation = defineUnary("silu", {
  takes: "floats",
  saves: "input",
  reference: { float: (x) => gated(logisticShare, x) },
  gradient: (g, x) => siluGradient(g, x),
});
