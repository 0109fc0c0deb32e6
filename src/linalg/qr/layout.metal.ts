/** The layout of matrices of reflections in threadgroup memory, the threads that work on them, and their launches. */
import type { TicketRange } from "../../backend/backend.ts";
import { type Launch, launchBatch } from "../../backend/metal/launch.ts";
import type { Matrices } from "../matrices.ts";
import { SERIAL, threadsFor } from "../metal.ts";
import { qrParameters } from "./primitive.ts";

/** Floats that fit threadgroup memory. */
const ROOM = 32768 / 4;
/** The maximum number of threads per threadgroup: more threads leave fewer registers for each. */
const MOST_THREADS = 256;

/** Rows in threadgroup memory have an odd length, so that lanes sharing a column access different banks. */
export const strideFor = (columns: number): number => columns | 1;

/** Lanes that share a column of `rows` rows: about two rows per lane. */
export function teamFor(rows: number): number {
  let lanes = 4;
  while (lanes < 32 && lanes * 2 < rows) lanes *= 2;
  return lanes;
}

export const threadsOf = (columns: number, team: number): number =>
  Math.min(MOST_THREADS, threadsFor(Math.max(1, columns) * team));

/** Bytes for floats, rounded up to the allocation granularity of threadgroup memory (16 bytes). */
export const bytesFor = (floats: number): number => Math.ceil(Math.max(1, floats) / 4) * 16;

/** Floats for a matrix, a vector of the length of a column, and two scalars per reflection. */
export const matrixFloats = (rows: number, columns: number): number =>
  rows * (strideFor(columns) + 1) + 2 * Math.min(rows, columns);

/** Whether a matrix fits threadgroup memory. */
export const fitsThreadgroup = (rows: number, columns: number): boolean => matrixFloats(rows, columns) <= ROOM;

/** Returns the number of columns of `rows` rows that fit threadgroup memory along with a vector; 0 if none does. */
export function tileFor(rows: number): number {
  const columns = Math.floor(ROOM / Math.max(1, rows)) - 1;
  return Math.max(0, Math.min(32, columns % 2 === 0 ? columns - 1 : columns));
}

/** A launch of a kernel of qr.metal, with a threadgroup for each matrix. */
interface QrLaunch {
  readonly name: "geqrf" | "householder_product" | "qr";
  readonly operands: Launch["operands"];
  readonly sizes: Matrices;
  /** Columns of the matrix in threadgroup memory. Default: those of `sizes` */
  readonly columns?: number;
  readonly width?: number;
  readonly reflectors?: number;
  readonly work: number;
}

export function launchQr(given: QrLaunch): TicketRange {
  const { name, operands, sizes, columns = sizes.columns, width = 0, reflectors = 0, work } = given;
  const { batch, rows } = sizes;
  const [team, stride] = [teamFor(rows), strideFor(columns)];
  return launchBatch(batch, SERIAL * work, (count) => ({
    file: "linalg/qr.metal",
    name,
    operands,
    parameters: qrParameters.bytes({ ...sizes, batch: count, width, reflectors, stride, team }),
    threadgroups: [count],
    threadgroup: threadsOf(columns, team),
    threadgroupMemory: [bytesFor(matrixFloats(rows, columns))],
  }));
}
