import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, whole } from "../../backend/fields.ts";

/**
 * A = P L D Lᵀ Pᵀ from the lower triangle, as LAPACK's sytrf: D has 1 × 1 and 2 × 2 blocks on its diagonal. The pivot
 * of a 1 × 1 block is the row that was swapped with the block's row, counted from 1. A 2 × 2 block has the negated
 * pivot of its second row, twice.
 */
export const ldlFactorCall = cpuCall("ldlFactor", { dtype, batch: whole, size: whole }, ["a", "ld", "pivots", "info"]);
export const ldlSolveCall = cpuCall("ldlSolve", { dtype, batch: whole, size: whole, columns: whole }, [
  "ld",
  "pivots",
  "b",
  "x",
]);
