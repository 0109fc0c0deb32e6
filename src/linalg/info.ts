/** What a factorisation says of each matrix, and the error that it becomes. */
import { LinAlgError } from "../core/errors.ts";
import type { Tensor } from "../tensor/tensor.ts";

/**
 * Waits for the result and throws where a matrix was refused.
 *
 * @param info int32, one for each matrix of the batch: 0, or the pivot at which it failed, counted from 1
 * @param problem what is wrong with a matrix, given the pivot
 * @throws {LinAlgError} naming the first matrix that was refused.
 */
export function checkInfo(operation: string, info: Tensor<"int32">, problem: (pivot: number) => string): void {
  const codes = info.dataSync();
  const position = codes.findIndex((code) => code !== 0);
  if (position < 0) return;
  const batch = coordinatesOf(info.shape, position);
  const pivot = codes[position]!;
  const which = batch.length === 0 ? "the matrix" : `the matrix at [${batch.join(", ")}] of the batch`;
  throw new LinAlgError(operation, `${which} ${problem(pivot)}`, batch, pivot);
}

function coordinatesOf(shape: readonly number[], position: number): number[] {
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
