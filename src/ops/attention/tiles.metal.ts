/**
 * How Metal's kernels cut attention: the sizes of tiles, what they hold in registers and memory, and how many fit on a
 * GPU at a time.
 */
import type { DType } from "../../tensor/dtype.ts";

/**
 * The kernels that go through tiles. `gradient_keys` owns keys and goes through queries, the others the other way
 * round.
 */
export type TiledKernel = "forward" | "gradient_queries" | "gradient_keys" | "gradient_bias";

/** A generation of GPUs: `apple7` is M1 and everything that no other row is for, `apple9` is M3 and later. */
export type Family = "apple7" | "apple9";

/**
 * A threadgroup's share: `8 · down · tall` rows, which it owns, and `columns` of the other rows at a time. Each
 * SIMD-group owns `8 · tall` rows; `across` of them stand side by side and divide the elements of a row (its blocks of
 * 8) among them.
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
  readonly tall: 1 | 2 | 4;
}

const row = (
  kernel: TiledKernel,
  family: Family,
  bytes: 2 | 4,
  width: number,
  down: number,
  across: number,
  columns: number,
  tall: 1 | 2 | 4 = 1,
): Tile => ({ kernel, family, bytes, width, down, across, columns, tall });

/**
 * Rows that a threadgroup owns, columns that it goes through, and what is kept in registers start from
 * metal-flash-attention's published rows (`AttentionDescriptor+Parameters.swift`, 2024): 32 rows up to M2 and 16 from
 * M3 on, in all three kernels; forward 32 to 128 columns up to M2 and 32 to 128 from M3 on, backward 32 to 80 and 32 to
 * 128. Its tiles hold a part of D at a time (8 to 56 elements), ours all of it, so that of long rows fewer columns fit
 * into threadgroup memory. MLX's forward (`steel_attention.metal`, 2024) has 32 × 32 up to a width of 80 and 32 × 16 up
 * to 128, with four SIMD-groups of 8 rows; ours have 16 rows each where registers allow it, which halves what is read
 * of tiles in threadgroup memory. Where a SIMD-group's registers would not do, it is `across` that grows: half of D for
 * 16 rows takes as many as all of it for 8, and each element that is read of a tile serves twice the rows. Strips grow
 * by that, as each SIMD-group leaves its part of the scores. In float32 all kernels of a width have the same `across`:
 * then they sum a score in the same order, and the gradients' probabilities are those of the forward to the last bit.
 * Nobody publishes figures for gradients of a bias: they take the rows of `apple7` everywhere. The figures are untried
 * on Apple's GPUs; docs/performance.md has times of another one.
 */
export const tiles: readonly Tile[] = [
  row("forward", "apple7", 4, 32, 4, 1, 32, 2),
  row("forward", "apple7", 4, 64, 4, 2, 32, 2),
  row("forward", "apple7", 4, 128, 2, 4, 16, 2),
  row("forward", "apple7", 4, 256, 2, 4, 16, 2),
  row("forward", "apple7", 2, 64, 4, 1, 32, 2),
  row("forward", "apple7", 2, 128, 4, 1, 32),
  row("forward", "apple7", 2, 256, 2, 2, 32),
  row("forward", "apple9", 4, 64, 1, 2, 64, 2),
  row("forward", "apple9", 4, 128, 1, 4, 32, 2),
  row("forward", "apple9", 2, 64, 2, 1, 128),
  row("forward", "apple9", 2, 128, 2, 1, 64),

  ...(["gradient_queries", "gradient_keys"] as const).flatMap((kernel) => [
    row(kernel, "apple7", 4, 32, 4, 1, 16),
    row(kernel, "apple7", 4, 64, 2, 2, 16, 2),
    row(kernel, "apple7", 4, 128, 1, 4, 16, 2),
    row(kernel, "apple7", 4, 256, 2, 4, 8),
    row(kernel, "apple7", 2, 64, 2, 2, 16, 2),
    row(kernel, "apple7", 2, 128, 4, 2, 16),
    row(kernel, "apple7", 2, 256, 2, 4, 16),
  ]),
  row("gradient_queries", "apple9", 4, 32, 2, 1, 64),
  row("gradient_queries", "apple9", 4, 64, 1, 2, 32, 2),
  row("gradient_queries", "apple9", 2, 64, 2, 1, 64),
  row("gradient_queries", "apple9", 2, 128, 2, 2, 32),
  row("gradient_keys", "apple9", 4, 32, 2, 1, 32),
  row("gradient_keys", "apple9", 4, 64, 1, 2, 32, 2),
  row("gradient_keys", "apple9", 2, 64, 2, 1, 64),
  row("gradient_keys", "apple9", 2, 128, 2, 2, 32),

  row("gradient_bias", "apple7", 4, 32, 4, 1, 16),
  row("gradient_bias", "apple7", 4, 64, 4, 2, 16),
  row("gradient_bias", "apple7", 4, 128, 2, 4, 16),
  row("gradient_bias", "apple7", 4, 256, 2, 4, 8),
  row("gradient_bias", "apple7", 2, 64, 4, 1, 16),
  row("gradient_bias", "apple7", 2, 128, 4, 2, 16),
  row("gradient_bias", "apple7", 2, 256, 2, 4, 16),
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
export const SIMD_WIDTH = 32;

/** Rows that a threadgroup owns. */
export const rowsOf = ({ down, tall }: Tile): number => 8 * down * tall;

export const threadsOf = ({ down, across }: Tile): number => SIMD_WIDTH * down * across;

/** What a threadgroup of each kernel keeps, beside tiles of what it goes through. */
interface Keeps {
  /** Operands whose rows it owns, in registers, in their own dtype. */
  readonly rows: readonly string[];
  /** Results whose sums it has in registers, in float32. */
  readonly sums: readonly string[];
  /** Tiles side by side in threadgroup memory. */
  readonly tiles: number;
  /** Strips of 8 · `tall` rows of scores, of each SIMD-group. */
  readonly strips: number;
  /** Further threadgroup memory, in bytes. */
  readonly more: (tile: Tile) => number;
}

const WORD = 4;
/** A word of each SIMD-group: whether it read NaN or infinity. */
const nonfiniteBytes = ({ down, across }: Tile): number => WORD * down * across;

export const keeps: Readonly<Record<TiledKernel, Keeps>> = {
  forward: {
    ...{ rows: ["q"], sums: ["out"], tiles: 1, strips: 1 },
    more: (tile) => nonfiniteBytes(tile) + WORD * rowsOf(tile), // factors
  },
  gradient_queries: { rows: ["q", "gradOut"], sums: ["gradQ"], tiles: 2, strips: 2, more: nonfiniteBytes },
  gradient_keys: {
    ...{ rows: ["k", "v"], sums: ["gradK", "gradV"], tiles: 2, strips: 2 },
    more: (tile) => 2 * nonfiniteBytes(tile) + 3 * WORD * tile.columns, // L, in two numbers, and Δ of each query
  },
  gradient_bias: { rows: ["q", "gradOut"], sums: [], tiles: 2, strips: 2, more: () => 0 },
};

/**
 * Static threadgroup memory of a kernel: rows of tiles 16 bytes longer than their elements, of strips too, and 8 × 8
 * floats a SIMD-group.
 */
export function threadgroupBytes(tile: Tile): number {
  const { tiles: count, strips, more } = keeps[tile.kernel];
  const tileBytes = count * tile.columns * (tile.width * tile.bytes + 16);
  const ofSimdgroup = strips * 8 * tile.tall * (tile.columns + 4) * WORD + 64 * WORD;
  return tileBytes + ofSimdgroup * tile.down * tile.across + more(tile);
}

/** Addresses, counters, and the state of rows: an estimate. */
const OTHER_REGISTERS = 32;

/**
 * Registers of 32 bits that a thread needs, as an estimate: of each 8 × 8 matrix it holds two elements. Products of
 * rows are in memory when pairs are treated one by one.
 */
export function registersOf(tile: Tile): number {
  const { rows, sums } = keeps[tile.kernel];
  const ofElements = tile.bytes / 2;
  const blocks = tile.width / tile.across / 8;
  const pairs = Math.ceil(tile.columns / (8 * tile.across)); // that a lane treats one by one
  return (
    tile.tall * (rows.length * blocks * ofElements + sums.length * blocks * 2) +
    2 * Math.max(tile.tall * (tile.columns / 8), pairs) +
    ofElements +
    OTHER_REGISTERS
  );
}

/**
 * What a core of M1 and M2 has: a register file and threadgroup memory as metal-benchmarks (philipturner, `README.md`,
 * "On-Chip Memory") gives them since August 2023, about 208 and 60 KB, where it had 384 and 64 before; and the most
 * registers that an instruction can name (applegpu, dougallj, 2021). Of M3, which shares one memory out among them,
 * nobody publishes figures: its rows are held to these.
 */
export const core = { registerBytes: 208 * 1024, threadgroupBytes: 60 * 1024, mostRegisters: 128 } as const;

/** SIMD-groups that a core has room for at a time, by registers and by threadgroup memory, whole threadgroups only. */
export function occupancyOf(tile: Tile): number {
  const simdgroups = tile.down * tile.across;
  const byRegisters = core.registerBytes / (registersOf(tile) * WORD * SIMD_WIDTH * simdgroups);
  return Math.floor(Math.min(byRegisters, core.threadgroupBytes / threadgroupBytes(tile))) * simdgroups;
}

/** Its kernel's host name. */
export const kernelName = ({ kernel, width, down, across, columns, tall }: Tile, type: string): string =>
  `${kernel}_${type}_${width}_${down}x${across}x${columns}${kernel === "gradient_bias" ? "" : `x${tall}`}`;

/**
 * When the vector path is taken: kernels/attention/vector.metal. MLX (`scaled_dot_product_attention.cpp`, 2025) takes
 * its own up to 8 queries too.
 */
export const VECTOR_QUERIES = 8;

/** What a lane of the vector path holds of its team's queries, a row's share of 32 elements counted as one. */
const TEAM_SHARES = 32;
const MOST_TEAM_ROWS = 8;

/**
 * The rows (queries of the heads that share a head of keys) that a threadgroup of the vector path has, so that it reads
 * keys and values once for all of them: a power of 2, by which a lane's products are divided among the lanes; and how
 * many such teams there are. `dim`: the larger one of D and E.
 */
export function vectorTeam(rows: number, dim: number): { readonly teamRows: number; readonly teams: number } {
  const most = dim <= (TEAM_SHARES / MOST_TEAM_ROWS) * SIMD_WIDTH ? MOST_TEAM_ROWS : MOST_TEAM_ROWS / 2;
  const teams = Math.ceil(rows / most);
  return { teams, teamRows: 2 ** Math.ceil(Math.log2(Math.max(1, rows / Math.max(1, teams)))) };
}

/** SIMD-groups of the vector path's threadgroups, which have all keys of a team, or parts of them. */
export const vectorSimdgroups = { whole: 8, cut: 2 } as const;

/**
 * The vector path cuts keys into parts of at least so many for eight SIMD-groups, and no more than fill so many
 * threadgroups of eight; of two, if parts are not too many then for the threads that merge them. The figures are
 * untried on a GPU.
 */
const PART_KEYS = 512;
const PART_THREADGROUPS = 512;
const MOST_PARTS = 128;

/** Into how many parts a team's keys are cut, and for how many SIMD-groups. `teams`: of all heads and sequences. */
export function vectorCut(keys: number, teams: number): { readonly parts: number; readonly simdgroups: 2 | 8 } {
  const { whole, cut } = vectorSimdgroups;
  const most = Math.ceil(PART_THREADGROUPS / Math.max(teams, 1));
  const parts = Math.max(1, Math.min(Math.floor(keys / PART_KEYS), most));
  const smaller = (parts * whole) / cut;
  return parts > 1 && smaller <= MOST_PARTS ? { parts: smaller, simdgroups: cut } : { parts, simdgroups: whole };
}
