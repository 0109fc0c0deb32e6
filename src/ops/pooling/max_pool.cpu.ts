import type { Implementation } from "../../backend/backend.ts";
import { tupleOf } from "../../core/tuples.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { maxPoolCall, maxPoolGradientCall, type PoolingAttributes } from "./primitive.ts";

export const maxPoolCpu: Implementation<PoolingAttributes, [Tensor]> = {
  run({ operation, inputs: [x], outputs, attributes }) {
    const [values, indices] = outputs as [Tensor, Tensor?];
    const block = {
      ...attributes,
      dtype: values.dtype,
      indexDtype: indices?.dtype ?? "int32",
      hasIndices: indices !== undefined,
      offsets: [x.offset, values.offset, indices?.offset ?? 0],
    };
    maxPoolCall(operation, block, [x, values, indices]);
  },
};

export const maxPoolGradientCpu: Implementation<PoolingAttributes, readonly Tensor[], [Tensor]> = {
  run({ operation, inputs, outputs: [output], attributes }) {
    const [gradient, indices] = tupleOf(inputs, 2);
    const offsets = [gradient.offset, indices.offset, output.offset];
    const block = { ...attributes, dtype: output.dtype, indexDtype: indices.dtype, offsets };
    maxPoolGradientCall(operation, block, [gradient, indices, output]);
  },
};
