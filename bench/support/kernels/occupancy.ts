/**
 * Estimates occupancy: the resources that a threadgroup of each kernel needs, and how many SIMD-groups fit on a core of
 * M1 or M2. Registers are estimates: a thread's elements of matrices and rows, and 32 for addresses and counters. A
 * compiler that keeps more loads in flight uses more.
 */
import {
  core,
  kernelName,
  registersOf,
  threadgroupBytes,
  threadsOf,
  tiles,
} from "../../../src/ops/attention/tiles.metal.ts";
import * as product from "../../../src/ops/matmul/tiles.ts";

const SIMD_WIDTH = 32;
const WORD = 4;
const ADDRESSES = 32;

/** A kernel's threadgroup. */
interface Needs {
  readonly kernel: string;
  readonly threads: number;
  readonly threadgroupBytes: number;
  readonly registers: number;
}

export const occupancyColumns = [
  "threads",
  "threadgroup bytes",
  "registers",
  "SIMD-groups a core",
  "bound by",
] as const;

export const occupancyRows = (): string[][] =>
  [...attentionNeeds(), ...productNeeds(), ...rowNeeds()].map((needs) => {
    const { kernel, threads, threadgroupBytes: bytes } = needs;
    // At least one threadgroup must fit, so kernels that need more registers limit their threads.
    const registers = Math.min(needs.registers, core.registerBytes / (WORD * threads));
    const byRegisters = core.registerBytes / (registers * WORD * threads);
    const byMemory = bytes === 0 ? Infinity : core.threadgroupBytes / bytes;
    const groups = Math.floor(Math.min(byRegisters, byMemory)) * (threads / SIMD_WIDTH);
    const bound = byRegisters < byMemory ? "registers" : "threadgroup memory";
    return [kernel, String(threads), String(bytes), String(registers), String(groups), bound];
  });

const attentionNeeds = (): Needs[] =>
  tiles
    .filter(({ family }) => family === "apple7")
    .map((tile) => ({
      kernel: kernelName(tile, tile.bytes === 4 ? "float" : "half"),
      threads: threadsOf(tile),
      threadgroupBytes: threadgroupBytes(tile),
      registers: registersOf(tile),
    }));

const productNeeds = (): Needs[] =>
  product.tiles.flatMap((tile) =>
    ([4, 2] as const).map((bytes) => ({
      kernel: `tiled_${bytes === 4 ? "float" : "half"}_${tile.rows}x${tile.columns}x${tile.depth}`,
      threads: product.threadsOf(tile),
      threadgroupBytes: product.threadgroupBytes(tile, bytes),
      registers: product.registersOf(tile, bytes),
    })),
  );

/**
 * Kernels that process float32 rows: a thread holds `count` elements in each of several arrays, and teams exchange sums
 * in 128 bytes.
 */
const rowNeeds = (): Needs[] =>
  (
    [
      ["normalize, rows of 1024", 128, 32, 1, 0],
      ["normalize with weight and bias, rows of 8192", 512, 16, 3, 256],
      ["normalize_gradient, rows of 256", 128, 8, 5, 0],
      ["normalize_gradient, rows of 8192", 512, 16, 5, 256],
      ["softmax, rows of 8192", 512, 16, 1, 256],
      ["binary, four elements a thread", 256, 4, 3, 0],
    ] as const
  ).map(([kernel, threads, count, arrays, bytes]) => ({
    kernel,
    threads,
    threadgroupBytes: bytes,
    registers: count * arrays + ADDRESSES,
  }));
