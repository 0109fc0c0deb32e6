/**
 * Tiling of attention's Metal kernels: tile sizes, their use of registers and memory, and how many fit on a GPU at a
 * time.
 */
import type { GpuFamily } from "../../backend/metal/gpu_family.ts";
import type { DType } from "../../tensor/dtype.ts";

/**
 * The tiled kernels. A threadgroup of `gradient_keys` holds rows of keys and iterates over queries; in the others it
 * holds queries and iterates over keys.
 */
export type TiledKernel = "forward" | "gradient_queries" | "gradient_keys" | "gradient_bias";

/**
 * The work of a threadgroup: it holds `8 · down · tall` rows and processes `columns` rows of the other side at a time.
 * Each SIMD-group holds `8 · tall` rows; `across` SIMD-groups share the same rows and divide their elements, in blocks
 * of 8, among them.
 */
export interface Tile {
  readonly kernel: TiledKernel;
  /** The GPU; `nvidia` has tiles in fragments.metal.ts. */
  readonly family: GpuFamily;
  /** Bytes of an element of q. */
  readonly bytes: 2 | 4;
  /** The largest D and E that this row supports; the first row that fits a call is used. */
  readonly width: number;
  readonly down: number;
  readonly across: number;
  readonly columns: number;
  readonly tall: 1 | 2 | 4;
}

const row = (
  kernel: TiledKernel,
  family: GpuFamily,
  bytes: 2 | 4,
  width: number,
  down: number,
  across: number,
  columns: number,
  tall: 1 | 2 | 4 = 1,
): Tile => ({ kernel, family, bytes, width, down, across, columns, tall });

/**
 * The table starts from metal-flash-attention's published parameters (`AttentionDescriptor+Parameters.swift`, 2024).
 * Its tiles have 32 rows up to M2 and 16 from M3 on, in all three kernels. Columns: forward 32 to 128 up to M2 and 32
 * to 128 from M3 on, backward 32 to 80 and 32 to 128. They hold a part of D at a time (8 to 56 elements). The tiles
 * here hold all of D, so for long rows fewer columns fit into threadgroup memory. MLX's forward
 * (`steel_attention.metal`, 2024) has 32 × 32 up to a width of 80 and 32 × 16 up to 128, with four SIMD-groups of 8
 * rows. Here each SIMD-group has 16 rows if registers allow it, which halves the reads of tiles in threadgroup memory.
 * If a SIMD-group runs out of registers, `across` grows: half of D for 16 rows needs as many registers as all of D for
 * 8 rows, and each element read from a tile serves twice as many rows. Strips grow with `across`, since each SIMD-group
 * stores its part of the scores. In float32 all kernels of a width have the same `across`: they sum a score in the same
 * order, so the probabilities of the backward pass equal those of the forward pass to the last bit. No parameters are
 * published for gradients of a bias, so all GPUs use the rows of `apple7`. The parameters have not been tuned on Apple
 * GPUs; docs/performance.md has times of another GPU.
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

/** Returns the tile of a kernel. Families without a matching row use those of `apple7`. */
export function tileFor(kernel: TiledKernel, family: GpuFamily, dtype: DType, dim: number, valueDim: number): Tile {
  const bytes = dtype === "float32" ? 4 : 2;
  const fits = (tile: Tile) => tile.kernel === kernel && tile.bytes === bytes && Math.max(dim, valueDim) <= tile.width;
  return (tiles.find((tile) => tile.family === family && fits(tile)) ?? tiles.find(fits))!;
}

/** Threads in a SIMD-group. */
export const SIMD_WIDTH = 32;

/** Returns the number of rows that a threadgroup holds. */
export const rowsOf = ({ down, tall }: Tile): number => 8 * down * tall;

export const threadsOf = ({ down, across }: Tile): number => SIMD_WIDTH * down * across;

/** Storage that a threadgroup of a kernel needs, besides the tiles it iterates over. */
interface Keeps {
  /** Operands whose rows are in registers, in their dtype. */
  readonly rows: readonly string[];
  /** Results that are accumulated in registers, in float32. */
  readonly sums: readonly string[];
  /** Number of tiles in threadgroup memory at a time. */
  readonly tiles: number;
  /** Strips of 8 · `tall` rows of scores for each SIMD-group. */
  readonly strips: number;
  /** Further threadgroup memory, in bytes. */
  readonly more: (tile: Tile) => number;
}

const WORD = 4;
/** One word for each SIMD-group: whether it read NaN or infinity. */
const nonfiniteBytes = ({ down, across }: Tile): number => WORD * down * across;

export const keeps: Readonly<Record<TiledKernel, Keeps>> = {
  forward: {
    rows: ["q"],
    sums: ["out"],
    tiles: 1,
    strips: 1,
    more: (tile) => nonfiniteBytes(tile) + WORD * rowsOf(tile), // a factor for each row
  },
  gradient_queries: { rows: ["q", "gradOut"], sums: ["gradQ"], tiles: 2, strips: 2, more: nonfiniteBytes },
  gradient_keys: {
    rows: ["k", "v"],
    sums: ["gradK", "gradV"],
    tiles: 2,
    strips: 2,
    more: (tile) => 2 * nonfiniteBytes(tile) + 3 * WORD * tile.columns, // L as two numbers, and Δ, of each query
  },
  gradient_bias: { rows: ["q", "gradOut"], sums: [], tiles: 2, strips: 2, more: () => 0 },
};

/**
 * Returns the static threadgroup memory of a kernel, in bytes. Rows of tiles and strips are padded by 16 bytes; each
 * SIMD-group has 8 × 8 floats more.
 */
export function threadgroupBytes(tile: Tile): number {
  const { tiles: count, strips, more } = keeps[tile.kernel];
  const tileBytes = count * tile.columns * (tile.width * tile.bytes + 16);
  const ofSimdgroup = strips * 8 * tile.tall * (tile.columns + 4) * WORD + 64 * WORD;
  return tileBytes + ofSimdgroup * tile.down * tile.across + more(tile);
}

/** Registers for addresses, counters and the state of rows: an estimate. */
const OTHER_REGISTERS = 32;

/**
 * Estimates the 32-bit registers that a thread needs; a thread holds two elements of each 8 × 8 matrix. Products of
 * rows are in memory while pairs are processed one by one.
 */
export function registersOf(tile: Tile): number {
  const { rows, sums } = keeps[tile.kernel];
  const ofElements = tile.bytes / 2;
  const blocks = tile.width / tile.across / 8;
  const pairs = Math.ceil(tile.columns / (8 * tile.across)); // each lane processes its pairs one at a time
  return (
    tile.tall * (rows.length * blocks * ofElements + sums.length * blocks * 2) +
    2 * Math.max(tile.tall * (tile.columns / 8), pairs) +
    ofElements +
    OTHER_REGISTERS
  );
}

/**
 * Limits of an M1 or M2 core: register file and threadgroup memory, about 208 and 60 KB according to metal-benchmarks
 * (philipturner, `README.md`, "On-Chip Memory", since August 2023; 384 and 64 before), and the most registers that an
 * instruction can address (applegpu, dougallj, 2021). M3 divides one memory among these uses and has no published
 * figures, so its rows are checked against the same limits.
 */
export const core = { registerBytes: 208 * 1024, threadgroupBytes: 60 * 1024, mostRegisters: 128 } as const;

/** Returns how many SIMD-groups fit on a core, limited by registers and threadgroup memory; whole threadgroups only. */
export function occupancyOf(tile: Tile): number {
  const simdgroups = tile.down * tile.across;
  const byRegisters = core.registerBytes / (registersOf(tile) * WORD * SIMD_WIDTH * simdgroups);
  return Math.floor(Math.min(byRegisters, core.threadgroupBytes / threadgroupBytes(tile))) * simdgroups;
}

/** Returns the kernel's host name. */
export const kernelName = ({ kernel, width, down, across, columns, tall }: Tile, type: string): string =>
  `${kernel}_${type}_${width}_${down}x${across}x${columns}${kernel === "gradient_bias" ? "" : `x${tall}`}`;

/**
 * The most queries for which the vector path (kernels/attention/vector.metal) is used. MLX
 * (`scaled_dot_product_attention.cpp`, 2025) uses its vector kernel up to 8 queries too.
 */
export const VECTOR_QUERIES = 8;

/** The most query elements that a lane of the vector path holds: dim / 32 for each row of its team. */
const TEAM_SHARES = 32;
const MOST_TEAM_ROWS = 8;

/**
 * Returns the rows of a team and the number of teams. A team is a threadgroup of the vector path; its rows are queries
 * of heads that share a head of keys, so keys and values are read once for all of them. `teamRows` is a power of 2,
 * because lanes divide the products among them. `dim` is the larger of D and E.
 */
export function vectorTeam(rows: number, dim: number): { readonly teamRows: number; readonly teams: number } {
  const most = dim <= (TEAM_SHARES / MOST_TEAM_ROWS) * SIMD_WIDTH ? MOST_TEAM_ROWS : MOST_TEAM_ROWS / 2;
  const teams = Math.ceil(rows / most);
  return { teams, teamRows: 2 ** Math.ceil(Math.log2(Math.max(1, rows / Math.max(1, teams)))) };
}

/** SIMD-groups in a threadgroup of the vector path that processes all keys of a team, or a part of them. */
export const vectorSimdgroups = { whole: 8, cut: 2 } as const;

/**
 * The vector path splits keys into parts of at least `PART_KEYS` for threadgroups of eight SIMD-groups, up to about
 * `PART_THREADGROUPS` threadgroups in total. It uses four times as many parts with two SIMD-groups each, if that gives
 * at most `MOST_PARTS` parts to merge. These values have not been tuned on a GPU.
 */
const PART_KEYS = 512;
const PART_THREADGROUPS = 512;
const MOST_PARTS = 128;

/**
 * Returns the number of parts into which a team's keys are split, and the number of SIMD-groups per part. `teams`
 * counts all heads and sequences.
 */
export function vectorCut(keys: number, teams: number): { readonly parts: number; readonly simdgroups: 2 | 8 } {
  const { whole, cut } = vectorSimdgroups;
  const most = Math.ceil(PART_THREADGROUPS / Math.max(teams, 1));
  const parts = Math.max(1, Math.min(Math.floor(keys / PART_KEYS), most));
  const smaller = (parts * whole) / cut;
  return parts > 1 && smaller <= MOST_PARTS ? { parts: smaller, simdgroups: cut } : { parts, simdgroups: whole };
}
