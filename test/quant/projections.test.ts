/** Three products that share x, computed by one operation: compared with float64 products, and with three calls. */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../src/backend/cpu/report.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { ShapeError } from "../../src/core/errors.ts";
import { quantizedMatmul, type Tensor, zeros } from "../../src/index.ts";
import { formatName, type QuantizedFormat, scaleDTypes } from "../../src/quant/formats.ts";
import { type Projection, quantizedProjections, whyNotAtOnce } from "../../src/quant/matmul/projections.ts";
import { bytesIn } from "../io/bytes.ts";
import { checked, testVariants } from "../linalg/variants.ts";
import { on, places } from "./fixtures.ts";
import { formats, wave, weightsOf, worstRatio } from "./products.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => {
  configure(native, "isa", initial);
  configure(native, "threads", "auto");
});

type Three<T> = readonly [T, T, T];
type FloatName = (typeof scaleDTypes)[number];

const as = (x: Tensor, dtype: FloatName): Tensor => on("reference", () => x.to(dtype));
const hex = (x: Tensor): string => Buffer.from(bytesIn(x)).toString("hex");
const rowOf = (size: number, step: number): Tensor => wave(1, size, step).reshape([size]);

/** Returns three projections with fewer rows for keys and values than for queries; two of them have a bias. */
function projectionsOf(own: Three<QuantizedFormat>, columns: number, dtype: FloatName): Three<Projection> {
  const sizes = [37, 11, 11] as const;
  const biases = [as(rowOf(37, 0.7), dtype), null, as(rowOf(11, 0.3), dtype)];
  return own.map((format, at) => ({
    weight: weightsOf(format, sizes[at], columns),
    bias: biases[at]!,
  })) as unknown as Three<Projection>;
}
const without = (all: Three<Projection>): Three<Projection> =>
  all.map(({ weight }) => ({ weight, bias: null })) as unknown as Three<Projection>;
const thrice = (format: QuantizedFormat): Three<QuantizedFormat> => [format, format, format];

const mixed: Three<QuantizedFormat> = ["q4_K", { bits: 4, groupSize: 64, symmetric: false }, "q6_K"];

function expectBitsOfThree(backend: (typeof places)[number], counts: readonly number[]): void {
  for (const own of [thrice("q4_0"), mixed, ["q8_0", "q8_0", "f16"]] as Three<QuantizedFormat>[])
    for (const dtype of scaleDTypes)
      for (const precision of ["exact", "fast"] as const)
        for (const count of counts) {
          const all = projectionsOf(own, 256, dtype);
          if (whyNotAtOnce(all, precision)) continue;
          const x = as(wave(count, 256, 1.3), dtype);
          const [got, expected] = on(backend, () => [
            quantizedProjections(x, all, precision),
            all.map(({ weight, bias }) => quantizedMatmul(x, weight, { precision, bias })),
          ]);
          const where = `${own.map(formatName).join(", ")}, ${dtype}, ${precision}, ${count}`;
          expect([where, ...got.map(hex)]).toEqual([where, ...expected.map(hex)]);
        }
}

describe.each(formats.map((format) => [formatName(format), format] as const))(
  "quantizedProjections, %s",
  (_name, format) => {
    test.each(places)("three products of one or more rows are right on %s", (backend) => {
      for (const count of [1, 4, 5, 17]) {
        const all = without(projectionsOf(thrice(format), 256, "float32"));
        const x = wave(count, 256, 1.3);
        const got = on(backend, () => quantizedProjections(x, all, "exact"));
        expect(got.map(({ shape }) => shape)).toEqual(all.map(({ weight }) => [count, weight.shape[0]]));
        for (const [at, { weight }] of all.entries()) expect(worstRatio(got[at], x, weight)).toBeLessThanOrEqual(1);
      }
    });
  },
);

test.each(places)("on %s the result has the bits of three calls", (backend) => {
  expectBitsOfThree(backend, backend === "metal" ? [1, 5] : [1, 3, 5, 17]);
});

test.each(isas)("with %s the result has the bits of three calls", (isa) => {
  configure(native, "isa", isa);
  expectBitsOfThree("cpu", [1, 4, 6, 18]);
  configure(native, "isa", initial);
});

test("the same bits on any number of threads, also if tasks end inside a weight", () => {
  const all = without(projectionsOf(["q4_0", "q8_0", "q4_1"], 8192, "float32"));
  for (const precision of ["exact", "fast"] as const) {
    const bits = [1, 2, 5].map((threads) => {
      configure(native, "threads", String(threads));
      return on("cpu", () =>
        [1, 7].map((count) => quantizedProjections(wave(count, 8192, 0.9), all, precision).map(hex)),
      );
    });
    expect(new Set(bits.map((own) => own.join())).size).toBe(1);
  }
  configure(native, "threads", "auto");
});

test("rows of x may have any strides", () => {
  const all = projectionsOf(mixed, 256, "float32");
  const x = wave(6, 256, 0.8).reshape([2, 3, 256]).transpose(0, 1);
  const [got, expected] = on("cpu", () => [
    quantizedProjections(x, all, "fast"),
    quantizedProjections(x.contiguous(), all, "fast"),
  ]);
  expect(got.map(({ shape }) => shape)).toEqual([37, 11, 11].map((rows) => [3, 2, rows]));
  expect(got.map(hex)).toEqual(expected.map(hex));
});

test("float weights among quantized ones are not a fast product", () => {
  const all = projectionsOf(["q8_0", "f16", "q8_0"], 64, "float32");
  expect(whyNotAtOnce(all, "fast")).toBe("some weights are quantized to integer levels, others are stored as floats");
  expect(whyNotAtOnce(all, "exact")).toBeUndefined();
  expect(whyNotAtOnce(projectionsOf(thrice("f16"), 64, "float32"), "fast")).toBeUndefined();
});

test.each(places)("empty operands are accepted, on %s", (backend) => {
  const all = projectionsOf(thrice("q4_0"), 64, "float32");
  const got = on(backend, () => quantizedProjections(zeros([0, 64]), all, "exact"));
  expect(got.map(({ shape }) => shape)).toEqual([37, 11, 11].map((rows) => [0, rows]));
  expect(() => quantizedProjections(zeros([2, 32]), all, "exact")).toThrow(ShapeError);
});

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("on metal", () => {
  const name = "a kernel for each product, checked";
  test(name, () => {
    checked(() => expectBitsOfThree("metal", [3, 5]));
  });
  testVariants(import.meta.path, name);
});
