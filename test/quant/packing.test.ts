/**
 * Formats that the `gguf` package only unpacks, packed by least squares. `dequantizeGgml` unpacks the result, and other
 * tests compare it with the package bit for bit.
 */
import { describe, expect, test } from "bun:test";
import { dequantizeGgml, fromArray, quantizeGgml, type Tensor } from "../../src/index.ts";
import { bytesIn } from "../io/bytes.ts";
import { blocks, on } from "./fixtures.ts";

const VALUES = 256;
type Fitted = "q2_K" | "q3_K" | "q4_K" | "q5_K" | "q6_K" | "iq4_nl";

/**
 * The layout of a format: values of a sub-block, its lowest and highest level, the largest integer scale, and whether
 * sub-blocks have a minimum.
 */
const layouts = {
  q2_K: { size: 16, low: 0, high: 3, scales: 15, raised: true },
  q3_K: { size: 16, low: -4, high: 3, scales: 31, raised: false },
  q4_K: { size: 32, low: 0, high: 15, scales: 63, raised: true },
  q5_K: { size: 32, low: 0, high: 31, scales: 63, raised: true },
  q6_K: { size: 16, low: -32, high: 31, scales: 127, raised: false },
} as const;
type Layout = (typeof layouts)[keyof typeof layouts];

/** Normal numbers (Box–Muller), the same in every run. */
function normal(count: number, seed: number): Float32Array {
  let state = seed >>> 0;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  return Float32Array.from(
    { length: count },
    () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()),
  );
}

/** Rounds each sub-block by its extremes, with exact scales: the simple method, which least squares must beat. */
function plain(values: Float32Array, { size, low, high, raised }: Layout): Float64Array {
  const out = new Float64Array(values.length);
  for (let from = 0; from < values.length; from += size) {
    const own = [...values.subarray(from, from + size)];
    const [least, most] = [Math.min(0, ...own), Math.max(0, ...own)];
    const scale = raised ? (most - least) / high : Math.max(-least, most) / high;
    const offset = raised ? least : 0;
    for (let i = 0; i < size; i++) {
      const level = scale === 0 ? 0 : Math.min(Math.max(Math.round((own[i] - offset) / scale), low), high);
      out[from + i] = level * scale + offset;
    }
  }
  return out;
}

const squaredError = (got: ArrayLike<number>, exact: Float32Array): number =>
  exact.reduce((sum, value, at) => sum + (value - got[at]) ** 2, 0);

function unpacked(values: Float32Array, format: Fitted): Float32Array {
  const w = quantizeGgml(fromArray(values).reshape([-1, VALUES]), format);
  return on("reference", () => dequantizeGgml(w)).dataSync() as Float32Array;
}

const formats = Object.keys(layouts) as (keyof typeof layouts)[];

describe.each(formats)("quantizeGgml %s has a small error", (format) => {
  const layout = layouts[format];

  test.each([1, 0.02, 30])(
    "the error is smaller than rounding by the extremes, for normal numbers times %p",
    (size) => {
      const values = normal(16 * VALUES, 7).map((value) => value * size);
      expect(squaredError(unpacked(values, format), values)).toBeLessThan(squaredError(plain(values, layout), values));
    },
  );

  test("each value is within a step of its sub-block, plus the error of its integer scale", () => {
    const values = normal(16 * VALUES, 11);
    const got = unpacked(values, format);
    const { size, high, raised, scales } = layout;
    for (let block = 0; block < values.length; block += VALUES) {
      const own = values.subarray(block, block + VALUES);
      const spread = Math.max(...own) - Math.min(...own, 0);
      // the error of an integer scale is at most half of the largest scale divided by the largest integer
      const lost = spread / scales;
      for (let i = 0; i < VALUES; i += size) {
        const sub = [...own.subarray(i, i + size)];
        const [least, most] = [Math.min(0, ...sub), Math.max(0, ...sub)];
        const step = raised ? (most - least) / high : Math.max(-least, most) / high;
        const errors = sub.map((value, at) => Math.abs(value - got[block + i + at]));
        expect(Math.max(...errors)).toBeLessThanOrEqual(step + lost);
      }
    }
  });
});

test("iq4_nl has a smaller error on normal numbers than the even levels of q4_0", () => {
  const values = normal(16 * VALUES, 7);
  const w = quantizeGgml(fromArray(values), "q4_0");
  const even = dequantizeGgml(w).dataSync() as Float32Array;
  expect(squaredError(unpacked(values, "iq4_nl"), values)).toBeLessThan(0.8 * squaredError(even, values));
});

describe.each([...formats, "iq4_nl"] as Fitted[])("packing of super-blocks, %s", (format) => {
  const rows = { zeros: new Float32Array(VALUES), "minus zeros": new Float32Array(VALUES).fill(-0) };

  test.each(Object.entries(rows))("%s is packed exactly", (_, values) => {
    expect(unpacked(values, format).every((value) => value === 0)).toBe(true);
  });

  test("difficult inputs are packed: constants, one large value, numbers near zero", () => {
    const w = blocks["weights"] as Tensor;
    const exact = w.dataSync() as Float32Array;
    const got = on("reference", () => dequantizeGgml(quantizeGgml(w, format))).dataSync() as Float32Array;
    for (let row = 0; row < w.shape[0]; row++) {
      const own = exact.subarray(row * VALUES, (row + 1) * VALUES);
      // a block of zeros is always possible, so no error may be larger than its error
      const error = squaredError(got.subarray(row * VALUES, (row + 1) * VALUES), own);
      expect([row, error <= squaredError(new Float32Array(VALUES), own)]).toEqual([row, true]);
    }
  });

  test("packing gives the same bytes each time", () => {
    const w = fromArray(normal(2 * VALUES, 3)).reshape([2, VALUES]);
    expect(bytesIn(quantizeGgml(w, format).parts.packed)).toEqual(bytesIn(quantizeGgml(w, format).parts.packed));
  });
});
