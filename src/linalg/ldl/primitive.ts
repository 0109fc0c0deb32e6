import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, whole } from "../../backend/fields.ts";

/**
 * A = P L D Lᵀ Pᵀ from the lower triangle, as LAPACK's sytrf: D has blocks of one and two on its diagonal. The pivot
 * of a block of one says with which row its own changed places, counted from 1. A block of two has a negative pivot,
 * twice: that of its second row.
 */
export const ldlFactorCall = cpuCall("ldlFactor", { dtype, batch: whole, size: whole }, ["a", "ld", "pivots", "info"]);
export const ldlSolveCall = cpuCall("ldlSolve", { dtype, batch: whole, size: whole, columns: whole }, [
  ...["ld", "pivots", "b", "x"],
]);
