import type { Implementation } from "../../backend/backend.ts";
import { quantizedProjectionsCall, weightOperands, weightValues } from "../primitive.ts";
import { layoutOfRows, type ProjectionsAttributes, projectionsInputs } from "./attributes.ts";

export const quantizedProjectionsCpu: Implementation<ProjectionsAttributes> = {
  run({ operation, inputs, outputs, attributes }) {
    const { count, isFast, hasBias } = attributes;
    const { x, weights, biases } = projectionsInputs(inputs, attributes);
    const [first, second, third] = weights.map((each, at) => weightValues(attributes.weights[at], each));
    const fields = {
      dtype: x.dtype,
      count,
      xOffset: x.offset,
      ...layoutOfRows(x)!,
      isFast,
      hasBias,
      first: first,
      second: second,
      third: third,
      biasOffsets: biases.map((bias) => bias?.offset ?? 0),
    };
    quantizedProjectionsCall(operation, fields, [...weights.flatMap(weightOperands), x, ...biases, ...outputs]);
  },
};
