/** What tensors held before an operation changes them, kept apart where that operation may have to be computed again. */
import type { Memory } from "../tensor/memory.ts";
import { Storage } from "../tensor/storage.ts";
import { byteLengthOf, Tensor } from "../tensor/tensor.ts";
import type { Backend } from "./backend.ts";

/** Whether a tensor lies row-major without gaps and is all that its storage has room for. */
export const isWhole = ({ isContiguous, offset, shape, dtype, storage }: Tensor): boolean =>
  isContiguous && offset === 0 && storage.memory.byteLength === byteLengthOf(shape, dtype);

/**
 * Gives whole tensors new memory, undefined, and returns tensors of what they held. On a backend whose work is done once it returns, it
 * returns the tensors themselves.
 *
 * @throws {OutOfMemoryError} and nothing has changed.
 */
export function setAside(backend: Backend, targets: readonly Tensor[]): readonly Tensor[] {
  if (!backend.beforeExchange) return targets;
  const fresh = allocateLike(backend, targets);
  for (const { storage } of targets) backend.beforeExchange(storage);
  return targets.map(({ storage, dtype, shape }, index) => {
    return new Tensor(new Storage(storage.exchange(fresh[index]!)), dtype, shape);
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

/** Undoes {@link setAside}, where the operation could not run. */
export function putBack(before: readonly Tensor[], targets: readonly Tensor[]): void {
  if (before === targets) return;
  for (const [index, { storage }] of targets.entries()) {
    const own = before[index]!;
    own.storage.exchange(storage.exchange(own.storage.memory));
    own.dispose();
  }
}
