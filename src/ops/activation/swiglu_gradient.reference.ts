import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { gated, gatedDerivative, logisticShare } from "../elementwise/gated.reference.ts";

export const swigluGradientReference: Implementation<undefined, [Tensor, Tensor, Tensor], [Tensor, Tensor]> = {
  run({ inputs: [g, gate, up], outputs: [gateGradient, upGradient] }) {
    const { shape } = gateGradient;
    const [incoming, gates, ups] = [toNumbers(g), toNumbers(gate, shape), toNumbers(up, shape)];
    const map = (formula: (g: number, gate: number, up: number) => number) =>
      Array.from(incoming, (value, index) => formula(value, gates[index], ups[index]));
    store(
      gateGradient,
      map((gradient, a, b) => gradient * b * gatedDerivative(logisticShare, a)),
    );
    store(
      upGradient,
      map((gradient, a) => gradient * gated(logisticShare, a)),
    );
  },
};
