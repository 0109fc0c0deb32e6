import type { TicketRange } from "../../backend/backend.ts";
import { checkLater } from "../../backend/metal/checks.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { launch, metalTypeOf, reads } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import type { OrchardError } from "../../core/errors.ts";
import { Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { distinct, type IndexRange, indexAt, indexError, isInRange } from "./indices.ts";
import { rangeParameters } from "./primitive.ts";

/** What the kernel leaves where no index is out of range. */
const NONE = 0xffffffff;

/**
 * Has the device look at every index. The error comes when the host reads what depends on the call; until then kernels
 * take an index out of range for none.
 *
 * @returns the command buffer of the check, which goes before those of the call, and the check, which are part of what
 * the implementation returns; undefined where there is no index
 */
export function checkRangeLater(range: IndexRange): TicketRange | undefined {
  if (range.index.size === 0) return undefined;
  using index = distinct(range.index);
  const { size, except = 0 } = range;
  const { grid, threadgroup, loop } = mergedLoop(index.shape, [{ tensor: index, strides: index.strides }]);
  return findLater(
    index,
    (first) =>
      launch({
        file: "indexing/range.metal",
        name: `find_out_of_range_${metalTypeOf(index.dtype)}`,
        operands: [reads(index), { tensor: first, access: "readwrite" }],
        parameters: rangeParameters.bytes({ loop, size, except }),
        grid,
        threadgroup,
      }),
    (position, isKnown) => {
      const value = isKnown ? indexAt(range, position) : undefined;
      // The kernel saw what a command buffer left that failed; since then the index was computed again, and looked at
      // there.
      if (value !== undefined && isInRange(range, value)) return undefined;
      return indexError(range, position, value);
    },
  );
}

/**
 * Has a kernel look for the first element of a tensor that is wrong, and throws what is wrong with it when the host
 * reads what depends on it.
 *
 * @param encode launches the kernel, which takes the minimum of one uint32 and the element's number
 * @param problemAt the error of an element, if it is still one; and whether the tensor is as the kernel saw it
 * @returns what `encode` returns, with the check
 */
export function findLater(
  { storage }: Tensor,
  encode: (first: Tensor) => TicketRange,
  problemAt: (position: number, isKnown: boolean) => OrchardError | undefined,
): TicketRange {
  const { first, memory } = firstOutOfRange();
  const launched = encode(first);
  const { version } = storage;
  const check = checkLater(metalContext(), {
    isDone: () => memory.whenReady() === null,
    run() {
      const position = new Uint32Array(memory.contents(), 0, 1)[0]!;
      first.dispose();
      first.storage.release();
      try {
        if (position === NONE) return;
        const problem = problemAt(position, storage.version === version && !storage.isReleased);
        if (problem) throw problem;
      } finally {
        storage.release();
      }
    },
  });
  storage.retain();
  return { ...launched, checks: [check] };
}

/**
 * One number in shared memory, for the kernel to write. It stays until it was looked at, whatever scope is tidied up.
 */
function firstOutOfRange(): { first: Tensor; memory: MetalMemory } {
  const memory = new MetalMemory(metalContext(), 4, { storage: "shared", label: "first index out of range" });
  new Uint32Array(memory.contents(), 0, 1)[0] = NONE;
  const storage = new Storage(memory);
  storage.retain();
  return { first: new Tensor(storage, "uint32", [1]), memory };
}
