import type { Implementation } from "../../backend/backend.ts";
import { lastElement } from "../../core/collections.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type TriangleAttributes, triangleCall } from "./primitive.ts";

export const triangleCpu: Implementation<TriangleAttributes, [Tensor], [Tensor]> = {
  run({ operation, inputs: [x], outputs: [output], attributes }) {
    const { dtype, shape, strides } = x;
    triangleCall(
      operation,
      {
        dtype,
        offsets: [x.offset, output.offset],
        ...attributes,
        columns: lastElement(shape),
        stride: lastElement(strides),
        rows: { shape: shape.slice(0, -1), strides: [strides.slice(0, -1)] },
      },
      [x, output],
    );
  },
};
