import type { TicketRange } from "../../backend/backend.ts";
import { checkLater } from "../../backend/metal/checks.ts";
import { metalContext } from "../../backend/metal/context.ts";
import { launch, metalTypeOf, reads } from "../../backend/metal/launch.ts";
import { mergedLoop } from "../../backend/metal/loop.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import type { OrchardError } from "../../core/errors.ts";
import { currentCapture } from "../../observe/capture.ts";
import { Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { distinct, type IndexRange, indexAt, indexError, isInRange } from "./indices.ts";
import { rangeParameters } from "./primitive.ts";

/** The kernel's result if no index is out of range. */
const NONE = 0xffffffff;

/**
 * Checks every index on the device. The error is thrown when the host reads a result that depends on the call. Until
 * then kernels ignore an index out of range.
 *
 * @returns the check and its command buffer, which precedes those of the call; the implementation includes both in its
 * result. Undefined if there is no index
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
      // The kernel read the result of a command buffer that failed. The index has been recomputed and checked since.
      if (value !== undefined && isInRange(range, value)) return undefined;
      return indexError(range, position, value);
    },
  );
}

/**
 * Launches a kernel that searches for the first invalid element of a tensor. The error is thrown when the host reads a
 * result that depends on the tensor.
 *
 * @param encode launches the kernel, which writes the minimum of one uint32 and the element's position
 * @param problemAt returns the error for an element, if it still is invalid; `isKnown` says whether the tensor is
 * unchanged since the kernel ran
 * @returns the result of `encode`, with the check
 */
export function findLater(
  { storage }: Tensor,
  encode: (first: Tensor) => TicketRange,
  problemAt: (position: number, isKnown: boolean) => OrchardError | undefined,
): TicketRange {
  const { first, memory } = firstOutOfRange();
  currentCapture()?.checked(first, (position) => (position === NONE ? undefined : problemAt(position, false)));
  const launched = encode(first);
  const { version } = storage;
  const check = checkLater(metalContext(), {
    isDone: () => memory.whenReady() === null,
    run() {
      const position = new Uint32Array(memory.contents(), 0, 1)[0];
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
 * Allocates a number in shared memory for the kernel to write. The number stays alive until it has been read, even if a
 * `tidy` scope ends before.
 */
function firstOutOfRange(): { first: Tensor; memory: MetalMemory } {
  const memory = new MetalMemory(metalContext(), 4, { storage: "shared", label: "first index out of range" });
  new Uint32Array(memory.contents(), 0, 1)[0] = NONE;
  const storage = new Storage(memory);
  storage.retain();
  return { first: new Tensor(storage, "uint32", [1]), memory };
}
