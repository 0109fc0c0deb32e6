import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, real, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

/**
 * Reflections as in LAPACK: H[i] = I − tau[i] v vᵀ, where v is 0 before row i, 1 in row i, and equal to column i of a
 * matrix below it. Q = H[0] H[1] ….
 */

/** R in the upper triangle of the output, and the reflections that reduce a matrix to it. */
const geqrfFields = { batch: whole, rows: whole, columns: whole };
export const geqrfCall = cpuCall("geqrf", { dtype, ...geqrfFields }, ["a", "factors", "tau"]);

/** Q and R of a matrix, with a diagonal of R of at least 0. */
export interface QrAttributes {
  /** The columns of Q; 0 if only R is computed. */
  readonly width: number;
}

const qrFields = { ...geqrfFields, width: whole };
export const qrCall = cpuCall("qr", { dtype, ...qrFields }, ["a", "q", "r"]);
/** Parameters of the three kernels of the file; 0 where a kernel does not use one. */
export const qrParameters = struct("Qr", {
  ...qrFields,
  reflectors: whole,
  stride: whole,
  team: whole,
});

/** A step of the kernels for matrices larger than threadgroup memory. */
export const qrStepParameters = struct("QrStep", {
  rows: whole,
  columns: whole,
  count: whole,
  first: whole,
  width: whole,
  begin: whole,
  transpose: flag,
});

/** The first `width` columns of Q; `a` has `columns`, of which `reflectors` are reflections. */
const productFields = { batch: whole, rows: whole, columns: whole, reflectors: whole, width: whole };
export const productCall = cpuCall("householderProduct", { dtype, ...productFields }, ["a", "tau", "q"]);

/** Q C, or Qᵀ C. */
export interface OrmqrAttributes {
  readonly transpose: boolean;
}

const ormqrFields = { ...productFields, transpose: flag };
export const ormqrCall = cpuCall("ormqr", { dtype, ...ormqrFields }, ["a", "tau", "c", "product"]);
export const ormqrParameters = struct("Ormqr", {
  ...ormqrFields,
  tile: whole,
  team: whole,
});

/** Options of least squares, which return the solution of least norm among those with the smallest residual. */
export interface LstsqAttributes {
  /** Whether to find the rank by pivoting columns; otherwise full rank is assumed. */
  readonly isPivoted: boolean;
  /** Singular values below this fraction of the largest count as 0. */
  readonly rcond: number;
}

const lstsqFields = { batch: whole, rows: whole, columns: whole, width: whole, isPivoted: flag, rcond: real };
export const lstsqCall = cpuCall("lstsq", { dtype, ...lstsqFields }, ["a", "b", "x", "rank", "info"]);
/** Parameters of the kernels that solve with a matrix, or with the triangle of a taller one. */
export const lstsqParameters = struct("Lstsq", {
  batch: whole,
  rows: whole,
  columns: whole,
  width: whole,
  aRows: whole,
  bRows: whole,
  stride: whole,
  team: whole,
  isTriangle: flag,
  isPivoted: flag,
  rcond: real,
});
