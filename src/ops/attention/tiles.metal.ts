/** How Metal's kernels cut attention: the sizes of tiles, what they hold in registers and memory, and how many fit on a GPU at a time. */
import type { DType } from "../../tensor/dtype.ts";

/** The kernels that go through tiles. `gradient_keys` owns keys and goes through queries, the others the other way round. */
export type TiledKernel = "forward" | "gradient_queries" | "gradient_keys" | "gradient_bias";

/** A generation of GPUs: `apple7` is M1 and everything that no other row is for, `apple9` is M3 and later. */
export type Family = "apple7" | "apple9";

/**
 * A threadgroup's share: `8 · down` rows, which it owns, and `columns` lines of the others at a time. `across` SIMD-groups stand side by side
 * and divide the elements of a row (its blocks of 8) among them.
 */
export interface Tile {
  readonly kernel: TiledKernel;
  readonly family: Family;
  /** Of an element of q. */
  readonly bytes: 2 | 4;
  /** The largest D and E that it is for; the first row that fits is taken. */
  readonly width: number;
  readonly down: number;
  readonly across: number;
  readonly columns: number;
}

const row = (
  kernel: TiledKernel,
  family: Family,
  bytes: 2 | 4,
  width: number,
  down: number,
  across: number,
  columns: number,
): Tile => ({ kernel, family, bytes, width, down, across, columns });

/**
 * Queries that a threadgroup owns, keys that it goes through, and what is kept in registers follow metal-flash-attention's published rows
 * (`AttentionDescriptor+Parameters.swift`, 2024): 32 × 32 to 128 up to M2, 16 × 64 to 128 from M3 on, operands and sums in registers. MLX's forward
 * (`steel_attention.metal`, 2024) has 32 × 32 up to a width of 80 and 32 × 16 up to 128, with four SIMD-groups of 8 rows. Where a SIMD-group's
 * registers would not do, it is `across` that grows. The figures are untried on a GPU.
 */
export const tiles: readonly Tile[] = [
  row("forward", "apple7", 4, 32, 4, 1, 32),
  row("forward", "apple7", 4, 64, 4, 1, 32),
  row("forward", "apple7", 4, 128, 4, 2, 16),
  row("forward", "apple7", 4, 256, 2, 4, 16),
  row("forward", "apple7", 2, 64, 4, 1, 32),
  row("forward", "apple7", 2, 128, 4, 1, 32),
  row("forward", "apple7", 2, 256, 2, 2, 32),
  row("forward", "apple9", 4, 64, 2, 1, 64),
  row("forward", "apple9", 4, 128, 2, 2, 32),
  row("forward", "apple9", 2, 64, 2, 1, 128),
  row("forward", "apple9", 2, 128, 2, 1, 64),

  ...(["gradient_queries", "gradient_keys", "gradient_bias"] as const).flatMap((kernel) => [
    row(kernel, "apple7", 4, 32, 4, 1, 16),
    row(kernel, "apple7", 4, 64, 4, 2, 16),
    row(kernel, "apple7", 4, 128, 2, 4, 16),
    row(kernel, "apple7", 4, 256, 2, 4, 8),
    row(kernel, "apple7", 2, 64, 4, 1, 16),
    row(kernel, "apple7", 2, 128, 4, 2, 16),
    row(kernel, "apple7", 2, 256, 2, 4, 16),
  ]),
];

/** The largest head dimension that kernels are made for. */
export const LARGEST_WIDTH = 256;

/** The tile of a kernel. A GPU of a family that has no row of its own takes those of `apple7`. */
export function tileFor(kernel: TiledKernel, family: Family, dtype: DType, dim: number, valueDim: number): Tile {
  const bytes = dtype === "float32" ? 4 : 2;
  const fits = (tile: Tile) => tile.kernel === kernel && tile.bytes === bytes && Math.max(dim, valueDim) <= tile.width;
  return (tiles.find((tile) => tile.family === family && fits(tile)) ?? tiles.find(fits))!;
}

/** Of one SIMD-group. */
const SIMD_WIDTH = 32;

/** Rows that a threadgroup owns. */
export const rowsOf = ({ down }: Tile): number => 8 * down;

export const threadsOf = ({ down, across }: Tile): number => SIMD_WIDTH * down * across;

/** Its kernel's host name. */
export const kernelName = ({ kernel, width, down, across, columns }: Tile, type: string): string =>
  `${kernel}_${type}_${width}_${down}x${across}x${columns}`;

/** When the vector path is taken: kernels/attention/vector.metal. MLX (`scaled_dot_product_attention.cpp`, 2025) takes its own up to 8 queries too. */
export const VECTOR_QUERIES = 8;

/** The vector path cuts keys into parts of at least so many, and no more than fill so many threadgroups. Both figures are untried on a GPU. */
const PART_KEYS = 512;
const PART_THREADGROUPS = 512;

/** Into how many parts a query's keys are cut. `rows`: queries of all heads and sequences. */
export const vectorParts = (keys: number, rows: number): number =>
  Math.max(1, Math.min(Math.floor(keys / PART_KEYS), Math.ceil(PART_THREADGROUPS / Math.max(rows, 1))));
