import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  bfloatBits,
  byteLengthOf,
  dataTypeOf,
  encodeScalar,
  type ScalarValue,
} from "../../../src/backend/metal/scalars.ts";

const hex = (bytes: Uint8Array | string) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("hex"));
const encode = (raw: number, value: ScalarValue) => hex(encodeScalar(dataTypeOf(raw)!, value));

describe("numbers in Metal's layout", () => {
  test.each([
    [3, 1.5, "0000c03f"],
    [16, 1.5, "003e"],
    [121, 1.5, "c03f"],
    [29, -2, "feffffff"],
    [33, 4294967295, "ffffffff"],
    [41, 513, "0102"],
    [45, -1, "ff"],
    [53, true, "01"],
    [81, -1n, "ffffffffffffffff"],
    [85, 2n ** 64n - 1n, "ffffffffffffffff"],
    [4, [1, 2], "0000803f00000040"],
    [5, [1, 2, 3], "0000803f000000400000404000000000"],
  ] as [number, ScalarValue, string][])("MTLDataType %p of %p is %p", (raw, value, wanted) => {
    expect(encode(raw, value)).toBe(wanted);
  });

  test.each([
    [29, 2 ** 31, "-2147483648 to 2147483647"],
    [33, -1, "0 to 4294967295"],
    [49, 256, "0 to 255"],
    [29, 1.5, "expected an integer for int, got 1.5"],
    [53, 1, "true or false"],
    [3, true, "expected a number for float, got true"],
    [4, [1], "expected 2 value(s) for float2, got 1"],
  ] as [number, ScalarValue, string][])("MTLDataType %p rejects %p", (raw, value, reason) => {
    expect(encode(raw, value)).toContain(reason);
  });

  test("structs, textures and pointers are not numbers", () => {
    for (const raw of [0, 1, 2, 58, 59, 60, 115]) expect(dataTypeOf(raw)).toBeUndefined();
    expect(byteLengthOf({ scalar: "half", lanes: 3 })).toBe(8);
  });

  test("bfloat rounds to the nearest, ties to even", () => {
    const view = new DataView(new ArrayBuffer(4));
    const widened = (bits: number) => {
      view.setUint32(0, bits << 16);
      return view.getFloat32(0);
    };
    fc.assert(
      fc.property(
        fc.float({ noNaN: true, noDefaultInfinity: true, max: Math.fround(1e38), min: Math.fround(-1e38) }),
        (value) => {
          const bits = bfloatBits(value);
          const error = Math.abs(widened(bits) - value);
          const neighbors = [bits - 1, bits + 1].filter((candidate) => candidate >= 0 && candidate <= 0xffff);
          for (const other of neighbors) {
            const otherError = Math.abs(widened(other) - value);
            if (Number.isNaN(otherError)) continue;
            expect(error).toBeLessThanOrEqual(otherError);
            if (error === otherError && error > 0) expect(bits & 1).toBe(0);
          }
        },
      ),
    );
    expect(Number.isNaN(widened(bfloatBits(Number.NaN)))).toBe(true);
    expect(widened(bfloatBits(Number.POSITIVE_INFINITY))).toBe(Number.POSITIVE_INFINITY);
  });
});
