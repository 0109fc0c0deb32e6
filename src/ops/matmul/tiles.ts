/** How Metal's kernels cut a product: the sizes of tiles, and where sums are cut along k. */
import { bytesOf } from "../../tensor/dtype.ts";
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
 * Few rows or columns have a tile as high or as wide as they are: what it multiplies beyond an edge is lost. From 2²⁰
 * elements of the result on there are 256 tiles of 64 × 64, each element of which serves 64 others; 64 of them would
 * leave half of a large GPU idle. 32 of k at a time have half the barriers of 16, and take 18 KB of float32 in tiles of
 * 64 × 64. (An H200 took 0.13 ms for 1024³ with 32, 0.14 with 16; 5.8 and 6.9 for 4096³.) Four SIMD-groups each;
 * `kernels/matmul/tiled.metal` has a kernel for each row.
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

/** Addresses and counters: an estimate. */
const OTHER_REGISTERS = 32;

/** The most registers of 32 bits that a thread of a tiled product may need by the estimate below. */
export const REGISTER_BUDGET = 128;

/**
 * Registers that a thread needs, as an estimate: it holds two elements of each 8 × 8 matrix of sums, and of the factors
 * of two steps along k, of which one is loaded while the other is multiplied.
 */
export function registersOf({ rows, columns, down, across }: Tile, elementBytes: number): number {
  const [high, wide] = [rows / down / 8, columns / across / 8];
  return 2 * high * wide + 2 * (high + wide) * (elementBytes / 2) + OTHER_REGISTERS;
}

/** Threadgroups that every GPU needs, and those that fill a large one. */
const LEAST_GROUPS = 64;
const MOST_GROUPS = 512;
/** The fewest elements of a sum that are worth a threadgroup. */
const LEAST_LENGTH = 64;
/** Bytes of an element of a part, which is written and read again, and of all parts beside the factors. */
const PART_BYTES = 8;
const PART_SHARE = 1 / 16;
/** Of 16 × 16: results of more leave enough threadgroups, or pay more for their parts than these bring. */
const SPLIT_TILES = 32;
const SKINNY = 16;

/**
 * Into how many parts the sums of a tiled product are cut: where a result is so small, or has so few rows or columns,
 * that its tiles leave most of a GPU idle. More parts than {@link LEAST_GROUPS} need must be small beside the factors.
 */
export function tiledSplits(problem: Problem): number {
  const { m, n, k, batchShape, a } = problem;
  const isSmall = Math.ceil(m / 16) * Math.ceil(n / 16) <= SPLIT_TILES || Math.min(m, n) <= SKINNY;
  if (batchShape.length > 0 || !isSmall) return 1;
  const { rows, columns } = tileFor(problem);
  const groups = Math.ceil(m / rows) * Math.ceil(n / columns);
  const factors = (m + n) * k * bytesOf(a.tensor.dtype);
  const cheap = Math.min(Math.ceil(MOST_GROUPS / groups), Math.floor((factors * PART_SHARE) / (m * n * PART_BYTES)));
  return Math.max(1, Math.min(Math.max(Math.ceil(LEAST_GROUPS / groups), cheap), Math.floor(k / LEAST_LENGTH)));
}

/**
 * Into how many parts the sums of a matrix times a column are cut: of at least `shortest` elements, and no more than
 * fill `wanted` threadgroups. The figures are untried on Apple's GPUs.
 */
export const vectorSplits = (k: number, threadgroups: number, { shortest, wanted }: VectorParts): number =>
  Math.max(1, Math.min(Math.floor(k / shortest), Math.ceil(wanted / threadgroups)));

export interface VectorParts {
  readonly shortest: number;
  readonly wanted: number;
}

/**
 * Along k a threadgroup has 16 rows, across 32 and all of their columns: there are fewer. 4096 × 4096 across took 0.086
 * ms on an H200 in one part, 0.038 in 4, 0.040 in 8.
 */
export const vectorParts = {
  vector_along: { shortest: 4096, wanted: LEAST_GROUPS },
  vector_across: { shortest: 512, wanted: MOST_GROUPS },
} as const satisfies Record<string, VectorParts>;
