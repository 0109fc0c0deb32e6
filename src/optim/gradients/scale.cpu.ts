import type { Implementation } from "../../backend/backend.ts";
import { padded } from "../primitive.ts";
import { CHUNK } from "./chunks.ts";
import { MAX_GRADIENTS, scaleCall } from "./primitive.ts";

export const scaleCpu: Implementation<undefined> = {
  run({ operation, inputs: [factor, ...gradients], outputs }) {
    const values = {
      dtype: gradients[0].dtype,
      gradients: gradients.length,
      chunk: CHUNK,
      sizes: gradients.map(({ size }) => size),
      offsets: gradients.map(({ offset }) => offset),
      factorOffset: factor.offset,
      resultOffsets: outputs.map(({ offset }) => offset),
    };
    const lists = [gradients, outputs].flatMap((tensors) => padded(tensors, MAX_GRADIENTS, undefined));
    scaleCall(operation, values, [factor, ...lists]);
  },
};
