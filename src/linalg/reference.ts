/** Helpers of the reference implementations of linear algebra: matrices in float64, row-major. */
import { store, toNumbers } from "../backend/reference/elements.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { matricesOf } from "./matrices.ts";

/** Returns the elements of each matrix of a batch. */
export function matricesIn(x: Tensor): Float64Array[] {
  const all = toNumbers(x);
  const { batch, rows, columns } = matricesOf(x);
  return Array.from({ length: batch }, (_, at) => all.slice(at * rows * columns, (at + 1) * rows * columns));
}

/** Stores the matrices of a batch, each rounded once. */
export function storeMatrices(output: Tensor, matrices: readonly Float64Array[]): void {
  const { rows, columns } = matricesOf(output);
  const all = new Float64Array(matrices.length * rows * columns);
  for (const [at, matrix] of matrices.entries()) all.set(matrix, at * rows * columns);
  store(output, all);
}
