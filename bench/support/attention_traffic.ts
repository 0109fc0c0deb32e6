/**
 * Counts the memory traffic and products of attention's Metal kernels on the software device, relative to the minimum
 * for their tiles.
 */

import { metalContext } from "../../src/backend/metal/context.ts";
import { type GpuFamily, withGpuFamily } from "../../src/backend/metal/gpu_family.ts";
import { withBackend, withStrict } from "../../src/backend/policy.ts";
import { flashAttention } from "../../src/ops/attention/flash_attention.ts";
import type { FlashAttentionOptions } from "../../src/ops/attention/options.ts";
import { rowsOf, type Tile, type TiledKernel, tileFor } from "../../src/ops/attention/tiles.metal.ts";
import { grad } from "../../src/ops/gradient/backward.ts";
import { randn } from "../../src/ops/index.ts";
import { bytesOf } from "../../src/tensor/dtype.ts";

/** One head with as many keys as queries. */
export interface Size {
  readonly dtype: "float32" | "float16" | "bfloat16";
  readonly length: number;
  readonly dim: number;
  readonly causal: boolean;
  /** The GPU family whose tiles are used. Default `"apple7"`. */
  readonly family?: GpuFamily;
  /** Further options of the call; the minimum applies to a call without them. */
  readonly options?: FlashAttentionOptions;
}

/** The counts of one kernel. */
export interface Traffic {
  readonly kernel: TiledKernel;
  readonly tile: Tile;
  /** Device memory read and written, as counted. */
  readonly bytes: number;
  /**
   * The minimum of bytes: each row that a threadgroup owns once, each line that it iterates over once, and each result
   * once.
   */
  readonly leastBytes: number;
  /** Floating-point operations of 8 × 8 products, as counted: two per multiply-accumulate. */
  readonly operations: number;
  /**
   * The minimum of operations: 2 · length² · dim per product, or half of it if causal, with whole tiles per SIMD-group
   * on the diagonal.
   */
  readonly mostOperations: number;
}

/** A kernel's matrix products, and its cost per row: elements by name, and words of float32. */
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

/** Runs a forward and a backward pass on Metal and counts each tiled kernel. */
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
    withStrict(true, () => withBackend("metal", () => withGpuFamily(family, step)));
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
      kernel,
      tile,
      bytes: device_bytes_read + device_bytes_written,
      operations: 2 * matrix_multiply_accumulates,
      leastBytes: leastBytes(kernel, tile, size),
      mostOperations: mostOperations(kernel, tile, size),
    };
  });
}

/**
 * Returns the number of lines that these rows iterate over together: the lines that any of the rows attends to, or that
 * attend to it.
 */
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

/** Only whole tiles and blocks of 8 elements are rounded up. */
function mostOperations(kernel: Costed, tile: Tile, size: Size): number {
  const width = Math.ceil(size.dim / 8) * 8;
  // The forward pass skips tiles that no row of a SIMD-group attends to.
  const rows = kernel === "forward" ? 8 * tile.tall : rowsOf(tile);
  const pairs = linesOf(kernel, rows, size)
    .map((lines) => Math.ceil(lines / tile.columns) * tile.columns * rows)
    .reduce((sum, count) => sum + count, 0);
  return costs[kernel].products * 2 * pairs * width;
}

/** 2 · length² · dim per product of a kernel, or half of it if causal, according to the formula. */
export const formulaOperations = (kernel: TiledKernel, { length, dim, causal }: Size): number =>
  ((costs[kernel as Costed].products * 2) / (causal ? 2 : 1)) * length * length * dim;
