import type { Implementation } from "../../backend/backend.ts";
import { collapse } from "../../tensor/shape.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { bernoulliCall, type RandomStart } from "./primitive.ts";

export const bernoulliCpu: Implementation<RandomStart, [Tensor], [Tensor]> = {
  run({ operation, inputs: [p], outputs: [output], attributes: { key, counter } }) {
    bernoulliCall(
      operation,
      {
        pDtype: p.dtype,
        dtype: output.dtype,
        pOffset: p.offset,
        offset: output.offset,
        key,
        counter,
        nest: collapse(output.shape, [p.strides]),
      },
      [p, output],
    );
  },
};
