import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

/**
 * The factor L of A = L Lᵀ, from the lower triangle of A. Its upper triangle is 0. A and L are both row-major, or both
 * column-major: native code treats that as the upper triangle of row-major matrices.
 */
const choleskyFields = { batch: whole, size: whole, upper: flag };
export const choleskyCall = cpuCall("cholesky", { dtype, ...choleskyFields }, ["a", "factor", "info"]);
export const choleskyParameters = struct("Cholesky", choleskyFields);

/** A step of the kernels for large matrices: the block of columns from `first` on. */
export const choleskyStepParameters = struct("CholeskyStep", {
  size: whole,
  first: whole,
  upper: flag,
});
