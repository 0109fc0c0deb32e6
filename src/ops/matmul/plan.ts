/** The choice of the Metal kernel for a product. */
import { gpuFamily } from "../../backend/metal/gpu_family.ts";
import { tensorUnits } from "../../backend/metal/tensor_units.ts";
import { bytesOf, isFloat } from "../../tensor/dtype.ts";
import { elementCount } from "../../tensor/shape.ts";
import { type Problem, transposedProblem } from "./problem.ts";
import { fragmentTiles, type Tile, tiledSplits, tileFor, vectorParts, vectorSplits } from "./tiles.ts";

/** A problem and the kernel chosen for it. */
export interface Plan {
  readonly problem: Problem;
  readonly kernel: "tiled" | "tensor_tiled" | "fragments" | "vector_along" | "vector_across" | "whole";
  /** The tile of the tiled kernels. Others do not use it. */
  readonly tile: Tile;
  /**
   * The number of parts into which sums are split. Each part is written to separate memory, and a second kernel adds
   * them.
   */
  readonly splits: number;
}

/** Rows per threadgroup in the kernels for a matrix times a column (`kernels/matmul/vector.metal`). */
export const vectorRows = { vector_along: 16, vector_across: 32 } as const;

/**
 * Chooses a kernel. Integers, vectors and matrices have separate kernels. A row times a matrix is computed as the
 * transposed matrix times a column.
 */
export function planOf(problem: Problem): Plan {
  const tile = tileFor(problem);
  if (!isFloat(problem.out.tensor.dtype)) return { problem, kernel: "whole", tile, splits: 1 };
  if (problem.n === 1) return vectorPlan(problem, tile);
  if (problem.m === 1) return vectorPlan(transposedProblem(problem), tile);
  if (bytesOf(problem.a.tensor.dtype) === 2 && gpuFamily() === "nvidia") {
    const fragments = fragmentTiles.find(({ fits }) => fits(problem))!;
    return { problem, kernel: "fragments", tile: fragments, splits: tiledSplits(problem, fragments) };
  }
  const kernel = suitsTensors(problem, tile) && tensorUnits().use ? "tensor_tiled" : "tiled";
  return { problem, kernel, tile, splits: tiledSplits(problem, tile) };
}

/** Whether `kernels/matmul/tensor.metal` has a kernel for a tile: matrix units multiply 16-bit floats. */
const suitsTensors = ({ a }: Problem, { rows, columns }: Tile): boolean =>
  bytesOf(a.tensor.dtype) === 2 && rows >= 32 && columns >= 32;

function vectorPlan(problem: Problem, tile: Tile): Plan {
  const { m, k, a, batchShape } = problem;
  const along = m === 1 || Math.abs(a.column) <= Math.abs(a.row);
  const kernel = along ? "vector_along" : "vector_across";
  const threadgroups = Math.ceil(m / vectorRows[kernel]) * elementCount(batchShape);
  return { problem, kernel, tile, splits: vectorSplits(k, threadgroups, vectorParts[kernel]) };
}
