/** Which Metal kernel computes a product. */
import { isFloat } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import { type Problem, transposedProblem } from "./problem.ts";
import { type Tile, tiledSplits, tileFor, vectorParts, vectorSplits } from "./tiles.ts";

/** A problem as a kernel takes it. */
export interface Plan {
  readonly problem: Problem;
  readonly kernel: "tiled" | "vector_along" | "vector_across" | "whole";
  /** Of the tiled kernel. */
  readonly tile?: Tile;
  /** Into how many parts sums are cut; each goes to memory of its own, and a second kernel adds them up. */
  readonly splits: number;
}

/** Rows that a threadgroup of a kernel for a matrix times a column computes (`kernels/matmul/vector.metal`). */
export const vectorRows = { vector_along: 16, vector_across: 32 } as const;

/**
 * Integers, vectors and matrices have kernels of their own; a row times a matrix is a matrix times a column,
 * transposed.
 */
export function planOf(problem: Problem): Plan {
  if (!isFloat(problem.out.tensor.dtype)) return { problem, kernel: "whole", splits: 1 };
  if (problem.n === 1) return vectorPlan(problem);
  if (problem.m === 1) return vectorPlan(transposedProblem(problem));
  return { problem, kernel: "tiled", tile: tileFor(problem), splits: tiledSplits(problem) };
}

function vectorPlan(problem: Problem): Plan {
  const { m, k, a, batchShape } = problem;
  const along = m === 1 || Math.abs(a.column) <= Math.abs(a.row);
  const kernel = along ? "vector_along" : "vector_across";
  const threadgroups = Math.ceil(m / vectorRows[kernel]) * elementCount(batchShape);
  return { problem, kernel, splits: vectorSplits(k, threadgroups, vectorParts[kernel]) };
}
