/** How Metal kernels divide a product: tile sizes, and the split of sums along k. */
import { bytesOf } from "../../tensor/dtype.ts";
import type { Problem } from "./problem.ts";

/** The part of a float product computed by a threadgroup: `rows` × `columns` of the result, `depth` of k at a time. */
export interface Tile {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** The grid of SIMD-groups, down and across, among which a threadgroup divides the tile. */
  readonly down: number;
  readonly across: number;
  /** Whether the tile suits a problem. The first tile that does is used. */
  readonly fits: (problem: Pick<Problem, "m" | "n">) => boolean;
}

/**
 * The tiles of the tiled kernel; the first that fits is used. For few rows or columns, the tile is as high or as wide
 * as the result, since work beyond an edge is wasted. A result of 2²⁰ elements or more has at least 256 tiles of 64 ×
 * 64, in which each loaded element is used 64 times; 64 tiles would leave half of a large GPU idle. A depth of 32 needs
 * half the barriers of 16, and 18 KB of float32 for tiles of 64 × 64. On an H200, 1024³ took 0.13 ms with depth 32 and
 * 0.14 ms with 16; 4096³ took 5.8 and 6.9 ms. Each tile has four SIMD-groups. `kernels/matmul/tiled.metal` has a kernel
 * for each row of this table.
 */
export const tiles: readonly Tile[] = [
  { rows: 16, columns: 16, depth: 16, down: 2, across: 2, fits: ({ m, n }) => m < 40 && n < 40 },
  { rows: 8, columns: 64, depth: 32, down: 1, across: 4, fits: ({ m }) => m <= 8 },
  { rows: 64, columns: 8, depth: 32, down: 4, across: 1, fits: ({ n }) => n <= 8 },
  { rows: 16, columns: 64, depth: 32, down: 2, across: 2, fits: ({ m }) => m <= 16 },
  { rows: 64, columns: 16, depth: 32, down: 2, across: 2, fits: ({ n }) => n <= 16 },
  { rows: 64, columns: 64, depth: 32, down: 2, across: 2, fits: ({ m, n }) => m * n >= 2 ** 20 && m >= 64 && n >= 64 },
  { rows: 32, columns: 32, depth: 32, down: 2, across: 2, fits: () => true },
];

/**
 * The tiles of `kernels/matmul/fragments.metal`, for 16-bit floats on NVIDIA GPUs: the first that fits is used. Each
 * SIMD-group's part is a multiple of 16 rows. In tiles of 64 × 128 it is 32 × 64, for which the assembler uses 157
 * registers, so that three threadgroups share a core: one multiplies while another waits. On an H200, 4096³ took 0.77
 * ms with these tiles, 0.85 ms with tiles of 128 × 128 × 32, which leave room for one threadgroup, and 0.93 ms with
 * tiles of 64 × 64.
 */
export const fragmentTiles: readonly Tile[] = [
  { rows: 16, columns: 64, depth: 64, down: 1, across: 4, fits: ({ m }) => m <= 16 },
  { rows: 64, columns: 16, depth: 64, down: 4, across: 1, fits: ({ n }) => n <= 16 },
  { rows: 64, columns: 128, depth: 64, down: 2, across: 2, fits: ({ m, n }) => m * n >= 2 ** 20 && isWide(m, n, 64) },
  { rows: 64, columns: 64, depth: 64, down: 2, across: 2, fits: ({ m, n }) => m * n >= 2 ** 18 && isWide(m, n, 64) },
  { rows: 32, columns: 32, depth: 64, down: 2, across: 2, fits: () => true },
];

const isWide = (m: number, n: number, least: number): boolean => Math.min(m, n) >= least;

export const tileFor = (problem: Problem): Tile => tiles.find(({ fits }) => fits(problem))!;

/** Threads per SIMD-group. */
export const SIMD_WIDTH = 32;

export const threadsOf = ({ down, across }: Tile): number => down * across * SIMD_WIDTH;

/**
 * Returns the threadgroup memory of a tile in bytes: the tiles of a and b with padded rows, or 8 rows of sums per
 * SIMD-group, whichever is larger.
 */
export function threadgroupBytes({ rows, columns, depth, down, across }: Tile, elementBytes: number): number {
  const padding = 16 / elementBytes;
  const elements = (high: number, wide: number) => Math.max(high * (wide + padding), wide * (high + padding));
  const strips = down * across * 8 * (columns / across) * 4;
  return Math.max((elements(rows, depth) + elements(depth, columns)) * elementBytes, strips);
}

/** Estimated registers for addresses and counters. */
const OTHER_REGISTERS = 32;

/** The maximum number of 32-bit registers per thread of a tiled product, by the estimate below. */
export const REGISTER_BUDGET = 128;

/**
 * Estimates the registers per thread. A thread holds two elements of each 8 × 8 matrix: of the sums, and of the factors
 * of two steps along k, one being loaded while the other is multiplied.
 */
export function registersOf({ rows, columns, down, across }: Tile, elementBytes: number): number {
  const [high, wide] = [rows / down / 8, columns / across / 8];
  return 2 * high * wide + 2 * (high + wide) * (elementBytes / 2) + OTHER_REGISTERS;
}

/** The number of threadgroups that any GPU needs, and the number that fills a large one. */
const LEAST_GROUPS = 64;
const MOST_GROUPS = 512;
/** The minimum number of elements of a sum per threadgroup. */
const LEAST_LENGTH = 64;
/**
 * Bytes moved per element of a part, which is written and read again; and the maximum ratio of the traffic of all parts
 * to that of the factors.
 */
const PART_BYTES = 8;
const PART_SHARE = 1 / 16;
/**
 * The maximum number of 16 × 16 tiles of a result that is split. Larger results have enough threadgroups, or lose more
 * by writing parts than they gain.
 */
const SPLIT_TILES = 32;
const SKINNY = 16;

/**
 * Returns the number of parts into which a tiled product splits its sums. It splits if the result is so small, or has
 * so few rows or columns, that its tiles leave most of a GPU idle. More parts than {@link LEAST_GROUPS} requires are
 * used only if they are small compared to the factors.
 */
export function tiledSplits(problem: Problem, { rows, columns }: Tile): number {
  const { m, n, k, batchShape, a } = problem;
  const isSmall = Math.ceil(m / 16) * Math.ceil(n / 16) <= SPLIT_TILES || Math.min(m, n) <= SKINNY;
  if (batchShape.length > 0 || !isSmall) return 1;
  const groups = Math.ceil(m / rows) * Math.ceil(n / columns);
  const factors = (m + n) * k * bytesOf(a.tensor.dtype);
  const cheap = Math.min(Math.ceil(MOST_GROUPS / groups), Math.floor((factors * PART_SHARE) / (m * n * PART_BYTES)));
  return Math.max(1, Math.min(Math.max(Math.ceil(LEAST_GROUPS / groups), cheap), Math.floor(k / LEAST_LENGTH)));
}

/**
 * Returns the number of parts into which a matrix times a column splits its sums: parts of at least `shortest`
 * elements, and at most enough for `wanted` threadgroups. The constants are untested on Apple GPUs.
 */
export const vectorSplits = (k: number, threadgroups: number, { shortest, wanted }: VectorParts): number =>
  Math.max(1, Math.min(Math.floor(k / shortest), Math.ceil(wanted / threadgroups)));

export interface VectorParts {
  readonly shortest: number;
  readonly wanted: number;
}

/**
 * `vector_along` has 16 rows per threadgroup. `vector_across` has 32 and all of their columns, so it has fewer
 * threadgroups. On an H200, `vector_across` took 0.086 ms for 4096 × 4096 in one part, 0.038 ms in 4 parts and 0.040 ms
 * in 8.
 */
export const vectorParts = {
  vector_along: { shortest: 4096, wanted: LEAST_GROUPS },
  vector_across: { shortest: 512, wanted: MOST_GROUPS },
} as const satisfies Record<string, VectorParts>;
