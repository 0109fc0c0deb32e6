/** How matrices of reflections lie in threadgroup memory, and who computes with them. */
import { threadsFor } from "../metal.ts";

/** Floats that a threadgroup's memory holds. */
const ROOM = 32768 / 4;
/** Threads of a threadgroup at most: registers are few where there are many. */
const MOST_THREADS = 256;

/** Rows in threadgroup memory have an odd length, so that the lanes that have a column touch different banks. */
export const strideFor = (columns: number): number => columns | 1;

/** Lanes that share a column of so many rows: about two rows each. */
export function teamFor(rows: number): number {
  let lanes = 4;
  while (lanes < 32 && lanes * 2 < rows) lanes *= 2;
  return lanes;
}

export const threadsOf = (columns: number, team: number): number =>
  Math.min(MOST_THREADS, threadsFor(Math.max(1, columns) * team));

/** Bytes for floats, in steps of which threadgroup memory is had. */
export const bytesFor = (floats: number): number => Math.ceil(Math.max(1, floats) / 4) * 16;

/** A matrix, a vector of its column, and two numbers for each reflection. */
export const matrixFloats = (rows: number, columns: number): number =>
  rows * (strideFor(columns) + 1) + 2 * Math.min(rows, columns);

/** Whether a threadgroup's memory holds a matrix. */
export const fitsThreadgroup = (rows: number, columns: number): boolean => matrixFloats(rows, columns) <= ROOM;

/** Columns of a matrix of so many rows that fit threadgroup memory beside a vector; 0 where none does. */
export function tileFor(rows: number): number {
  const columns = Math.floor(ROOM / Math.max(1, rows)) - 1;
  return Math.max(0, Math.min(32, columns % 2 === 0 ? columns - 1 : columns));
}
