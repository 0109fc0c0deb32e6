import type { Implementation } from "../../backend/backend.ts";
import { store, toNumbers } from "../../backend/reference/elements.ts";
import { uniform64 } from "../../random/normal.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { wordsOf } from "./distribution.reference.ts";
import type { RandomStart } from "./primitive.ts";

export const bernoulliReference: Implementation<RandomStart, [Tensor], [Tensor]> = {
  run({ inputs: [p], outputs: [output], attributes }) {
    const isWide = p.dtype === "float64";
    const uniform = (index: number): number => {
      const [block, lane] = [Math.floor(index / 4), index % 4];
      const word = wordsOf(attributes, block)[lane];
      return isWide ? uniform64(word, wordsOf(attributes, block, 1)[lane]) : (word >>> 8) * 2 ** -24;
    };
    store(
      output,
      Array.from(toNumbers(p), (limit, index) => uniform(index) < limit),
    );
  },
};
