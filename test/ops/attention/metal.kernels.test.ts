/** The Metal kernels' table of tiles, what they compile, their memory traffic and their products. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { measureTraffic } from "../../../bench/support/attention_traffic.ts";
import { count } from "../../../bench/support/kernels/count.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { metalTypeOf, pipelineFor } from "../../../src/backend/metal/launch.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { environmentFlag } from "../../../src/core/environment.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import type { FlashAttentionOptions } from "../../../src/ops/attention/options.ts";
import { LARGEST_WIDTH } from "../../../src/ops/attention/primitive.ts";
import {
  core,
  kernelName,
  occupancyOf,
  registersOf,
  type Tile,
  type TiledKernel,
  threadgroupBytes,
  threadsOf,
  tileFor,
  tiles,
} from "../../../src/ops/attention/tiles.metal.ts";
import { backward, grad } from "../../../src/ops/gradient/backward.ts";
import { randn, sum, zeros } from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";

const hasMetal = !environmentFlag("ORCHARD_SKIP_METAL");
const kernels: readonly TiledKernel[] = ["forward", "gradient_queries", "gradient_keys", "gradient_bias"];
const dtypesOf = ({ bytes }: Tile): readonly DType[] => (bytes === 4 ? ["float32"] : ["float16", "bfloat16"]);
const rows = tiles.map((tile) => [`${tile.family} ${tile.bytes} bytes ${kernelName(tile, "*")}`, tile] as const);

describe("the table of attention's tiles is complete", () => {
  test.each(rows)("%s: tiles are whole matrices that fit threadgroup memory", (_, tile) => {
    const { width, across, columns } = tile;
    expect([width % (8 * across), columns % 8, [1, 2, 4].includes(across)]).toEqual([0, 0, true]);
    expect(threadsOf(tile)).toBeLessThanOrEqual(256);
    expect(threadgroupBytes(tile)).toBeLessThanOrEqual(32 * 1024);
    expect(registersOf(tile)).toBeLessThanOrEqual(core.mostRegisters);
    // At least one SIMD-group for each of a core's four schedulers.
    expect(occupancyOf(tile)).toBeGreaterThanOrEqual(4);
  });

  test("every head dimension of every dtype has a tile, the narrowest that fits", () => {
    for (const kernel of kernels)
      for (const family of ["apple7", "apple9"] as const)
        for (const dtype of ["float32", "float16", "bfloat16"] as const)
          for (let dim = 1; dim <= LARGEST_WIDTH; dim++) {
            const tile = tileFor(kernel, family, dtype, dim, 1);
            expect(tile.width).toBeGreaterThanOrEqual(dim);
            expect(tileFor(kernel, family, dtype, 1, dim)).toBe(tile);
            const narrower = tiles
              .filter((other) => other.kernel === kernel && other.family === tile.family)
              .filter((other) => other.bytes === tile.bytes && other.width < tile.width);
            for (const other of narrower) expect(other.width).toBeLessThan(dim);
          }
  });

  test("in float32 all kernels of a width sum a score in the same order", () => {
    for (const tile of tiles.filter(({ bytes }) => bytes === 4))
      expect([tile.width, tile.across]).toEqual([
        tile.width,
        tileFor("forward", "apple7", "float32", tile.width, 1).across,
      ]);
  });

  test.each(kernels)("%s.metal has a kernel for each row and no other", (kernel) => {
    const source = readFileSync(join(import.meta.dir, `../../../kernels/attention/${kernel}.metal`), "utf8");
    const found = [...source.matchAll(/^[A-Z_]+\((\w+), (?:(\w+), )?(\d+), (\d+), (\d+)(?:, (\d+))?\)$/gm)].map(
      (match) => match[0].replace(/^\w+\(/, "").replace(")", ""),
    );
    const own = tiles.filter((tile) => tile.kernel === kernel);
    const wanted = own.map(({ bytes, width, down, across, columns, tall }) =>
      [
        ...(bytes === 4 ? ["float"] : []),
        width,
        down,
        across,
        columns,
        ...(kernel === "gradient_bias" ? [] : [tall]),
      ].join(", "),
    );
    expect(found.sort()).toEqual(wanted.sort());
  });

  test.if(hasMetal).each(rows)("%s compiles, with as many threads and bytes as stated", (_, tile) => {
    for (const dtype of dtypesOf(tile)) {
      const name = kernelName(tile, metalTypeOf(dtype));
      const { info } = pipelineFor(metalContext(), {
        file: `attention/${tile.kernel}.metal`,
        name,
        constants: [0, tile.width, tile.width],
      });
      expect(info.maxTotalThreads).toBeGreaterThanOrEqual(threadsOf(tile));
      expect(info.staticThreadgroupBytes).toBe(threadgroupBytes(tile));
    }
  });
});

describe.if(hasMetal)("Metal kernels of attention are compiled once", () => {
  const attend = (queries: number, keys: number, dim: number): void => {
    withStrict(true, () =>
      withBackend("metal", () => {
        const [q, k, v] = [queries, keys, keys].map((length) => randn([1, 1, length, dim], { requiresGrad: true }));
        backward(sum(flashAttention(q, k, v, { causal: true, path: "fused" })));
      }),
    );
    metalContext().wait();
  };

  test("a new sequence length compiles nothing; a new head dimension does, and so do more rows of a team", () => {
    const context = metalContext();
    const compiled = () => context.statistics().pipelinesCompiled + context.statistics().pipelineHits;
    attend(40, 40, 24);
    for (const queries of [1, 2, 3, 5]) attend(queries, 40, 24);
    const before = compiled();
    for (const [queries, keys] of [
      [40, 41],
      [17, 90],
      [64, 33],
      [9, 1],
      [1, 600],
      [8, 1100],
    ] as const)
      attend(queries, keys, 24);
    expect(compiled()).toBe(before);
    attend(40, 40, 28);
    expect(compiled()).toBeGreaterThan(before);
  });

  test.each([
    ["4 heads that share them", [8, 2, 1]],
    ["8 queries", [2, 2, 8]],
    ["2 queries of 3 heads that share them", [3, 1, 2]],
  ] as const)("keys and values are read once for %s", (_, [heads, kvHeads, queries]) => {
    const context = metalContext();
    if (!context.isSoftware) return expect(process.platform).toBe("darwin"); // Apple's device has no counters
    const [keys, dim] = [512, 64];
    const shapes = [heads, kvHeads, kvHeads].map((own, at) => [1, own, at === 0 ? queries : keys, dim]);
    const [q, k, v] = withBackend("metal", () => shapes.map((shape) => randn(shape, { dtype: "float16" })));
    const { bytes } = count(() => withBackend("metal", () => flashAttention(q, k, v, { path: "fused" })));
    const once = kvHeads * keys * dim * 2 * 2;
    expect(bytes).toBeGreaterThan(once);
    expect(bytes).toBeLessThan(1.15 * once);
  });

  const sizes = [
    { dtype: "float32", length: 256, dim: 64, causal: false },
    { dtype: "float32", length: 512, dim: 64, causal: true },
    { dtype: "float16", length: 256, dim: 128, causal: true },
    { dtype: "bfloat16", length: 250, dim: 80, causal: true },
    { dtype: "float32", length: 128, dim: 64, causal: true, family: "apple9" },
    { dtype: "float16", length: 200, dim: 128, causal: true, family: "apple9" },
  ] as const;

  test.each(sizes)("bytes and products of %p match the formula", (size) => {
    const context = metalContext();
    if (!context.isSoftware) return expect(process.platform).toBe("darwin"); // Apple's device has no counters
    for (const { kernel, bytes, leastBytes, operations, mostOperations } of measureTraffic(size)) {
      expect([kernel, bytes / leastBytes <= 1.15]).toEqual([kernel, true]);
      expect(bytes).toBeGreaterThanOrEqual(leastBytes);
      expect([kernel, operations]).toEqual([kernel, mostOperations]);
    }
  });

  /** Multiply-accumulates of `gradient_bias`, for a bias of each pair, under the checker. */
  const productsOfBias = (length: number, options: FlashAttentionOptions = {}): number => {
    const [context, shape] = [metalContext(), [1, 1, length, 8]];
    context.report({ clear: true });
    for (const what of ["count", "check"] as const) context.configure(what, true);
    try {
      withStrict(true, () =>
        withBackend("metal", () => {
          const bias = zeros([length, length], { requiresGrad: true });
          const [q, k, v] = [randn(shape), randn(shape), randn(shape)];
          const out = flashAttention(q, k, v, { ...options, bias, path: "fused" } as object);
          grad([sum(out)], [bias]);
        }),
      );
      context.wait();
    } finally {
      for (const what of ["count", "check"] as const) context.configure(what, false);
    }
    const { dispatches, findings } = context.report({ clear: true });
    expect(findings).toEqual([]);
    return dispatches.find(({ kernel }) => kernel.startsWith("gradient_bias_"))!.counters.matrix_multiply_accumulates;
  };

  test.each([
    // 32 of 256 keys for each query: a tile's 32 rows see 63 of them.
    ["a window", { window: { left: 31, right: 0 } }, (columns: number) => (63 + columns) / 256],
    ["a window to the right", { window: { left: 0, right: 31 } }, (columns: number) => (63 + columns) / 256],
    ["packed sequences", { cuSeqlens: [0, 64, 128, 192, 256] }, () => 1 / 4],
  ] as const)("%s: fully masked tiles are neither read nor multiplied", (_, options, share) => {
    if (!metalContext().isSoftware) return expect(process.platform).toBe("darwin");
    const size = { dtype: "float32", length: 256, dim: 8, causal: false } as const;
    const [all, some] = [measureTraffic(size), measureTraffic({ ...size, options })];
    for (const [at, { kernel, tile, operations, bytes }] of some.entries()) {
      expect([kernel, operations / all[at].operations <= share(tile.columns)]).toEqual([kernel, true]);
      expect([kernel, bytes < 0.7 * all[at].bytes]).toEqual([kernel, true]);
    }
    const { columns } = tileFor("gradient_bias", "apple7", "float32", 8, 8);
    expect(productsOfBias(256, options) / productsOfBias(256)).toBeLessThanOrEqual(share(columns));
  });

  test("the products match the formula: 4 N² D forward, 14 N² D backward, and about half if causal", () => {
    const context = metalContext();
    if (!context.isSoftware) return expect(process.platform).toBe("darwin");
    const [length, dim] = [256, 64];
    const counted = (causal: boolean) =>
      measureTraffic({ dtype: "float16", length, dim, causal }).map(({ operations }) => operations);
    const [forward, queries, keys] = counted(false) as [number, number, number];
    expect([forward, queries + keys]).toEqual([4 * length * length * dim, 14 * length * length * dim]);
    // A causal tile on the diagonal is computed whole, which adds half of a tile's rows to each row.
    for (const [index, operations] of counted(true).entries())
      expect(operations / [forward, queries, keys][index]).toBeLessThanOrEqual(0.5 + 32 / length);
  });
});
