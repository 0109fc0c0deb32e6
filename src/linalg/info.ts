/** What a factorisation says of each matrix, and the error that it becomes. */
import { checkLater } from "../backend/metal/checks.ts";
import { metalContext } from "../backend/metal/context.ts";
import { MetalMemory } from "../backend/metal/memory.ts";
import { LinAlgError, type OrchardError } from "../core/errors.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Storage } from "../tensor/storage.ts";
import type { Tensor } from "../tensor/tensor.ts";

/**
 * Has an error thrown where a matrix was refused, and disposes of `info`: at once where it is known; where a device has
 * yet to compute it, when the host reads what depends on `results`. Nothing waits.
 *
 * @param info int32, one for each matrix of the batch: 0, or the pivot at which it failed, counted from 1
 * @param problem what is wrong with a matrix, given the pivot
 * @param results what the caller has of the factorisation, before anything is computed from it
 * @throws {LinAlgError} naming the first matrix that was refused.
 */
export function checkInfo(
  operation: string,
  info: Tensor<"int32">,
  problem: (pivot: number) => string,
  results: readonly Tensor[],
): void {
  const { shape, size, offset, storage } = info;
  const codes = (): Int32Array => storage.array("int32").subarray(offset, offset + size) as Int32Array;
  const error = (): LinAlgError | undefined => errorOf(operation, shape, codes(), problem);
  if (isUnderWay(info)) {
    dependOnLater(storage, error, results);
    info.dispose();
    return;
  }
  const known = error();
  info.dispose();
  if (known) throw known;
}

/** Whether a look would wait, as far as is known without one. */
const isUnderWay = ({ size, storage }: Tensor): boolean => size > 0 && storage.memory instanceof MetalMemory;

/** Has the results remember an error that is known once `storage` is computed, which stays until then. */
function dependOnLater(storage: Storage, error: () => OrchardError | undefined, results: readonly Tensor[]): void {
  const check = checkLater(metalContext(), {
    // after a failure of the device it has other memory
    isDone: () => !(storage.memory instanceof MetalMemory) || storage.memory.whenReady() === null,
    run() {
      try {
        const found = error();
        if (found) throw found;
      } finally {
        storage.release();
      }
    },
  });
  storage.retain();
  for (const result of results) result.storage.dependOn([check]);
}

/** The error of the first matrix that was refused. */
function errorOf(
  operation: string,
  shape: Shape,
  codes: Int32Array,
  problem: (pivot: number) => string,
): LinAlgError | undefined {
  const position = codes.findIndex((code) => code !== 0);
  if (position < 0) return undefined;
  const batch = coordinatesOf(shape, position);
  const pivot = codes[position]!;
  const which = batch.length === 0 ? "the matrix" : `the matrix at [${batch.join(", ")}] of the batch`;
  return new LinAlgError(operation, `${which} ${problem(pivot)}`, batch, pivot);
}

function coordinatesOf(shape: Shape, position: number): number[] {
  let remainder = position;
  return shape
    .toReversed()
    .map((size) => {
      const own = remainder % size;
      remainder = Math.floor(remainder / size);
      return own;
    })
    .reverse();
}
