/**
 * The primitives of linear algebra. Operands are float32 or float64 matrices, row-major without gaps, in batches of one
 * shape: […, rows, columns]. `info` is an int32 for each matrix: 0, or what the factorisation found, counted from 1.
 */
import { cpuCall } from "../backend/cpu/call.ts";
import { dtype, flag, whole } from "../backend/fields.ts";
import { struct } from "../backend/metal/struct.ts";
import { elementCount } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** How many matrices there are, and their sizes. */
export interface Matrices {
  readonly batch: number;
  readonly rows: number;
  readonly columns: number;
}

export const matricesOf = ({ shape }: Tensor): Matrices => ({
  batch: elementCount(shape.slice(0, -2)),
  rows: shape.at(-2)!,
  columns: shape.at(-1)!,
});

/** The factor L of A = L Lᵀ, from the lower triangle of A. Its upper triangle is 0. */
const choleskyFields = { batch: whole, size: whole };
export const choleskyCall = cpuCall("cholesky", { dtype, ...choleskyFields }, ["a", "factor", "info"]);
export const choleskyParameters = struct("Cholesky", "linalg/cholesky.metal", choleskyFields);

/** X of A X = B: `a` is triangular, of the size of the rows of `b`. */
export interface TriangularAttributes {
  /** Whether the upper triangle is A; else the lower one is. */
  readonly upper: boolean;
  /** Whether the diagonal is taken to be 1, and not read. */
  readonly unitDiagonal: boolean;
}

const triangularFields = { batch: whole, rows: whole, columns: whole, upper: flag, unitDiagonal: flag };
export const triangularCall = cpuCall("solveTriangular", { dtype, ...triangularFields }, ["a", "b", "x"]);
export const triangularParameters = struct("SolveTriangular", "linalg/triangular.metal", triangularFields);
