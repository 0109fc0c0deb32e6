/** GGML's blocks, bit for bit as the `gguf` package packs and unpacks them. */
import { describe, expect, test } from "bun:test";
import { ArgumentError, DTypeError, ShapeError } from "../../src/core/errors.ts";
import { dequantizeGgml, fromArray, ones, quantizeGgml, Tensor, tensor, zeros } from "../../src/index.ts";
import { blockFormat, ggmlFormats } from "../../src/quant/formats.ts";
import { bytesIn } from "../io/bytes.ts";
import { blocks, blocksOf, on, places } from "./fixtures.ts";

const weights = blocks["weights"];
/** The formats that the package packs. It unpacks all formats. */
const packedThere = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "mxfp4", "f16", "bf16"] as const;

/** Where bytes differ, and how often; empty if they are equal. */
function differences(got: Uint8Array, expected: Uint8Array): string[] {
  const found = [...expected.keys()].filter((at) => got[at] !== expected[at]);
  const shown = found.slice(0, 4).map((at) => `byte ${at}: ${got[at]}, expected ${expected[at]}`);
  return [`${expected.length} bytes, got ${got.length}`, `${found.length} differ`, ...shown];
}

const same = (length: number): string[] => [`${length} bytes, got ${length}`, "0 differ"];

test("the package packs eight of the formats, and unpacks all fourteen", () => {
  expect(ggmlFormats.filter((name) => `${name.toLowerCase()}.values` in blocks)).toEqual([...ggmlFormats]);
  expect(ggmlFormats.filter((name) => `${name.toLowerCase()}.quantized` in blocks)).toEqual([...packedThere]);
});

describe.each(packedThere)("quantizeGgml %s equals the package's bits", (format) => {
  const expected = bytesIn(blocks[`${format.toLowerCase()}.quantized`]);

  test("quantizeGgml equals the package's packing, bit for bit", () => {
    const w = quantizeGgml(weights, format);
    const { packed } = w.parts;
    expect(differences(bytesIn(packed), expected)).toEqual(same(expected.length));
    expect([w.format, w.shape, w.dtype]).toEqual([format, [...weights.shape], "float32"]);
    expect(w.byteLength).toBe(expected.length);
  });

  test("quantizeGgml accepts float64, strides and several axes", () => {
    const { shape } = weights;
    const doubled = weights.to("float64").reshape([2, shape[0] / 2, shape[1]]);
    const strided = doubled.transpose(0, 1).contiguous().transpose(0, 1);
    const w = quantizeGgml(strided, format);
    expect(w.shape).toEqual([2, shape[0] / 2, shape[1]]);
    expect(differences(bytesIn(w.parts.packed), expected)).toEqual(same(expected.length));
  });
});

describe.each(ggmlFormats)("dequantizeGgml %s equals the package's bits", (format) => {
  const packed = blocks[`${format.toLowerCase()}.packed`];
  const values = blocks[`${format.toLowerCase()}.values`];
  const w = blocksOf(format, values.shape[0], bytesIn(packed));

  test.each(places)("on %s equals the package's unpacking, bit for bit", (backend) => {
    const got = on(backend, () => dequantizeGgml(w));
    expect([got.shape, got.dtype]).toEqual([values.shape, "float32"]);
    expect(differences(bytesIn(got), bytesIn(values))).toEqual(same(bytesIn(values).length));
  });

  test.each(places)("on %s rounds once to float16 and bfloat16", (backend) => {
    for (const dtype of ["float16", "bfloat16"] as const) {
      const got = on(backend, () => dequantizeGgml(w, { dtype }));
      const expected = on("reference", () => values.to(dtype));
      expect([dtype, differences(bytesIn(got), bytesIn(expected))]).toEqual([dtype, same(bytesIn(expected).length)]);
    }
  });

  test("blocks have as many bytes as GGML states", () => {
    const { values: count, bytes } = blockFormat(format);
    expect(packed.shape).toEqual([values.shape[0], (values.shape[1] / count) * bytes]);
  });
});

test("rows of f16 and bf16 have any length", () => {
  const data = Array.from({ length: 3 * 37 }, (_, at) => (at - 50) / 4);
  for (const format of ["f16", "bf16"] as const)
    for (const backend of places) {
      const w = quantizeGgml(tensor(data).reshape([3, 37]), format);
      expect(
        on(backend, () => dequantizeGgml(w))
          .reshape([-1])
          .toArray(),
      ).toEqual(data);
    }
});

test("an empty tensor and one without rows are packed", () => {
  for (const shape of [
    [0, 64],
    [3, 0],
  ])
    for (const backend of places) {
      const w = quantizeGgml(zeros(shape), "q4_0");
      expect([w.byteLength, w.bitsPerValue]).toEqual([0, 0]);
      expect(on(backend, () => dequantizeGgml(w)).shape).toEqual(shape);
    }
});

// OCP Microscaling Formats 1.0: an element is ±0, 0.5, 1, 1.5, 2, 3, 4 or 6, and the scale of a block is 2^(e - 127).
test.each(places)("mxfp4 is exact on %s: every element with every scale", (backend) => {
  const elements = [0, 0.5, 1, 1.5, 2, 3, 4, 6];
  const scales = Array.from({ length: 255 }, (_, e) => e);
  const nibbles = Array.from({ length: 16 }, (_, at) => at | ((15 - at) << 4));
  const bytes = Uint8Array.from(scales.flatMap((e) => [e, ...nibbles]));
  const elementOf = (nibble: number) => (nibble & 8 ? -1 : 1) * elements[nibble & 7];
  const expected = scales.flatMap((e) =>
    Array.from({ length: 32 }, (_, at) => Math.fround(elementOf(at < 16 ? at : 31 - at) * 2 ** (e - 127))),
  );
  const got = on(backend, () => dequantizeGgml(blocksOf("mxfp4", scales.length, bytes)));
  const values = got.dataSync() as Float32Array;
  expect(expected.flatMap((value, at) => (values[at] === value ? [] : [[at, values[at], value]]))).toEqual([]);
});

describe("quantizeGgml rejects", () => {
  const fails = (body: () => unknown): unknown => {
    try {
      body();
    } catch (error) {
      return error;
    }
    throw new Error("it was taken");
  };

  test("quantizeGgml rejects unknown formats", () => {
    const error = fails(() => quantizeGgml(ones([1, 256]), "q7_K" as "q4_K"));
    expect(error).toBeInstanceOf(ArgumentError);
    expect(error).toMatchObject({ code: "unknownChoice", message: expect.stringContaining('got "q7_K"') });
  });

  test("quantizeGgml rejects rows that are not whole blocks, and scalars", () => {
    expect(fails(() => quantizeGgml(ones([2, 40]), "q8_0"))).toBeInstanceOf(ShapeError);
    expect(fails(() => quantizeGgml(tensor(1), "q8_0"))).toMatchObject({ code: "wrongColumns" });
  });

  test("quantizeGgml rejects integers", () => {
    expect(fails(() => quantizeGgml(tensor([1, 2], { dtype: "int32" }), "f16"))).toBeInstanceOf(DTypeError);
  });

  test.each([Number.NaN, Infinity, -Infinity])("quantizeGgml rejects %p, but not in f16 and bf16", (value) => {
    const w = fromArray(Float32Array.from({ length: 32 }, (_, at) => (at === 7 ? value : 1)));
    expect(fails(() => quantizeGgml(w, "q4_1"))).toMatchObject({
      code: "notFinite",
      message: expect.stringContaining(`got ${value} as value 7`),
    });
    expect(dequantizeGgml(quantizeGgml(w, "f16")).toArray()).toEqual(w.toArray());
    expect(dequantizeGgml(quantizeGgml(w, "bf16")).toArray()).toEqual(w.toArray());
  });

  test("quantizeGgml rejects values whose scale is beyond float16", () => {
    const w = fromArray(Float32Array.from({ length: 64 }, (_, at) => (at === 40 ? 1e6 : 1)));
    expect(fails(() => quantizeGgml(w, "q4_0"))).toMatchObject({
      code: "scaleOverflow",
      message: expect.stringContaining("from index 32 on"),
    });
    expect(quantizeGgml(w, "mxfp4")).toBeDefined(); // mxfp4's scale is a power of two
  });

  test.each([
    ["q4_1", 1e6],
    ["q5_1", 1e6],
    ["q2_K", 2e6], // levels reach up to 0, and at most 3 of them cover the minimum
    ["q4_K", 1e7],
    ["q5_K", 1e7],
  ] as const)("quantizeGgml rejects values whose minimum is beyond %s, though their scale is not", (format, size) => {
    const { values } = blockFormat(format);
    const w = fromArray(Float32Array.from({ length: 2 * values }, (_, at) => (at < values ? 1 : -size - at)));
    expect(fails(() => quantizeGgml(w, format))).toMatchObject({
      code: "scaleOverflow",
      message: expect.stringContaining(`from index ${values} on`),
    });
  });

  test.each(["q2_K", "q3_K", "q4_K", "q5_K", "q6_K", "iq4_nl"] as const)(
    "quantizeGgml rejects values beyond the scales of %s",
    (format) => {
      const w = fromArray(Float32Array.from({ length: 512 }, (_, at) => (at === 300 ? -1e12 : 1)));
      const from = format === "iq4_nl" ? 288 : 256;
      expect(fails(() => quantizeGgml(w, format))).toMatchObject({
        code: "scaleOverflow",
        message: expect.stringContaining(`from index ${from} on`),
      });
    },
  );
});

test("the gradient ends at quantized weights", () => {
  const w = ones([1, 32]);
  w.requiresGrad = true;
  expect(dequantizeGgml(quantizeGgml(w, "q8_0")).requiresGrad).toBe(false);
  expect(Tensor.isTensor(quantizeGgml(w, "q8_0"))).toBe(false);
});
