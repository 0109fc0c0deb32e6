/** The block of numbers of the cpu backend's calls on many gradients. */
import { dtypeFacts } from "../../tensor/dtype.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { fourteen, MOST_GRADIENTS } from "./table.ts";

const HEAD = 3;
const block = new Float64Array(HEAD + 3 * MOST_GRADIENTS);
/** What operands beyond the last are. */
const nothing = new Uint8Array(block.buffer);

/** Written anew by each call: dtype, number of gradients, `first`; for each gradient its elements, its offset, and that of its result. */
export function writeBlock(gradients: readonly Tensor[], first: number, results: readonly Tensor[] = []): Float64Array {
  block.set([dtypeFacts[gradients[0]!.dtype].code, gradients.length, first]);
  for (const [index, { size, offset }] of gradients.entries())
    block.set([size, offset, results[index]?.offset ?? 0], HEAD + 3 * index);
  return block;
}

export const bytesOfAll = (tensors: readonly Tensor[]) =>
  fourteen(
    tensors.map(({ storage }) => storage.hostBytes()),
    nothing,
  );
