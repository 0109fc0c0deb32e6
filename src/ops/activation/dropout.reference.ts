import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { wordsOf } from "../random/distribution.reference.ts";
import type { DropoutAttributes } from "./primitive.ts";

export const dropoutReference: Implementation<DropoutAttributes, [Tensor], [Tensor]> = {
  run({ inputs: [x], outputs: [output], attributes }) {
    const { lastDropped, scale } = attributes;
    const isKept = (index: number): boolean => wordsOf(attributes, Math.floor(index / 4))[index % 4] > lastDropped;
    store(
      output,
      Array.from(toNumbers(x), (value, index) => (isKept(index) ? value * scale : 0)),
    );
  },
};
