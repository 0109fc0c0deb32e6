import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

/** A = P L U: L below the diagonal and U on and above it, in one matrix; pivots counted from 1; info. */
export interface LuFactorAttributes {
  /** Whether rows are swapped. */
  readonly pivot: boolean;
}
const factorFields = { batch: whole, rows: whole, columns: whole, pivot: flag };
export const luFactorCall = cpuCall("luFactor", { dtype, ...factorFields }, ["a", "lu", "pivots", "info"]);
export const luFactorParameters = struct("LuFactor", factorFields);

/** Solves A X = B from the factors of A. */
export interface LuSolveAttributes {
  /** Whether Aᵀ X = B is solved. */
  readonly adjoint: boolean;
}
const luSolveFields = { batch: whole, size: whole, columns: whole, adjoint: flag };
export const luSolveCall = cpuCall("luSolve", { dtype, ...luSolveFields }, ["lu", "pivots", "b", "x"]);
export const luSolveParameters = struct("LuSolve", luSolveFields);

/** Solves A X = B: X and info, plus the factors of A if there are outputs for them. Without B, uses the identity. */
const solveFields = { batch: whole, size: whole, columns: whole };
export const solveCall = cpuCall("solve", { dtype, ...solveFields, inverse: flag, keepsFactor: flag }, [
  "a",
  "b",
  "x",
  "info",
  "lu",
  "pivots",
]);
export const solveParameters = struct("Solve", solveFields);

/** A step, from column `first` on, of the kernels for matrices larger than threadgroup memory. */
export const luStepParameters = struct("LuStep", {
  rows: whole,
  columns: whole,
  first: whole,
  pivot: flag,
});
export const luRowsParameters = struct("LuRows", { rows: whole, columns: whole });

/** Row i of Pᵀ A, or of P A if `inverse`, is row permutation[i] of A. */
export interface LuPermutationAttributes {
  readonly inverse: boolean;
}
const permutationFields = { batch: whole, rows: whole, pivots: whole, inverse: flag };
export const luPermutationCall = cpuCall("luPermutation", permutationFields, ["pivots", "permutation"]);
export const luPermutationParameters = struct("LuPermutation", permutationFields);
