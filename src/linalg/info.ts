/** Converts the `info` codes of a factorization to errors. */
import { checkLater } from "../backend/metal/checks.ts";
import { metalContext } from "../backend/metal/context.ts";
import { MetalMemory } from "../backend/metal/memory.ts";
import { LinAlgError, type OrchardError } from "../core/errors.ts";
import { currentCapture } from "../observe/capture.ts";
import { everyExample } from "../tensor/batched.ts";
import type { Shape } from "../tensor/shape.ts";
import type { Storage } from "../tensor/storage.ts";
import type { Tensor } from "../tensor/tensor.ts";

/**
 * Throws an error if a factorization failed, and disposes of `info`. If a device has yet to compute `info`, the error
 * is thrown later, when the host reads a tensor that depends on `results`; this function never waits.
 *
 * @param info int32, one per matrix of the batch: 0, or the pivot at which it failed, counted from 1
 * @param problem the message for a failed matrix, given the pivot
 * @param results the results of the factorization, before anything is computed from them
 * @throws {LinAlgError} naming the first matrix that failed.
 */
export function checkInfo(
  operation: string,
  info: Tensor<"int32">,
  problem: (pivot: number) => string,
  results: readonly Tensor[],
): void {
  const { shape, size, offset, storage } = everyExample(info); // inside of vmap, an error names the example too
  if (storage.isAbstract) return;
  const codes = (): Int32Array => storage.array("int32").subarray(offset, offset + size);
  const error = (): LinAlgError | undefined => errorOf(operation, shape, codes(), problem);
  if (isUnderWay({ size, storage })) {
    dependOnLater(storage, error, results.map(everyExample));
    info.dispose();
    return;
  }
  const known = error();
  info.dispose();
  if (known) throw known;
}

/** Whether reading the tensor might wait for a device. */
const isUnderWay = ({ size, storage }: Pick<Tensor, "size" | "storage">): boolean =>
  size > 0 && storage.memory instanceof MetalMemory;

/** Attaches a check of `storage` to the results; `storage` is kept until then. */
function dependOnLater(storage: Storage, error: () => OrchardError | undefined, results: readonly Tensor[]): void {
  currentCapture()?.unsupported("a factorization is checked after the call");
  const check = checkLater(metalContext(), {
    // After a device failure, the storage moves to other memory.
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

/** The error of the first matrix that failed. */
function errorOf(
  operation: string,
  shape: Shape,
  codes: Int32Array,
  problem: (pivot: number) => string,
): LinAlgError | undefined {
  const position = codes.findIndex((code) => code !== 0);
  if (position < 0) return undefined;
  const batch = coordinatesOf(shape, position);
  const pivot = codes[position];
  const which = batch.length === 0 ? "the matrix" : `the matrix at [${batch.join(", ")}] of the batch`;
  return new LinAlgError(operation, `${which} ${problem(pivot)}`, batch, pivot);
}

function coordinatesOf(shape: Shape, position: number): number[] {
  let remainder = position;
  return shape
    .toReversed()
    .map((size) => {
      const coordinate = remainder % size;
      remainder = Math.floor(remainder / size);
      return coordinate;
    })
    .reverse();
}
