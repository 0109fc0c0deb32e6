import type { Implementation } from "../../backend/backend.ts";
import { store } from "../../backend/reference/elements.ts";
import { tupleOf } from "../../core/tuples.ts";
import { philox } from "../../random/philox.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type Dropout, type DropoutMaskAttributes, type PlacedSequence, sequencesOf } from "./problem.ts";

export const dropoutMaskReference: Implementation<DropoutMaskAttributes, readonly Tensor[], [Tensor]> = {
  run({ outputs: [output], attributes: { dropout, packed } }) {
    const [batch, heads, queries, keys] = tupleOf(output.shape, 4);
    const mask = new Uint8Array(output.size);
    for (const sequence of sequencesOf({ packed, batch, queries, keys }))
      for (let head = 0; head < heads; head++)
        for (let i = 0; i < sequence.queries; i++) {
          const row = ((sequence.batch * heads + head) * queries + sequence.queryStart + i) * keys;
          mask.set(keptRow(dropout, sequence, head, i), row + sequence.keyStart);
        }
    store(output, mask);
  },
};

/** Returns, for each key of a sequence, 1 if dropout keeps its pair with query i, else 0. */
export function keptRow({ key, threshold }: Dropout, { index, keys }: PlacedSequence, head: number, i: number) {
  const kept = new Uint8Array(keys);
  for (let j = 0; j < keys; j += 2) {
    const words = philox([j >>> 1, i >>> 1, head, index], key);
    for (let column = 0; column < 2 && j + column < keys; column++)
      kept[j + column] = Number(words[2 * (i & 1) + column] >= threshold);
  }
  return kept;
}
