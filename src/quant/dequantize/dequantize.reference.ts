import type { Implementation } from "../../backend/backend.ts";
import { encoderOf } from "../../backend/reference/elements.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { WeightAttributes } from "../primitive.ts";
import { rowsOf } from "../rows.ts";

export const dequantizeReference: Implementation<WeightAttributes, readonly Tensor[], [Tensor]> = {
  run({ inputs, outputs: [output], attributes }) {
    const { rows, columns } = attributes;
    const { storage, dtype, offset } = output;
    const unpack = rowsOf(attributes, inputs);
    const values = new Float32Array(columns);
    const stored = storage.array(dtype);
    const encode = encoderOf(dtype);
    for (let row = 0; row < rows; row++) {
      unpack(row, values);
      for (let column = 0; column < columns; column++) stored[offset + row * columns + column] = encode(values[column]);
    }
  },
};
