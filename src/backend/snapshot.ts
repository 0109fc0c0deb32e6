/** Snapshots of tensors that an operation changes, for operations that may be recomputed. */
import type { Memory } from "../tensor/memory.ts";
import { Storage } from "../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../tensor/tensor.ts";
import type { Backend } from "./backend.ts";

/** Whether a tensor is contiguous and covers its whole storage. */
export const coversStorage = ({ isContiguous, offset, shape, dtype, storage }: Tensor): boolean =>
  isContiguous && offset === 0 && storage.memory.byteLength === byteLengthOf(shape, dtype);

/**
 * Replaces the memory of tensors by new memory with undefined contents, and returns tensors over the old memory. On a
 * synchronous backend, it returns the tensors themselves.
 *
 * @param targets must cover their storages
 * @throws {OutOfMemoryError} without changing anything.
 */
export function snapshot(backend: Backend, targets: readonly Tensor[]): readonly Tensor[] {
  if (!backend.beforeSwap) return targets;
  const fresh = allocateLike(backend, targets);
  for (const { storage } of targets) backend.beforeSwap(storage);
  return targets.map(({ storage, dtype, shape }, index) => {
    const before = new Storage(storage.swap(fresh[index]));
    before.dependOn(storage.checks);
    return new Tensor(before, dtype, shape);
  });
}

function allocateLike(backend: Backend, targets: readonly Tensor[]): Memory[] {
  const made: Memory[] = [];
  try {
    for (const { shape, dtype, storage } of targets)
      made.push(backend.allocate(byteLengthOf(shape, dtype), { storage: storage.memory.storage }));
  } catch (error) {
    for (const memory of made) memory.release();
    throw error;
  }
  return made;
}

/** Undoes {@link snapshot} if the operation could not run. */
export function restore(before: readonly Tensor[], targets: readonly Tensor[]): void {
  if (before === targets) return;
  for (const [index, { storage }] of targets.entries()) {
    const previous = before[index];
    previous.storage.swap(storage.swap(previous.storage.memory));
    previous.dispose();
  }
}
