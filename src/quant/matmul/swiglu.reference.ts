import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { gated, logisticShare, normalShare, type Share, tanhShare } from "../../ops/elementwise/gated.reference.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { GateActivation } from "../primitive.ts";
import { type SwigluAttributes, swigluInputs } from "./attributes.ts";
import { storeProduct } from "./matmul.reference.ts";

const shares: Readonly<Record<GateActivation, Share>> = {
  silu: logisticShare,
  gelu: normalShare,
  geluTanh: tanhShare,
};

/** Rounds both products to the dtype of x, as `quantizedMatmul` does; the activation and product are rounded once. */
export const quantizedSwigluReference: Implementation<SwigluAttributes, readonly Tensor[], [Tensor]> = {
  run({ inputs, outputs: [output], attributes }) {
    const { x, gate, up, gateBias, upBias } = swigluInputs(inputs, attributes);
    const kind = { ...attributes, isTransposed: false };
    storeProduct(output, { x, weights: gate, bias: gateBias }, kind);
    const factors = toNumbers(output);
    storeProduct(output, { x, weights: up, bias: upBias }, kind);
    const share = shares[attributes.activation];
    store(
      output,
      toNumbers(output).map((value, at) => gated(share, factors[at]) * value),
    );
  },
};
