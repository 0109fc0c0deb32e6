/** Gradients of activations' gradients, of other operations. */
import type { Tensor } from "../../tensor/tensor.ts";
import { add, binary, mul, sub } from "../elementwise/binary.ts";
import type { BinaryName } from "../elementwise/primitive.ts";
import { exp, neg, sigmoid, square } from "../elementwise/unary.ts";

/** The gradients of g·f′(x) in g and x, from the output's h, for an f whose second derivative is given. */
export function gradientOfGradient(
  name: BinaryName,
  curvature: (x: Tensor) => Tensor,
  [h, g, x]: readonly [Tensor, Tensor, Tensor],
  needs: readonly boolean[],
): (Tensor | null)[] {
  return [needs[0] ? binary(name, h, x) : null, needs[1] ? mul(mul(h, g), curvature(x)) : null];
}

/** (xΦ)″ = φ(x)·(2 − x²) */
export function geluCurvature(x: Tensor): Tensor {
  const squares = square(x);
  return mul(mul(exp(mul(squares, -0.5)), sub(2, squares)), 1 / Math.sqrt(2 * Math.PI));
}

/** (xσ)″ = σ′·(2 + x·(1 − 2σ)) with σ′ = σ·(1 − σ) */
export function siluCurvature(x: Tensor): Tensor {
  const [share, slope] = logistic(x);
  return mul(slope, add(2, mul(x, sub(1, mul(share, 2)))));
}

/** (xσ(v))″ = σ′·(2v′ + x·v″ + x·v′²·(1 − 2σ)) with v = √(8/π)·(x + 0.044715·x³) */
export function geluTanhCurvature(x: Tensor): Tensor {
  const [linear, cubic] = [Math.sqrt(8 / Math.PI), Math.sqrt(8 / Math.PI) * 0.044715];
  const squares = square(x);
  const [share, slope] = logistic(mul(x, add(mul(squares, cubic), linear)));
  const first = add(mul(squares, 3 * cubic), linear);
  const bend = mul(mul(x, square(first)), sub(1, mul(share, 2)));
  return mul(slope, add(add(mul(first, 2), mul(squares, 6 * cubic)), bend));
}

/** σ(v), and its derivative there. */
function logistic(v: Tensor): readonly [Tensor, Tensor] {
  const share = sigmoid(v);
  return [share, mul(share, sigmoid(neg(v)))];
}
