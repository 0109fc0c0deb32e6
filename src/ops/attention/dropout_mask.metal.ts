import type { MetalImplementation } from "../../backend/backend.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { launch, reads, startOf, writes } from "../../backend/metal/launch.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import { tupleOf } from "../../core/tuples.ts";
import { Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { dropoutMaskParameters, dropoutValues } from "./primitive.ts";
import type { DropoutMaskAttributes, Sequence } from "./problem.ts";

export const dropoutMaskMetal: MetalImplementation<DropoutMaskAttributes, readonly Tensor[], [Tensor]> = {
  run({ outputs: [mask], attributes }) {
    const [batch, heads, queries, keys] = tupleOf(mask.shape, 4);
    using sequences = attributes.packed && sequencesTensor(attributes.packed);
    return launch({
      file: "attention/dropout_mask.metal",
      name: "dropout_mask",
      operands: [reads(sequences ?? mask), writes(mask)],
      parameters: parametersOf(mask, attributes),
      grid: [keys, queries, batch * heads],
      threadgroup: [Math.min(keys, 32), Math.min(queries, 8)],
    });
  },
};

/** Copies the numbers of packed sequences to memory that the kernel can read. */
function sequencesTensor(packed: readonly Sequence[]): Tensor {
  const numbers = packed.flatMap(({ queryStart, queries, keyStart, keys }) => [queryStart, queries, keyStart, keys]);
  const memory = new MetalMemory(metalContext(), Math.max(numbers.length, 1) * 4, {});
  new Int32Array(memory.contents()).set(numbers);
  return new Tensor(new Storage(memory), "int32", [packed.length, 4]);
}

function parametersOf(mask: Tensor, { packed, dropout }: DropoutMaskAttributes): Uint8Array {
  const [, heads, queries, keys] = tupleOf(mask.shape, 4);
  return dropoutMaskParameters.bytes({
    heads,
    queries,
    keys,
    ...dropoutValues(dropout),
    sequences: packed?.length ?? 0,
    start: startOf(mask),
    strides: mask.strides,
  });
}
