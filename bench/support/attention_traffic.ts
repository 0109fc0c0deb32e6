/**
 * What attention's Metal kernels move and multiply, counted by the software device, beside the least that their tiles
 * allow.
 */

import { metalContext } from "../../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { flashAttention } from "../../src/ops/attention/flash_attention.ts";
import { withFamily } from "../../src/ops/attention/launch.metal.ts";
import type { FlashAttentionOptions } from "../../src/ops/attention/options.ts";
import { type Family, rowsOf, type Tile, type TiledKernel, tileFor } from "../../src/ops/attention/tiles.metal.ts";
import { grad } from "../../src/ops/gradient/backward.ts";
import { randn } from "../../src/ops/index.ts";
import { bytesOf } from "../../src/tensor/dtype.ts";

/** One head with as many keys as queries. */
export interface Size {
  readonly dtype: "float32" | "float16" | "bfloat16";
  readonly length: number;
  readonly dim: number;
  readonly causal: boolean;
  /** Whose tiles. Default `"apple7"`. */
  readonly family?: Family;
  /** What else a call has; the least that is possible is that without it. */
  readonly options?: FlashAttentionOptions;
}

/** Of one kernel. */
export interface Traffic {
  readonly kernel: TiledKernel;
  readonly tile: Tile;
  /** Device memory read and written, as counted. */
  readonly bytes: number;
  /** Every row that a threadgroup owns once, every line that it goes through once, every result once. */
  readonly leastBytes: number;
  /** Floating-point operations of products of 8 × 8, as counted: two a multiply-accumulate. */
  readonly operations: number;
  /** 2 · length² · dim for each product, half of it where causal, with whole tiles of a SIMD-group on the diagonal. */
  readonly mostOperations: number;
}

/** Products of matrices in a kernel, and what it does with rows: elements by name, and words of float32. */
const costs = {
  forward: { products: 2, owned: 1, streamed: 2, written: 1, ownedWords: 0, streamedWords: 0, writtenWords: 2 },
  gradient_queries: {
    products: 3,
    owned: 2,
    streamed: 2,
    written: 1,
    ownedWords: 3,
    streamedWords: 0,
    writtenWords: 0,
  },
  gradient_keys: { products: 4, owned: 2, streamed: 2, written: 2, ownedWords: 0, streamedWords: 3, writtenWords: 0 },
} as const satisfies Partial<Record<TiledKernel, unknown>>;
type Costed = keyof typeof costs;

/** Runs a forward and a backward on Metal and counts each kernel that goes through tiles. */
export function measureTraffic(size: Size): Traffic[] {
  const { dtype, length, dim, causal, family = "apple7", options } = size;
  const context = metalContext();
  const operand = () => randn([1, 1, length, dim], { dtype, requiresGrad: true });
  context.report({ clear: true });
  context.configure("count", true);
  try {
    const step = (): void => {
      const leaves = [operand(), operand(), operand()] as const;
      const out = flashAttention(...leaves, { ...options, causal, path: "fused" } as object);
      grad([out], leaves, { gradOutputs: [randn([1, 1, length, dim], { dtype })] });
    };
    withStrict(true, () => withBackend("metal", () => withFamily(family, step)));
    context.wait();
  } finally {
    context.configure("count", false);
  }
  const { dispatches } = context.report({ clear: true });
  return (Object.keys(costs) as Costed[]).map((kernel) => {
    const found = dispatches.find(({ kernel: name }) => name.startsWith(`${kernel}_`));
    if (!found) throw new Error(`${kernel} did not run: ${dispatches.map((dispatch) => dispatch.kernel).join(", ")}`);
    const { device_bytes_read, device_bytes_written, matrix_multiply_accumulates } = found.counters;
    const tile = tileFor(kernel, family, dtype, dim, dim);
    return {
      ...{ kernel, tile, bytes: device_bytes_read + device_bytes_written, operations: 2 * matrix_multiply_accumulates },
      ...{ leastBytes: leastBytes(kernel, tile, size), mostOperations: mostOperations(kernel, tile, size) },
    };
  });
}

/** Lines that so many rows go through together: those that any of them attends to, or is attended by. */
function linesOf(kernel: Costed, rows: number, { length, causal }: Size): number[] {
  return Array.from({ length: Math.ceil(length / rows) }, (_, index) => {
    if (!causal) return length;
    return kernel === "gradient_keys" ? length - index * rows : Math.min(length, (index + 1) * rows);
  });
}

function leastBytes(kernel: Costed, tile: Tile, size: Size): number {
  const { owned, streamed, written, ownedWords, streamedWords, writtenWords } = costs[kernel];
  const row = size.dim * bytesOf(size.dtype);
  const lines = linesOf(kernel, rowsOf(tile), size).reduce((sum, count) => sum + count, 0);
  const ofRows = (owned + written) * row + 4 * (ownedWords + writtenWords);
  return size.length * ofRows + lines * (streamed * row + 4 * streamedWords);
}

/** Whole tiles, and blocks of 8 elements: nothing else is rounded up. */
function mostOperations(kernel: Costed, tile: Tile, size: Size): number {
  const width = Math.ceil(size.dim / 8) * 8;
  // The forward passes over tiles that none of a SIMD-group's rows attends to.
  const rows = kernel === "forward" ? 8 * tile.tall : rowsOf(tile);
  const pairs = linesOf(kernel, rows, size)
    .map((lines) => Math.ceil(lines / tile.columns) * tile.columns * rows)
    .reduce((sum, count) => sum + count, 0);
  return costs[kernel].products * 2 * pairs * width;
}

/** 2 · length² · dim of each product of a kernel, half of it where causal: what the formula asks for. */
export const formulaOperations = (kernel: TiledKernel, { length, dim, causal }: Size): number =>
  ((costs[kernel as Costed].products * 2) / (causal ? 2 : 1)) * length * length * dim;
