import type { Implementation } from "../backend/backend.ts";
import { operandsOf, type UpdateAttributes, updateCall } from "./primitive.ts";

export const updateCpu: Implementation<UpdateAttributes> = {
  run({ operation, inputs, outputs, attributes }) {
    const { stateBefore, stateAfter, before, gradients, after } = operandsOf(inputs, outputs, attributes);
    const { rule, hasMaster, plane, members } = attributes;
    const rows = members.map(({ start, coefficients }, index) => {
      const [old, gradient, target] = [before[index], gradients[index], after[index]];
      const values = {
        ...coefficients,
        rule,
        hasMaster,
        dtype: old.dtype,
        gradientDType: gradient.dtype,
        plane,
        size: target.size,
        start,
        stateBeforeOffset: stateBefore?.offset ?? 0,
        stateAfterOffset: stateAfter?.offset ?? 0,
        beforeOffset: old.offset,
        gradientOffset: gradient.offset,
        afterOffset: target.offset,
      };
      return { values, operands: [stateBefore, stateAfter, old, gradient, target] };
    });
    updateCall(operation, rows);
  },
};
