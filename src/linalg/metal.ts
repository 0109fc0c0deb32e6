/** Constants and helpers that the Metal implementations of linear algebra share. */
import { tupleOf } from "../core/tuples.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** The largest matrix that fits threadgroup memory, in rows and columns: `MAX_SIZE` in kernels/linalg/matrix.h. */
export const MAX_SIZE = 64;

/** Columns per block in kernels for larger matrices, and rows and threads per tile, as in kernels/linalg/blocks.h. */
export const BLOCK = 32;
export const TILE_ROWS = 64;
export const TILE_THREADS = 128;

/** Returns why a matrix is computed on another backend: kernels keep it in threadgroup memory, which has 32 KB. */
export function tooLargeForThreadgroup({ shape }: Tensor): string | undefined {
  const [rows, columns] = tupleOf(shape.slice(-2), 2);
  if (rows <= MAX_SIZE && columns <= MAX_SIZE) return undefined;
  return `the kernels support matrices of at most ${MAX_SIZE} x ${MAX_SIZE}, got ${rows} x ${columns}`;
}

/** Threads of a threadgroup with one thread per row, rounded up to whole SIMD-groups. */
export const threadsFor = (rows: number): number => Math.max(32, Math.ceil(rows / 32) * 32);

/**
 * The slowdown of kernels whose threads synchronize at every column, for {@link Launch.work}. It is an estimate.
 */
export const SERIAL = 8;

/** The {@link SERIAL} slowdown of ten sweeps of Jacobi rotations: rotating two rows takes six operations per column. */
export const JACOBI = 10 * 6 * SERIAL;
