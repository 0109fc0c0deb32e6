/** Affine weights: MLX's packing, rounding to the nearest and by least squares, error bounds. */
import { describe, expect, test } from "bun:test";
import { ShapeError } from "../../src/core/errors.ts";
import {
  dequantize,
  dequantizeInt4,
  fromArray,
  ones,
  quantize,
  quantizeGgml,
  quantizeInt4,
  type Tensor,
  tensor,
  zeros,
} from "../../src/index.ts";
import { affineBits, groupSizes, type ScaleDType, scaleDTypes } from "../../src/quant/formats.ts";
import { QuantizedTensor } from "../../src/quant/quantized_tensor.ts";
import { bytesIn } from "../io/bytes.ts";
import { groups, on, places } from "./fixtures.ts";

const weights = groups["weights"];
const hex = (x: Tensor): string => new Bun.CryptoHasher("sha256").update(bytesIn(x)).digest("hex");
const numbers = (x: Tensor): Float64Array => Float64Array.from(x.dataSync() as ArrayLike<number>);

/** Weights similar to those of a layer, the same in every run. */
function layer(rows: number, columns: number, dtype: ScaleDType = "float32"): Tensor {
  const values = Float32Array.from({ length: rows * columns }, (_, at) => Math.sin(at * 1.7) * Math.cos(at * at) * 0.1);
  return fromArray(values).reshape([rows, columns]).to(dtype);
}

const cases = Object.keys(groups)
  .filter((name) => name.endsWith(".weight"))
  .map((name) => {
    const [bits, groupSize, scaleDType] = name.split(".");
    return { key: name.slice(0, -".weight".length), bits: Number(bits), groupSize: Number(groupSize), scaleDType };
  }) as { key: string; bits: 4; groupSize: 64; scaleDType: ScaleDType }[];

test("MLX's fixtures have every number of bits with every group size", () => {
  const float32 = cases.filter(({ scaleDType }) => scaleDType === "float32").map(({ key }) => key);
  const all = affineBits.flatMap((bits) => groupSizes.map((group) => `${bits}.${group}.float32`));
  expect(float32.sort()).toEqual(all.sort());
  expect(cases.length).toBe(all.length + 4);
});

describe.each(cases)("weights are read in MLX's format $key", ({ key, bits, groupSize, scaleDType }) => {
  const packed = groups[`${key}.weight`];
  const scales = groups[`${key}.scales`];
  const biases = groups[`${key}.biases`];

  test("quantize packs as MLX does, bit for bit", () => {
    const { parts, format } = quantize(weights.to(scaleDType), { bits, groupSize });
    expect(format).toEqual({ bits, groupSize, symmetric: false });
    expect([parts.packed.dtype, parts.packed.shape]).toEqual(["uint32", packed.shape]);
    expect([parts.scales!.dtype, parts.biases!.dtype]).toEqual([scaleDType, scaleDType]);
    expect(hex(parts.scales!)).toBe(hex(scales));
    expect(numbers(parts.biases!)).toEqual(numbers(biases)); // MLX may write 0 instead of -0, or the reverse
    expect(hex(parts.packed)).toBe(hex(packed));
  });

  test.each(places)("dequantize on %s unpacks what MLX packed: q · scale + bias, each operation rounded", (backend) => {
    const format = { bits, groupSize, symmetric: false };
    const w = new QuantizedTensor(format, weights.shape, "float32", { packed, scales, biases });
    const got = numbers(on(backend, () => dequantize(w)));
    const [words, scale, bias] = [packed.dataSync() as Uint32Array, numbers(scales), numbers(biases)];
    const expected = got.map((_, at) => {
      const bit = at * bits; // levels are contiguous, and a row is a whole number of words
      const both = BigInt(words[bit >> 5]) | (BigInt(words[(bit >> 5) + 1] ?? 0) << 32n);
      const level = Number((both >> BigInt(bit & 31)) & BigInt(2 ** bits - 1));
      const group = Math.floor(at / groupSize);
      return Math.fround(Math.fround(scale[group] * level) + bias[group]);
    });
    expect(got).toEqual(expected);
    const values = groups[`${key}.values`];
    if (values) {
      const worst = Math.max(...numbers(values).map((value, at) => Math.abs(value - got[at]) / (Math.abs(value) + 1)));
      expect(worst).toBeLessThan(2 ** -22); // MLX may fuse the product and the sum
    }
  });
});

const every = affineBits.flatMap((bits) =>
  groupSizes.flatMap((groupSize) => [true, false].map((symmetric) => ({ bits, groupSize, symmetric }))),
);

describe.each(every)("$bits bits, groups of $groupSize, symmetric $symmetric", (format) => {
  const w = layer(6, 256);
  const exact = numbers(w);
  const errorOf = (rounding: "nearest" | "leastSquares", scaleDType: ScaleDType): Float64Array => {
    const own = quantize(w, { ...format, rounding, scaleDType });
    return numbers(dequantize(own)).map((value, at) => value - exact[at]);
  };
  const squares = (errors: Float64Array): number => errors.reduce((sum, error) => sum + error * error, 0);

  test("an error is at most half a step, or one step at the end of the range without a level", () => {
    const errors = errorOf("nearest", "float32");
    for (let group = 0; group < exact.length / format.groupSize; group++) {
      const own = exact.subarray(group * format.groupSize, (group + 1) * format.groupSize);
      const [low, high] = [Math.min(...own), Math.max(...own)];
      const extreme = Math.max(-low, high);
      const step = format.symmetric ? extreme / 2 ** (format.bits - 1) : (high - low) / (2 ** format.bits - 1);
      // a symmetric format has one level less on one side; MLX shifts levels so that one of them is 0
      const most = format.symmetric ? step : 1.5 * step;
      const largest = Math.max(
        ...errors.subarray(group * format.groupSize, (group + 1) * format.groupSize).map(Math.abs),
      );
      expect(largest).toBeLessThanOrEqual(most * (1 + 2 ** -16));
    }
  });

  test.each(scaleDTypes)(
    "least squares with scales in %s has a smaller error than rounding to the nearest",
    (scaleDType) => {
      const [fitted, nearest] = [errorOf("leastSquares", scaleDType), errorOf("nearest", scaleDType)].map(squares);
      expect(fitted).toBeLessThanOrEqual(nearest);
      // steps of bfloat16 are too wide to refine the scale of 8 bits
      if (scaleDType !== "bfloat16" || format.bits < 8) expect(fitted).toBeLessThan(nearest);
    },
  );

  test("both backends unpack the same bits, in every dtype", () => {
    for (const scaleDType of scaleDTypes)
      for (const dtype of scaleDTypes) {
        const own = quantize(w, { ...format, scaleDType });
        const [reference, cpu] = places.map((backend) => on(backend, () => dequantize(own, { dtype })));
        expect([scaleDType, dtype, hex(cpu)]).toEqual([scaleDType, dtype, hex(reference)]);
      }
  });
});

test("values that equal a format's levels are kept exactly: (q − zero) · scale", () => {
  for (const backend of places) {
    const data = Array.from({ length: 64 }, (_, at) => (at % 16) * 0.5 - 4);
    const symmetric = quantizeInt4(tensor([data]), { symmetric: true });
    expect(symmetric.parts.scales!.toArray()).toEqual([[0.5]]);
    expect(symmetric.parts.biases).toBeUndefined();
    expect(on(backend, () => dequantizeInt4(symmetric)).toArray()).toEqual([data]);
    const affine = quantizeInt4(tensor([data]).add(4));
    expect(on(backend, () => dequantizeInt4(affine)).toArray()).toEqual([data.map((value) => value + 4)]);
  }
});

test("groups of zeros stay zeros", () => {
  for (const symmetric of [true, false])
    for (const rounding of ["nearest", "leastSquares"] as const) {
      const w = quantize(zeros([2, 64]), { bits: 3, symmetric, rounding });
      expect(dequantize(w).abs().max().item()).toBe(0);
    }
});

describe("groups of invalid sizes are rejected", () => {
  const codeOf = (body: () => unknown): unknown => {
    try {
      return body();
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  test("rows that are not whole groups are rejected", () => {
    expect(() => quantize(ones([2, 96]))).toThrow(ShapeError);
    expect(() => quantize(ones([2, 96]))).toThrow("expected a multiple of 64 values along the last axis");
    expect(quantize(ones([2, 96]), { groupSize: 32 }).shape).toEqual([2, 96]);
  });

  test("unsupported bits and groups are rejected", () => {
    expect(codeOf(() => quantize(ones([1, 64]), { bits: 7 as 8 }))).toBe("invalidOption");
    expect(codeOf(() => quantizeInt4(ones([1, 64]), { groupSize: 16 as 32 }))).toBe("invalidOption");
    expect(codeOf(() => quantizeInt4(ones([1, 64]), { bits: 4 } as object))).toBe("unknownOption");
  });

  test("values that are not finite, and scales beyond their dtype, are rejected", () => {
    expect(codeOf(() => quantize(tensor(Array.from({ length: 64 }, () => Number.NaN))))).toBe("notFinite");
    const large = tensor(Array.from({ length: 64 }, (_, at) => at * 1e6));
    expect(codeOf(() => quantize(large, { scaleDType: "float16" }))).toBe("scaleOverflow");
    expect(quantize(large, { scaleDType: "bfloat16" })).toBeInstanceOf(QuantizedTensor);
  });

  test("another format than the function's is rejected", () => {
    expect(codeOf(() => dequantizeInt4(quantize(ones([1, 64]), { bits: 8 })))).toBe("wrongFormat");
    expect(codeOf(() => dequantizeInt4(quantizeGgml(ones([1, 64]), "q4_0")))).toBe("wrongFormat");
  });
});
