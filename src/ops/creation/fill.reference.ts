import type { Implementation } from "../../backend/backend.ts";
import { encoderOf, forEachIndex } from "../../backend/reference/elements.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import type { FillAttributes } from "./primitive.ts";

export const fillReference: Implementation<FillAttributes, readonly Tensor[], [Tensor]> = {
  run({ outputs: [output], attributes: { value } }) {
    const stored = output.storage.array(output.dtype);
    const element = encoderOf(output.dtype)(value);
    forEachIndex(output.shape, [output], ([offset]) => {
      stored[offset] = element;
    });
  },
};
