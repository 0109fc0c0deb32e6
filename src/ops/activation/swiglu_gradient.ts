import { record } from "../../autograd/record.ts";
import { executeMany } from "../../backend/dispatch.ts";
import { definePrimitive } from "../../backend/primitive.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { add, mul } from "../elementwise/arithmetic.ts";
import { sumTo } from "../view/expand.ts";
import { silu, siluGradient, siluSecondDerivative } from "./silu.ts";

import { swigluGradientCpu } from "./swiglu_gradient.cpu.ts";
import { swigluGradientMetal } from "./swiglu_gradient.metal.ts";
import { swigluGradientReference } from "./swiglu_gradient.reference.ts";

/** Computes (g·up·silu′(gate), g·silu(gate)), both row-major and of g's shape, to which gate and up are broadcast. */
const primitive = definePrimitive({
  name: "swigluGradient",
  family: "activation",
  implementations: { metal: swigluGradientMetal, cpu: swigluGradientCpu, reference: swigluGradientReference },
});

/**
 * @internal Computes the gradients of gate and up from the gradient of silu(gate)·up, before summing them to the
 * operands' shapes.
 */
export function swigluGradient(g: Tensor, gate: Tensor, up: Tensor): readonly Tensor[] {
  const spec = { shape: g.shape, dtype: g.dtype };
  const outputs = executeMany(primitive, [g, gate, up], [spec, spec], undefined, "swiglu");
  const shapes = [g.shape, gate.shape, up.shape];
  record("swigluGradient", [g, gate, up], outputs, [g, gate, up], (incoming, [savedG, a, b], needs) =>
    gradientOfGradients(incoming, [savedG, a, b], needs).map((gradient, at) => gradient && sumTo(gradient, shapes[at])),
  );
  return outputs;
}

/**
 * Computes gradients from the gradients (h, k) of both results, with f = silu(gate): h·up·f′ + k·f for g, h·g·up·f″ +
 * k·g·f′ for gate, and h·g·f′ for up.
 */
function gradientOfGradients(
  [h, k]: readonly (Tensor | null)[],
  [g, gate, up]: readonly [Tensor, Tensor, Tensor],
  needs: readonly boolean[],
): (Tensor | null)[] {
  return [
    needs[0] ? sumOf(h && siluGradient(mul(h, up), gate), k && mul(k, silu(gate))) : null,
    needs[1]
      ? sumOf(h && mul(mul(h, g), mul(up, siluSecondDerivative(gate))), k && siluGradient(mul(k, g), gate))
      : null,
    needs[2] && h ? siluGradient(mul(h, g), gate) : null,
  ];
}

const sumOf = (a: Tensor | null | undefined, b: Tensor | null | undefined): Tensor | null =>
  a && b ? add(a, b) : (a ?? b ?? null);
