import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, whole } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { isTransposed, matricesOf } from "../matrices.ts";

/** X of A X = B: `a` is triangular, of the size of the rows of `b`. */
export interface TriangularAttributes {
  /** Whether the upper triangle is A; else the lower one is. */
  readonly upper: boolean;
  /** Whether the diagonal is taken to be 1, and not read. */
  readonly unitDiagonal: boolean;
}

/** Either operand lies row-major without gaps, or its transpose does; the solution as `b`. */
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
export const triangularParameters = struct("SolveTriangular", "linalg/triangular.metal", triangularFields);

/** The fields of a call with these operands. */
export const triangularValues = (a: Tensor, b: Tensor, attributes: TriangularAttributes) => ({
  ...matricesOf(b),
  ...attributes,
  transposedA: isTransposed(a),
  transposedB: isTransposed(b),
});
