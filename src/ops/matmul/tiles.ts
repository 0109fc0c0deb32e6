/** How Metal's kernels cut a product: the sizes of tiles, and where sums are cut along k. */
import type { Problem } from "./problem.ts";

/** A threadgroup's share of a product of floats: `rows` × `columns` of the result, `depth` of k at a time. */
export interface Tile {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** SIMD-groups of a threadgroup, down and across: they divide the tile among them. */
  readonly down: number;
  readonly across: number;
  /** Which problems it is for; the first row that fits is taken. */
  readonly fits: (problem: Pick<Problem, "m" | "n">) => boolean;
}

/**
 * The figures are MLX's (`mlx/backend/metal/matmul.cpp`, version 0.22, `steel_matmul` and its split over k): 64 × 64 ×
 * 16 from 2²⁰ elements of the result on, 16 × 16 × 16 where both sizes are below 40, else 32 × 32 × 16; 2 × 2
 * SIMD-groups each. `kernels/matmul/tiled.metal` has a kernel for each row.
 */
export const tiles: readonly Tile[] = [
  { rows: 64, columns: 64, depth: 16, down: 2, across: 2, fits: ({ m, n }) => m * n >= 2 ** 20 },
  { rows: 16, columns: 16, depth: 16, down: 2, across: 2, fits: ({ m, n }) => m < 40 && n < 40 },
  { rows: 32, columns: 32, depth: 16, down: 2, across: 2, fits: () => true },
];

export const tileFor = (problem: Problem): Tile => tiles.find(({ fits }) => fits(problem))!;

/** Of one SIMD-group. */
export const SIMD_WIDTH = 32;

export const threadsOf = ({ down, across }: Tile): number => down * across * SIMD_WIDTH;

/**
 * The tile's threadgroup memory in bytes: its share of a and of b with padded rows, or 8 rows of sums for each
 * SIMD-group.
 */
export function threadgroupBytes({ rows, columns, depth, down, across }: Tile, elementBytes: number): number {
  const padding = 16 / elementBytes;
  const elements = (high: number, wide: number) => Math.max(high * (wide + padding), wide * (high + padding));
  const strips = down * across * 8 * (columns / across) * 4;
  return Math.max((elements(rows, depth) + elements(depth, columns)) * elementBytes, strips);
}

/**
 * Sums are cut where a result is so small that its tiles leave most of a GPU idle. Also MLX's: tiles of 16, and k in
 * steps of 16.
 */
const splitTable = [
  { fromSteps: 64, splits: 16 },
  { fromSteps: 32, splits: 8 },
  { fromSteps: 16, splits: 4 },
  { fromSteps: 8, splits: 2 },
] as const;
const SPLIT_TILES = 32;

/** Into how many parts the sums of a tiled product are cut. */
export function tiledSplits({ m, n, k, batchShape }: Problem): number {
  const small = batchShape.length === 0 && Math.floor(m / 16) * Math.floor(n / 16) <= SPLIT_TILES;
  const row = splitTable.find(({ fromSteps }) => k / 16 >= fromSteps);
  return small && row ? row.splits : 1;
}

/**
 * Into how many parts the sums of a matrix times a column are cut: of at least 4,096 elements, and no more than fill 64
 * threadgroups. Both figures are untried on a GPU.
 */
export const vectorSplits = (k: number, threadgroups: number): number =>
  Math.max(1, Math.min(Math.floor(k / 4096), Math.ceil(64 / threadgroups)));
