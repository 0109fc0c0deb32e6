import type { Implementation } from "../backend/backend.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { fieldsOf, MAX_PARAMETERS, operandsOf, padded, type UpdateAttributes, updateCall } from "./primitive.ts";

const offsetsOf = (tensors: readonly Tensor[]): number[] => tensors.map(({ offset }) => offset);

export const updateCpu: Implementation<UpdateAttributes> = {
  run({ operation, inputs, outputs, attributes }) {
    const { stateBefore, stateAfter, before, gradients, after } = operandsOf(inputs, outputs, attributes);
    const { rule, hasMaster } = attributes;
    const sizes = after.map(({ size }) => size);
    const values = {
      ...{ rule, hasMaster, dtype: before[0]!.dtype, gradientDType: gradients[0]!.dtype },
      ...fieldsOf(attributes, sizes),
      ...{ stateBeforeOffset: stateBefore?.offset ?? 0, stateAfterOffset: stateAfter?.offset ?? 0 },
      ...{ beforeOffsets: offsetsOf(before), gradientOffsets: offsetsOf(gradients), afterOffsets: offsetsOf(after) },
    };
    const lists = [before, gradients, after].flatMap((tensors) => padded(tensors, MAX_PARAMETERS, undefined));
    updateCall(operation, values, [stateBefore, stateAfter, ...lists]);
  },
};
