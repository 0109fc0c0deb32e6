import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { isTransposed, matricesOf } from "../matrices.ts";

/** Solves A X = B, where A is a triangle of `a` with as many rows as `b`. */
export interface TriangularAttributes {
  /** Whether A is the upper triangle instead of the lower one. */
  readonly upper: boolean;
  /** Whether the diagonal is assumed to be 1, and not read. */
  readonly unitDiagonal: boolean;
}

/** Each operand is dense and row-major, or its transpose is; the solution has the layout of `b`. */
const triangularFields = {
  batch: whole,
  rows: whole,
  columns: whole,
  upper: flag,
  unitDiagonal: flag,
  transposedA: flag,
  transposedB: flag,
};
export const triangularCall = cpuCall("solveTriangular", { dtype, ...triangularFields }, ["a", "b", "x"]);
export const triangularParameters = struct("SolveTriangular", triangularFields);

/** Returns the fields of a call with these operands. */
export const triangularValues = (a: Tensor, b: Tensor, attributes: TriangularAttributes) => ({
  ...matricesOf(b),
  ...attributes,
  transposedA: isTransposed(a),
  transposedB: isTransposed(b),
});
