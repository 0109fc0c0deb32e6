/** What the Metal implementations of linear algebra share. */
import type { Tensor } from "../tensor/tensor.ts";

/** The rows and columns of a matrix that a threadgroup holds in its memory: `MAX_SIZE` in kernels/linalg/matrix.h. */
export const MAX_SIZE = 64;

/** Columns that kernels for larger matrices take at once, rows and threads of a tile: kernels/linalg/blocks.h. */
export const BLOCK = 32;
export const TILE_ROWS = 64;
export const TILE_THREADS = 128;

/** Why a matrix is computed elsewhere: the kernels keep one whole in threadgroup memory, of which there are 32 KB. */
export function tooLargeForThreadgroup({ shape }: Tensor): string | undefined {
  const [rows, columns] = shape.slice(-2) as [number, number];
  if (rows <= MAX_SIZE && columns <= MAX_SIZE) return undefined;
  return `the kernels take matrices of at most ${MAX_SIZE} x ${MAX_SIZE}, got ${rows} x ${columns}`;
}

/** Threads of a threadgroup in which each takes a row: whole SIMD-groups. */
export const threadsFor = (rows: number): number => Math.max(32, Math.ceil(rows / 32) * 32);

/**
 * How many times as long an operation takes in a kernel whose threads wait for each other at every column, as far as
 * {@link Launch.work} goes: guessed.
 */
export const SERIAL = 8;

/** The same of Jacobi's rotations, ten sweeps of them: a rotation of two rows is six operations for each column. */
export const JACOBI = 10 * 6 * SERIAL;
