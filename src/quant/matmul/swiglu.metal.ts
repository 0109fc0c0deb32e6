import type { MetalImplementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { gateActivations } from "../primitive.ts";
import { type SwigluAttributes, swigluInputs } from "./attributes.ts";
import { launchProduct } from "./matmul.metal.ts";

/** Computes the gated product in one kernel, which reads rows of both matrices. */
export const quantizedSwigluMetal: MetalImplementation<SwigluAttributes, readonly Tensor[], [Tensor]> = {
  run({ inputs, outputs: [output], attributes }) {
    const { x, gate, up, gateBias, upBias } = swigluInputs(inputs, attributes);
    const activation = gateActivations.ordinal(attributes.activation);
    const gated = { matrices: [gate, up], biases: [gateBias, upBias], activation };
    return launchProduct({ attributes, x, ...gated, output: output });
  },
};
