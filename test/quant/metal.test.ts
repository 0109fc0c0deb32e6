// Properties of Metal's kernels for quantized weights besides correct results: no findings of the checker, the numeric
// variants of the device, edges of tiles, and the bytes that are moved.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type MetalContext, metalContext } from "../../src/backend/metal/context.ts";
import type { DispatchCounters } from "../../src/backend/metal/report.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import {
  dequantize,
  grad,
  ones,
  quantize,
  quantizedMatmul,
  quantizedSwiglu,
  quantizeGgml,
  quantizeInt4,
  type Tensor,
} from "../../src/index.ts";
import { formatName, type QuantizedFormat, scaleDTypes } from "../../src/quant/formats.ts";
import type { QuantizedTensor } from "../../src/quant/quantized_tensor.ts";
import { bytesIn } from "../io/bytes.ts";
import { checked, testVariants } from "../linalg/variants.ts";
import { on } from "./fixtures.ts";
import { formats, numbers, wave, weightsOf, worstRatio } from "./products.ts";

const onMetal = <Result>(body: () => Result): Result => on("metal", body);
const groupsOf8 = { bits: 8, groupSize: 32, symmetric: false } as const;
/** Converts on the reference backend. */
const as = (x: Tensor, dtype: "float32" | "float16" | "bfloat16"): Tensor => on("reference", () => x.to(dtype));

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("quantized weights on metal", () => {
  /** Computes x Wᵀ, and y W in its gradient, for these sizes. */
  function expectProducts(format: QuantizedFormat, rows: number, columns: number, counts: readonly number[]): void {
    const w = weightsOf(format, rows, columns);
    for (const count of counts) {
      const [x, cotangent] = [wave(count, columns, 1.3), wave(count, rows, 0.7)];
      x.requiresGrad = true;
      const [y, own] = checked(() =>
        onMetal(() => {
          const y = quantizedMatmul(x, w);
          return [y, grad([y], [x], { gradOutputs: [cotangent] })[0]];
        }),
      );
      const where = `${formatName(format)}, ${count} x ${columns} times ${rows} rows`;
      expect([where, worstRatio(y, x.detach(), w) <= 1]).toEqual([where, true]);
      expect([where, worstRatio(own, cotangent, w, true) <= 1]).toEqual([where, true]);
    }
  }

  test("products and gradients in every format, at the edges of tiles, checked", () => {
    for (const format of formats) expectProducts(format, 37, 256, [1, 3, 5]);
    for (const format of ["q4_0", "mxfp4", "f16"] as const) {
      expectProducts(format, 65, 32, [4, 33]);
      expectProducts(format, 1, 544, [1, 2]);
    }
    expectProducts("q6_K", 33, 768, [2, 9]);
    expectProducts("f16", 3, 517, [4, 6]);
    expectProducts({ bits: 3, groupSize: 128, symmetric: false }, 34, 640, [2, 7]);
  });

  test("the large tiles, in every dtype, checked", () => {
    const w = weightsOf("q5_0", 1990, 64);
    for (const dtype of scaleDTypes) {
      const x = as(wave(66, 64, 0.9), dtype);
      const y = checked(() => onMetal(() => quantizedMatmul(x, w)));
      expect([dtype, worstRatio(y, x, w) <= 1]).toEqual([dtype, true]);
    }
  });

  test("values of blocks and of groups with float16 scales are bit for bit the reference's, checked", () => {
    for (const format of formats)
      for (const dtype of scaleDTypes) {
        const w = weightsOf(format, 5, 256);
        const [expected, got] = [
          on("reference", () => dequantize(w, { dtype })),
          checked(() => onMetal(() => dequantize(w, { dtype }))),
        ];
        const where = `${formatName(format)}, ${dtype}`;
        expect([where, Buffer.compare(bytesIn(got), bytesIn(expected))]).toEqual([where, 0]);
      }
  });

  test("values of groups with float32 scales are within a rounding of the product", () => {
    for (const symmetric of [true, false]) {
      const w = quantize(wave(5, 256, 0.4), { bits: 5, groupSize: 32, symmetric });
      const [expected, got] = [numbers(on("reference", () => dequantize(w))), numbers(onMetal(() => dequantize(w)))];
      const scales = numbers(w.parts.scales!);
      for (const [at, value] of got.entries())
        expect(Math.abs(value - expected[at])).toBeLessThanOrEqual(
          31 * Math.abs(scales[Math.floor(at / 32)]) * 2 ** -24 + Math.abs(value) * 2 ** -24,
        );
    }
  });
  testVariants(import.meta.path, ", checked$|^quantized weights on metal values of groups");

  describe("quantized products read their weights once", () => {
    let context: MetalContext;
    beforeAll(() => {
      context = metalContext();
      context.configure("count", true);
    });
    afterAll(() => context.configure("count", false));

    /** The one dispatch of `body`. */
    function dispatchOf(body: () => Tensor): DispatchCounters {
      context.wait();
      context.report({ clear: true });
      onMetal(body);
      context.wait();
      const { dispatches } = context.report({ clear: true });
      expect(dispatches.map(({ count }) => count)).toEqual([1]);
      return dispatches[0];
    }

    const bytesOf = ({ counters }: Pick<DispatchCounters, "counters">): number =>
      counters.device_bytes_read + counters.device_bytes_written;

    /** Weights on the device, so that only the product is counted. */
    function resident(w: QuantizedTensor): QuantizedTensor {
      onMetal(() => dequantize(w));
      return w;
    }

    test("one row: each byte of the weights is read once, and traffic is within 5 % of the minimum", () => {
      // The same traffic as with 4096 rows and columns: only x is read twice, once for each 256 rows, regardless of the
      // number of columns.
      const [rows, columns] = [4096, 512];
      for (const format of ["q4_0", "q8_0", "q4_K", { bits: 4, groupSize: 64, symmetric: false }] as const) {
        const w = resident(weightsOf(format, rows, columns));
        const x = onMetal(() => ones([1, columns]));
        const own = bytesOf(dispatchOf(() => quantizedMatmul(x, w)));
        expect(own).toBe(w.byteLength + (rows / 256) * columns * 4 + rows * 4);
        expect(own / (w.byteLength + columns * 4 + rows * 4)).toBeLessThanOrEqual(1.05);
      }
    });

    test("one row of a gated product: each byte of both weights is read once, within 5 % of the minimum", () => {
      const [rows, columns] = [4096, 512];
      for (const format of ["q4_0", "q4_K", { bits: 4, groupSize: 64, symmetric: false }] as const) {
        const [gate, up] = [resident(weightsOf(format, rows, columns)), resident(weightsOf(format, rows, columns))];
        const x = onMetal(() => ones([1, columns]));
        const own = bytesOf(dispatchOf(() => quantizedSwiglu(x, gate, up)));
        expect(own).toBe(2 * gate.byteLength + (rows / 128) * columns * 4 + rows * 4);
        expect(own / (2 * gate.byteLength + columns * 4 + rows * 4)).toBeLessThanOrEqual(1.05);
      }
    });

    test("a gated product of many rows takes one dispatch, and the bytes of two products without intermediates", () => {
      const [count, rows, columns] = [128, 1024, 256];
      const x = onMetal(() => ones([count, columns], { dtype: "float16" }));
      const [gate, up] = [resident(weightsOf("q4_K", rows, columns)), resident(weightsOf("q4_K", rows, columns))];
      const { kernel, ...counted } = dispatchOf(() => quantizedSwiglu(x, gate, up));
      expect(kernel).toBe("quant_gated_tiled_half_64x64");
      const one = bytesOf(dispatchOf(() => quantizedMatmul(x, gate)));
      expect(bytesOf(counted)).toBe(2 * one - count * rows * 2);
    });

    test("a product of many rows takes no more bytes than a product of float16 in tiles of 64 x 64", () => {
      const [count, rows, columns] = [128, 1024, 256];
      const x = onMetal(() => ones([count, columns], { dtype: "float16" }));
      // The traffic of kernels/matmul/tiled.metal: x once for each 64 rows of weights, and weights for each 64 of x.
      const plain = 2 * (count * columns * (rows / 64) + columns * rows * (count / 64) + count * rows);
      for (const format of ["q4_0", "q8_0", "q3_K", "q6_K", "f16", groupsOf8] as const) {
        const w = resident(weightsOf(format, rows, columns));
        const { kernel, ...counted } = dispatchOf(() => quantizedMatmul(x, w));
        expect(kernel).toBe("quant_tiled_half_64x64");
        expect([formatName(format), bytesOf(counted) <= plain]).toEqual([formatName(format), true]);
      }
    });

    test("x of any strides is read in place", () => {
      const w = resident(weightsOf("q4_0", 40, 64));
      for (const count of [3, 7]) {
        const turned = onMetal(() => wave(64, count, 0.6).mul(1).transpose(0, 1));
        const stepped = onMetal(() => wave(count, 130, 0.6).mul(1)).slice(1, { start: 1, end: 129, step: 2 });
        const batched = onMetal(() =>
          wave(64, 6 * count, 0.6)
            .mul(1)
            .reshape([2, 64, 3 * count]),
        ).transpose(1, 2);
        for (const x of [turned, stepped, batched]) {
          expect(dispatchOf(() => quantizedSwiglu(x, w, w)).kernel).toStartWith("quant_gated");
          expect(dispatchOf(() => quantizedMatmul(x, w)).kernel).toStartWith("quant_");
          expect(
            worstRatio(
              onMetal(() => quantizedMatmul(x, w)),
              x,
              w,
            ),
          ).toBeLessThanOrEqual(1);
        }
      }
    });

    test("a gradient reads the packed weights too", () => {
      const [count, rows, columns] = [32, 512, 512];
      const w = resident(quantizeInt4(wave(rows, columns, 0.3), { scaleDType: "float16" }));
      const [x, cotangent] = onMetal(() => [ones([count, columns]), ones([count, rows])]);
      x.requiresGrad = true;
      const y = onMetal(() => quantizedMatmul(x, w));
      const { kernel, counters } = dispatchOf(() => grad([y], [x], { gradOutputs: [cotangent] })[0]);
      expect(kernel).toBe("quant_tiled_float_32x256_transposed");
      expect(counters.device_bytes_read).toBeLessThan(w.byteLength * 1.5 + 2 * count * rows * 4);
    });
  });

  test("results are the same in every order of threadgroups", () => {
    const context = metalContext();
    const w = quantizeGgml(wave(600, 1056, 0.2), "q5_1");
    const xs = [wave(3, 1056, 0.5), wave(40, 1056, 0.7)];
    const run = (seed: number) => {
      context.configure("seed", seed);
      return onMetal(() => xs.map((x) => Buffer.from(bytesIn(quantizedMatmul(x, w))).toString("hex")));
    };
    const first = run(1);
    for (const seed of [2, 3]) expect(run(seed)).toEqual(first);
    context.configure("seed", 1);
  });
});
