/**
 * Conversions between dtypes, on every instruction set, compared with JavaScript's typed arrays and exact arithmetic.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { configure, cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { check } from "../../../src/backend/cpu/status.ts";
import { nativeTables } from "../../../src/backend/cpu/tables.ts";
import { convertCall } from "../../../src/ops/copy/primitive.ts";
import type { DType } from "../../../src/tensor/dtype.ts";

const { native } = cpuLibrary();
const { isa: initial, isas } = cpuInfo(native);
afterAll(() => configure(native, "isa", initial));

type Bytes = NodeJS.TypedArray;

function convert(from: DType, source: Bytes, to: DType, out: Bytes, count = out.length, offsets = [0, 0]) {
  const [sourceOffset = 0, outOffset = 0] = offsets;
  convertCall("convert", { from, to, fromOffset: sourceOffset, toOffset: outOffset, count }, [source, out]);
  return out;
}

/**
 * Every float32 with these upper bits and a few values of the lower ones: all exponents, ties, near ties, subnormals,
 * NaNs.
 */
function manyFloats(): Float32Array {
  const lower = [0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff];
  const bits = Uint32Array.from({ length: 65_536 * lower.length }, (_, index) => {
    return (((index % 65_536) << 16) | lower[Math.floor(index / 65_536)]) >>> 0;
  });
  return new Float32Array(bits.buffer);
}

const one = new Float32Array(1);
const bitsOfOne = new Uint32Array(one.buffer);

/** The value of a bfloat16. */
function widened(bits: number): number {
  bitsOfOne[0] = (bits << 16) >>> 0;
  return one[0];
}

/** Returns the bfloat16 nearest to a float32, ties to even, by comparing distances in float64. */
function nearestBfloat(value: number): number {
  one[0] = value;
  const below = bitsOfOne[0] >>> 16;
  const above = widened(below + 1);
  const beyond = Number.isFinite(above) ? above : Math.sign(value) * 2 ** 128; // a finite number instead of infinity
  const [down, up] = [Math.abs(value - widened(below)), Math.abs(beyond - value)];
  return down < up || (down === up && below % 2 === 0) ? below : below + 1;
}

/** The first wrong element of a conversion, or nothing: its index, the operand and the result. */
const wrongAt = (index: number, from: ArrayLike<number>, to: ArrayLike<number>): number[] =>
  index < 0 ? [] : [index, from[index], to[index]];

describe.each(isas)("conversions of dtypes on %s", (isa) => {
  const use = () => configure(native, "isa", isa);

  test("every float16 becomes the float32 of its value, and converts back to the same bits", () => {
    use();
    const halves = Uint16Array.from({ length: 65_536 }, (_, bits) => bits);
    const wide = convert("float16", halves, "float32", new Float32Array(65_536)) as Float32Array;
    expect([...wide]).toEqual([...new Float16Array(halves.buffer)]);
    const back = convert("float32", wide, "float16", new Uint16Array(65_536)) as Uint16Array;
    const isSignalling = (bits: number) => (bits & 0x7c00) === 0x7c00 && (bits & 0x3ff) > 0 && (bits & 0x200) === 0;
    expect([...back]).toEqual([...halves].map((bits) => (isSignalling(bits) ? bits | 0x200 : bits)));
  });

  test("float32 rounds to the same float16 as in JavaScript", () => {
    use();
    const floats = manyFloats();
    const halves = new Float16Array(convert("float32", floats, "float16", new Uint16Array(floats.length)).buffer);
    const wanted = Float16Array.from(floats);
    const wrong = floats.findIndex((_, index) => !Object.is(halves[index], wanted[index]));
    expect(wrongAt(wrong, floats, halves)).toEqual([]);
  });

  test("float32 rounds to the nearest bfloat16, ties to even, and NaN stays NaN", () => {
    use();
    const floats = manyFloats();
    const out = convert("float32", floats, "bfloat16", new Uint16Array(floats.length)) as Uint16Array;
    const isNotANumber = (bits: number) => (bits & 0x7f80) === 0x7f80 && (bits & 0x7f) > 0;
    const isRight = (value: number, bits: number) =>
      Number.isNaN(value)
        ? isNotANumber(bits)
        : bits === (Number.isFinite(value) ? nearestBfloat(value) : bits & 0xff80);
    const wrong = floats.findIndex((value, index) => !isRight(value, out[index]));
    expect(wrongAt(wrong, floats, out)).toEqual([]);
    const wide = convert("bfloat16", out, "float32", new Float32Array(out.length));
    expect([...new Uint32Array(wide.buffer)].every((bits, index) => bits >>> 16 === out[index])).toBe(true);
  });

  test("floats truncate to integers and saturate; NaN becomes 0", () => {
    use();
    const values = [0, -0.9, 0.9, 1.5, -1.5, 127.9, 128, 255.5, 256, -128.9, -129, 2 ** 31 - 0.5, 2 ** 31, 2 ** 32 + 3];
    const beyond = [-(2 ** 31) - 1, 2 ** 53 + 2, 2 ** 63, -(2 ** 63) - 2048, Number.NaN, Infinity, -Infinity];
    const source = Float64Array.from([...values, ...beyond]);
    const count = source.length;
    const clamped = (value: number, least: bigint, most: bigint): bigint => {
      if (Number.isNaN(value)) return 0n;
      const whole = Number.isFinite(value) ? BigInt(Math.trunc(value)) : value > 0 ? most : least;
      return whole < least ? least : whole > most ? most : whole;
    };
    const as = (out: Bytes, to: DType, from: DType, input: Bytes) =>
      Array.from(convert(from, input, to, out) as unknown as ArrayLike<number | bigint>, BigInt);
    const ranges = [
      [new BigInt64Array(count), "int64", -(2n ** 63n), 2n ** 63n - 1n],
      [new Int32Array(count), "int32", -(2n ** 31n), 2n ** 31n - 1n],
      [new Uint32Array(count), "uint32", 0n, 2n ** 32n - 1n],
      [new Int8Array(count), "int8", -128n, 127n],
      [new Uint8Array(count), "uint8", 0n, 255n],
    ] as const;
    const narrow = Float32Array.from(source);
    for (const [out, to, least, most] of ranges) {
      expect(as(out, to, "float64", source)).toEqual(Array.from(source, (value) => clamped(value, least, most)));
      expect(as(out, to, "float32", narrow)).toEqual(Array.from(narrow, (value) => clamped(value, least, most)));
    }
    const truth = as(new Uint8Array(count), "bool", "float64", source);
    expect(truth).toEqual(Array.from(source, (value) => (value === 0 ? 0n : 1n)));
  });

  test("integers become the nearest float, and bool becomes 0 or 1", () => {
    use();
    const integers = BigInt64Array.from([0n, -1n, 2n ** 24n + 1n, 2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n]);
    const as = (out: Bytes, to: DType) => [...(convert("int64", integers, to, out) as Float64Array)];
    expect(as(new Float64Array(6), "float64")).toEqual([...integers].map(Number));
    expect(as(new Float32Array(6), "float32")).toEqual([0, -1, 2 ** 24, 2 ** 53, -(2 ** 63), 2 ** 63]);
    expect(as(new Uint8Array(6), "bool")).toEqual([0, 1, 1, 1, 1, 1]);
    const truth = Uint8Array.from([0, 1, 1]);
    expect([...(convert("bool", truth, "int32", new Int32Array(3)) as Int32Array)]).toEqual([0, 1, 1]);
  });

  test("offsets select the elements, and their neighbors are unchanged", () => {
    use();
    for (const count of [0, 1, 7, 16, 33, 100_003]) {
      const source = Float32Array.from({ length: count + 3 }, (_, index) => index % 1000);
      const out = new Float16Array(count + 4).fill(-7);
      convert("float32", source, "float16", new Uint16Array(out.buffer), count, [3, 2]);
      const wanted = [-7, -7, ...source.subarray(3), -7, -7];
      expect(out.findIndex((value, index) => value !== wanted[index])).toBe(-1);
    }
  });
});

test("an invalid dtype is rejected", () => {
  const block = new Float64Array([10, 1, 0, 0, 1, 8, 8]); // the last two are the operands' bytes
  const { ordinal } = nativeTables().functions["convert"];
  expect(() =>
    check(native, native.orchard_cpu_run3(ordinal, block, block.byteLength, block, block, block), "convert"),
  ).toThrow("[convert] there is no dtype with the ordinal 10");
});
