import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, real, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

/**
 * Reflections as LAPACK has them: H[i] = I − tau[i] v vᵀ, where v is 0 before row i, 1 in it, and below it what lies
 * under the diagonal in column i of a matrix. Q = H[0] H[1] ….
 */

/** The reflections that make a matrix R, which lies in the upper triangle of what comes out. */
const geqrfFields = { batch: whole, rows: whole, columns: whole };
export const geqrfCall = cpuCall("geqrf", { dtype, ...geqrfFields }, ["a", "factors", "tau"]);

/** Q and R of a matrix, the diagonal of R at least 0. */
export interface QrAttributes {
  /** The columns of Q; 0 where only R is asked for. */
  readonly width: number;
}

const qrFields = { ...geqrfFields, width: whole };
export const qrCall = cpuCall("qr", { dtype, ...qrFields }, ["a", "q", "r"]);
/** Of the three kernels of the file; what one does not need is 0. */
export const qrParameters = struct("Qr", "linalg/qr.metal", {
  ...qrFields,
  reflectors: whole,
  stride: whole,
  team: whole,
});

/** A step of the kernels for matrices that are larger than a threadgroup's memory. */
export const qrStepParameters = struct("QrStep", "linalg/qr_blocks.metal", {
  rows: whole,
  columns: whole,
  count: whole,
  first: whole,
  width: whole,
  begin: whole,
  transpose: flag,
});

/** The first columns of Q, as many as the result has; `a` has `columns`, of which `reflectors` are reflections. */
const productFields = { batch: whole, rows: whole, columns: whole, reflectors: whole, width: whole };
export const productCall = cpuCall("householderProduct", { dtype, ...productFields }, ["a", "tau", "q"]);

/** Q C, or Qᵀ C. */
export interface OrmqrAttributes {
  readonly transpose: boolean;
}

const ormqrFields = { ...productFields, transpose: flag };
export const ormqrCall = cpuCall("ormqr", { dtype, ...ormqrFields }, ["a", "tau", "c", "product"]);
export const ormqrParameters = struct("Ormqr", "linalg/ormqr.metal", {
  ...ormqrFields,
  tile: whole,
  team: whole,
});

/** How least squares are solved: the solution of least norm of those with the least residuals. */
export interface LstsqAttributes {
  /** Whether the rank is found, by pivoting columns; else it is taken to be full. */
  readonly isPivoted: boolean;
  /** Singular values below this part of the largest are taken for 0. */
  readonly rcond: number;
}

const lstsqFields = { batch: whole, rows: whole, columns: whole, width: whole, isPivoted: flag, rcond: real };
export const lstsqCall = cpuCall("lstsq", { dtype, ...lstsqFields }, ["a", "b", "x", "rank", "info"]);
/** Of the kernels that solve with a matrix, or with the triangle of a taller one. */
export const lstsqParameters = struct("Lstsq", "linalg/lstsq.metal", {
  ...{
    batch: whole,
    rows: whole,
    columns: whole,
    width: whole,
    aRows: whole,
    bRows: whole,
    stride: whole,
    team: whole,
  },
  ...{ isTriangle: flag, isPivoted: flag, rcond: real },
});
