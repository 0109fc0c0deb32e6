/** Products with x rounded to 8 bits, compared with float64 products of the rounded x. */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../src/backend/cpu/report.ts";
import { ArgumentError } from "../../src/core/errors.ts";
import {
  codepaths,
  fromArray,
  grad,
  matmulGgml,
  matmulInt4,
  ones,
  quantize,
  quantizedFromParts,
  quantizedMatmul,
  quantizeGgml,
  quantizeInt4,
} from "../../src/index.ts";
import { formatName, scaleDTypes } from "../../src/quant/formats.ts";
import type { QuantizedTensor } from "../../src/quant/quantized_tensor.ts";
import { bytesIn, tensorOf } from "../io/bytes.ts";
import { blocksOf, on } from "./fixtures.ts";
import { numbers, wave, weightsOf } from "./products.ts";
import { ratioOf, rounded, withLevels } from "./rounded.ts";

const fast = { precision: "fast" } as const;
const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => configure(native, "isa", initial));
/** Backends that round x. */
const roundingPlaces = ["reference", "cpu"] as const;

describe.each(withLevels.map((format) => [formatName(format), format] as const))(
  "products with x in 8 bits, %s",
  (_, format) => {
    test("products of one or more rows of x in 8 bits equal the formula, with every instruction set", () => {
      const w = weightsOf(format, 11, 512);
      for (const count of [1, 3, 4, 6, 8, 11, 17]) {
        const x = wave(count, 512, 1.3);
        expect([
          count,
          ratioOf(
            on("reference", () => quantizedMatmul(x, w, fast)),
            x,
            w,
          ) <= 1,
        ]).toEqual([count, true]);
        for (const isa of isas) {
          configure(native, "isa", isa);
          const got = on("cpu", () => quantizedMatmul(x, w, fast));
          expect([got.shape, got.dtype]).toEqual([[count, 11], "float32"]);
          expect([isa, count, ratioOf(got, x, w) <= 1]).toEqual([isa, count, true]);
        }
      }
      configure(native, "isa", initial);
    });
  },
);

test("products with rows of an odd number of parts equal the formula", () => {
  for (const columns of [32, 96, 416])
    for (const format of ["q4_0", "q5_1", "q8_0", "iq4_nl", "mxfp4", { bits: 4, groupSize: 32 }] as const) {
      const values = wave(5, columns, 0.3);
      const w = typeof format === "string" ? quantizeGgml(values, format) : quantize(values, format);
      for (const isa of isas)
        for (const count of [2, 7]) {
          const x = wave(count, columns, 0.9);
          configure(native, "isa", isa);
          const got = on("cpu", () => quantizedMatmul(x, w, fast));
          expect([isa, count, ratioOf(got, x, w) <= 1]).toEqual([isa, count, true]);
        }
      configure(native, "isa", initial);
    }
});

test("products with groups of every size, and scales of every dtype, equal the formula", () => {
  for (const groupSize of [32, 64, 128] as const)
    for (const scaleDType of scaleDTypes)
      for (const bits of [4, 8] as const) {
        const [x, w] = [wave(2, 384, 0.9), quantize(wave(5, 384, 0.3), { bits, groupSize, scaleDType })];
        for (const backend of roundingPlaces)
          expect(
            ratioOf(
              on(backend, () => quantizedMatmul(x, w, fast)),
              x,
              w,
            ),
          ).toBeLessThanOrEqual(1);
      }
});

/** Weights whose row i is 1 at column i, and 0 elsewhere: a product is the row of x itself. */
function identity(size: number): QuantizedTensor {
  const bytes = new Uint8Array((size * size * 34) / 32);
  for (let block = 0; block < bytes.length; block += 34) bytes[block + 1] = 0x3c; // 1 in float16
  for (let row = 0; row < size; row++) bytes[(row * size * 34) / 32 + Math.floor(row / 32) * 34 + 2 + (row % 32)] = 1;
  return blocksOf("q8_0", size, bytes);
}

describe("x is rounded to the same bits on every backend", () => {
  const size = 64;
  const rows: Readonly<Record<string, (at: number) => number>> = {
    "numbers of all sizes": (at) => Math.sin(at * 1.7) * 10 ** ((at % 7) - 3),
    "halves, which go to even": (at) => (at % 32 === 0 ? 127 : (at % 32) - 15.5),
    "huge numbers": (at) => Math.fround((at % 2 ? -1 : 1) * 3.4e38 * ((at % 5) / 5)),
    "the smallest scale": (at) => 127 * 2 ** -126 * ((at % 3) - 1),
    "a denormal scale": (at) => 126 * 2 ** -126 * ((at % 3) - 1),
    zeros: () => 0,
    "zeros in one part": (at) => (at < 32 ? 0 : at),
  };

  test.each(Object.entries(rows))("%s is rounded to the same bits on every backend", (_, value) => {
    const x = fromArray(
      Float32Array.from({ length: size }, (__, at) => value(at)),
      [1, size],
    );
    const expected = Array.from(numbers(rounded(x)), Math.fround);
    for (const count of [1, 16]) {
      const all = x.expand([count, size]);
      const got = roundingPlaces.map((backend) => on(backend, () => quantizedMatmul(all, identity(size), fast)));
      for (const isa of isas) {
        configure(native, "isa", isa);
        got.push(on("cpu", () => quantizedMatmul(all, identity(size), fast)));
      }
      configure(native, "isa", initial);
      for (const own of got)
        for (const row of own.toArray() as number[][])
          expect(row.map((y) => y + 0)).toEqual(expected.map((y) => y + 0));
    }
  });
});

test("a row with a value that is not finite gives NaN, and no other does", () => {
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
    for (const count of [3, 17]) {
      const x = fromArray(
        Float32Array.from({ length: count * 96 }, (_, at) => (at === 96 + 70 ? bad : 1)),
        [count, 96],
      );
      const w = quantizeGgml(wave(4, 96, 0.3), "q4_0");
      const places = [...isas.map((isa) => ["cpu", isa] as const), ["reference", initial] as const];
      for (const [backend, isa] of places) {
        configure(native, "isa", isa);
        const got = on(backend, () => quantizedMatmul(x, w, fast)).toArray() as number[][];
        expect(got.map((row) => row.map(Number.isFinite))).toEqual(
          Array.from({ length: count }, (_, row) => [0, 0, 0, 0].map(() => row !== 1)),
        );
      }
    }
  configure(native, "isa", initial);
});

test("the largest and smallest levels do not saturate", () => {
  const columns = 256;
  const xs = [1, 6].map((count) =>
    fromArray(
      Float32Array.from({ length: count * columns }, (_, at) => (at % 64 < 32 ? 1 : -1)),
      [count, columns],
    ),
  );
  const ends = [
    blocksOf(
      "q8_0",
      2,
      Uint8Array.from({ length: 2 * 8 * 34 }, (_, at) => (at % 34 < 2 ? 0x2a : at < 272 ? 0x80 : 0x7f)),
    ),
    blocksOf(
      "iq4_nl",
      2,
      Uint8Array.from({ length: 2 * 8 * 18 }, (_, at) => (at % 18 < 2 ? 0x2a : at < 144 ? 0 : 0xff)),
    ),
    blocksOf(
      "q6_K",
      2,
      Uint8Array.from({ length: 2 * 210 }, (_, at) => (at % 210 < 192 ? (at < 210 ? 0 : 0xff) : 0x2a)),
    ),
    ...([8, 6, 2] as const).flatMap((bits) =>
      [true, false].map((symmetric) =>
        quantizedFromParts(
          { bits, groupSize: 64, symmetric },
          {
            packed: tensorOf("uint32", [2, (columns / 32) * bits], new Uint8Array(2 * 32 * bits).fill(0xff)),
            scales: ones([2, 4]),
            biases: symmetric ? undefined : ones([2, 4]),
          },
        ),
      ),
    ),
  ];
  for (const isa of isas) {
    configure(native, "isa", isa);
    for (const w of ends)
      for (const x of xs) {
        const got = on("cpu", () => quantizedMatmul(x, w, fast));
        expect([isa, formatName(w.format), ratioOf(got, x, w) <= 1]).toEqual([isa, formatName(w.format), true]);
      }
  }
  configure(native, "isa", initial);
});

// Kernels that sum bytes in the same order, in exact integers.
const kinds = [
  ["avx2", "avx512", "avx512_bf16", "amx"],
  ["neon", "dotprod", "fhm", "bf16"],
].map((names) => isas.filter((isa) => names.includes(isa)));

test("products of bytes have the same bits with every instruction for them, on 1, 2 and 4 threads", () => {
  for (const kind of kinds)
    for (const format of withLevels)
      for (const [count, columns] of [
        [1, 768],
        [2, 512],
        [7, 512],
        [11, 512],
      ] as const) {
        const [x, w] = [wave(count, columns, 1.1), weightsOf(format, 70, columns)];
        const results = kind.flatMap((isa) =>
          ["1", "2", "4"].map((threads) => {
            configure(native, "isa", isa);
            configure(native, "threads", threads);
            return Bun.hash(bytesIn(on("cpu", () => quantizedMatmul(x, w, fast))));
          }),
        );
        expect([formatName(format), count, new Set(results).size]).toEqual([
          formatName(format),
          count,
          Math.min(kind.length, 1),
        ]);
      }
  configure(native, "isa", initial);
  configure(native, "threads", "auto");
});

// Kernels that add the parts of many rows in a fixed order.
const inOrder = isas.filter((isa) => ["avx512", "avx512_bf16", "amx"].includes(isa));

test.each(withLevels.map((format) => [formatName(format), format] as const))(
  "many rows of %s have the same bits with AVX512_VNNI and AMX, on 1, 2 and 4 threads",
  (_, format) => {
    const w = weightsOf(format, 45, 768);
    for (const count of [32, 47, 100]) {
      const x = wave(count, 768, 1.1);
      const results = inOrder.flatMap((isa) =>
        ["1", "2", "4"].map((threads) => {
          configure(native, "isa", isa);
          configure(native, "threads", threads);
          return on("cpu", () => quantizedMatmul(x, w, fast));
        }),
      );
      const different = new Set(results.map((y) => Bun.hash(bytesIn(y))));
      expect([count, different.size]).toEqual([count, Math.min(inOrder.length, 1)]);
      if (count === 47 && results.length > 0) expect(ratioOf(results[0], x, w)).toBeLessThanOrEqual(1);
    }
    configure(native, "isa", initial);
    configure(native, "threads", "auto");
  },
);

test("x may have every dtype and any strides", () => {
  const w = quantizeInt4(wave(6, 128, 0.2));
  for (const dtype of scaleDTypes) {
    const x = on("reference", () => wave(128, 8, 0.8).to(dtype).transpose(0, 1));
    const got = on("cpu", () => matmulInt4(x, w, fast));
    expect(got.dtype).toBe(dtype);
    expect([dtype, ratioOf(got, x, w) <= 1]).toEqual([dtype, true]);
    const own = on("cpu", () => matmulInt4(x.reshape([2, 4, 128]), w, fast));
    expect(own.reshape([8, 6]).toArray()).toEqual(got.toArray());
  }
});

test("products have the same bits on any number of threads", () => {
  const rows = [1, 2, 6, 11, 16].map((count) => wave(count, 512, 0.9));
  for (const format of ["q4_0", "q4_K", { bits: 3, groupSize: 32, symmetric: true }] as const) {
    const w = weightsOf(format, 333, 512);
    const bits = [1, 2, 5].map((count) => {
      configure(native, "threads", String(count));
      return on("cpu", () => rows.map((x) => Buffer.from(bytesIn(quantizedMatmul(x, w, fast))).toString("hex")));
    });
    expect(new Set(bits.map((own) => own.join())).size).toBe(1);
  }
  configure(native, "threads", "auto");
});

test.each(roundingPlaces)("exact is the default, and gradients match the exact product, on %s", (backend) => {
  const w = quantizeGgml(wave(8, 64, 0.2), "q4_0");
  const x = wave(3, 64, 0.5);
  x.requiresGrad = true;
  const [plain, exact, own] = on(backend, () => [
    matmulGgml(x, w),
    matmulGgml(x, w, { precision: "exact" }),
    matmulGgml(x, w, fast),
  ]);
  expect(exact.toArray()).toEqual(plain.toArray());
  expect(own.toArray()).not.toEqual(plain.toArray());
  const gradOutputs = [wave(3, 8, 0.7)];
  const [expected, got] = on(backend, () => [plain, own].map((y) => grad([y], [x], { gradOutputs })[0].toArray()));
  expect(got).toEqual(expected);
});

test("codepaths() says which precision ran", () => {
  const callsOf = (operation: string) =>
    codepaths().reduce(
      (sum, path) => sum + (path.operation === operation && path.backend === "cpu" ? path.calls : 0),
      0,
    );
  for (const [format, name] of [
    ["q4_0", "quantizedMatmulFast"],
    ["f16", "quantizedMatmul"],
    ["bf16", "quantizedMatmul"],
  ] as const) {
    const before = callsOf(name);
    const x = wave(2, 64, 0.5);
    const w = quantizeGgml(wave(3, 64, 0.2), format);
    const got = on("cpu", () => quantizedMatmul(x, w, fast));
    expect([format, callsOf(name)]).toEqual([format, before + 1]);
    if (format !== "q4_0") expect(got.toArray()).toEqual(on("cpu", () => quantizedMatmul(x, w)).toArray());
  }
});

test("any other precision is rejected", () => {
  const w = quantizeGgml(ones([4, 64]), "q4_0");
  expect(() => quantizedMatmul(ones([1, 64]), w, { precision: "medium" as "fast" })).toThrow(ArgumentError);
});
