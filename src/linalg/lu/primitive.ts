import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

const FILE = "linalg/lu.metal";

/** A = P L U: L below the diagonal and U on and above it, in one matrix; pivots from 1; and info. */
export interface LuFactorAttributes {
  /** Whether rows are swapped. */
  readonly pivot: boolean;
}
const factorFields = { batch: whole, rows: whole, columns: whole, pivot: flag };
export const luFactorCall = cpuCall("luFactor", { dtype, ...factorFields }, ["a", "lu", "pivots", "info"]);
export const luFactorParameters = struct("LuFactor", FILE, factorFields);

/** X of A X = B, from the factors of A. */
export interface LuSolveAttributes {
  /** Whether Aᵀ X = B is solved. */
  readonly adjoint: boolean;
}
const luSolveFields = { batch: whole, size: whole, columns: whole, adjoint: flag };
export const luSolveCall = cpuCall("luSolve", { dtype, ...luSolveFields }, ["lu", "pivots", "b", "x"]);
export const luSolveParameters = struct("LuSolve", FILE, luSolveFields);

/** X of A X = B and info; and the factors of A, where there are results for them. Without B it is the identity. */
const solveFields = { batch: whole, size: whole, columns: whole };
export const solveCall = cpuCall("solve", { dtype, ...solveFields, inverse: flag, keepsFactor: flag }, [
  ...["a", "b", "x", "info", "lu", "pivots"],
]);
export const solveParameters = struct("Solve", FILE, solveFields);

/** A step of the kernels for matrices larger than a threadgroup's memory, from a column on. */
export const luStepParameters = struct("LuStep", "linalg/lu_blocks.metal", {
  ...{ rows: whole, columns: whole, first: whole },
  pivot: flag,
});
export const luRowsParameters = struct("LuRows", "linalg/lu_blocks.metal", { rows: whole, columns: whole });

/** Row i of Pᵀ A is row permutation[i] of A; or row i of P A, where it is the inverse. */
export interface LuPermutationAttributes {
  readonly inverse: boolean;
}
const permutationFields = { batch: whole, rows: whole, pivots: whole, inverse: flag };
export const luPermutationCall = cpuCall("luPermutation", permutationFields, ["pivots", "permutation"]);
export const luPermutationParameters = struct("LuPermutation", FILE, permutationFields);
