import type { Implementation } from "../../backend/backend.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { quantizedSwigluCall, weightOperands, weightValues } from "../primitive.ts";
import { layoutOfRows, type SwigluAttributes, swigluInputs } from "./attributes.ts";

export const quantizedSwigluCpu: Implementation<SwigluAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, inputs, outputs: [output], attributes }) {
    const { count, isFast, activation, hasGateBias, hasUpBias } = attributes;
    const { x, gate, up, gateBias, upBias } = swigluInputs(inputs, attributes);
    const fields = {
      dtype: x.dtype,
      count,
      xOffset: x.offset,
      ...layoutOfRows(x)!,
      isFast,
      activation,
      upOffsets: weightValues(attributes, up).offsets,
      hasGateBias,
      hasUpBias,
      biasOffsets: [gateBias?.offset ?? 0, upBias?.offset ?? 0],
    };
    const operands = [...weightOperands(gate), ...weightOperands(up), x, gateBias, upBias, output];
    quantizedSwigluCall(operation, { ...weightValues(attributes, gate), ...fields }, operands);
  },
};
