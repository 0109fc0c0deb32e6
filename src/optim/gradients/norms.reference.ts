import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { sumOf } from "../../backend/reference/sum.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { CHUNK, chunksOf } from "./chunks.ts";

export const normsReference: Implementation<undefined, readonly Tensor[], [Tensor]> = {
  run({ inputs, outputs: [output] }) {
    const norms = inputs.flatMap((gradient) => {
      const squares = Array.from(toNumbers(gradient), (g) => g * g);
      return Array.from({ length: chunksOf(squares.length) }, (_, chunk) =>
        Math.sqrt(sumOf(squares.slice(chunk * CHUNK, (chunk + 1) * CHUNK))),
      );
    });
    store(output, norms);
  },
};
