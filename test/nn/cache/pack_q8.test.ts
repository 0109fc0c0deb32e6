/** A cache in q8_0 stores exactly the bits that `quantizeGgml` packs. */
import { expect, test } from "bun:test";
import { empty, Generator, quantizeGgml, randn, type Tensor, tensor, withBackend } from "../../../src/index.ts";
import { packQ8Call, packQ8Into } from "../../../src/quant/pack_q8.ts";

const packed = (x: Tensor) => Array.from(quantizeGgml(x, "q8_0").parts.packed.dataSync(), Number);

function native(x: Tensor): number[] | undefined {
  const [a, b, c, columns] = x.shape as readonly [number, number, number, number];
  const out = empty([a, b, c, (columns / 32) * 34], { dtype: "uint8" });
  return withBackend("cpu", () => packQ8Into(out, x)) ? Array.from(out.dataSync(), Number) : undefined;
}

test.each([0, -3, 12, 30, -45, -128, -146])("strided values around 2^%d are packed as by quantizeGgml", (exponent) => {
  const generator = new Generator(exponent + 200);
  const x = randn([2, 5, 3, 96], { generator })
    .mul(2 ** (exponent / 2))
    .mul(2 ** (exponent / 2)) as Tensor;
  const own = x.permute([1, 0, 2, 3]).narrow(3, 32, 64);
  expect(native(own)).toEqual(exponent === 30 ? undefined : packed(own));
});

test("levels between two bytes, zeros and the largest scale are packed as by quantizeGgml", () => {
  const row = Array.from({ length: 32 }, (_, at) => (at === 0 ? 127 : at - 16.5));
  const rows = [row, row.map(() => 0), row.map(() => -0), row.map((value) => value * 65_504)];
  const x = tensor(rows.flat(), { shape: [1, 4, 1, 32] });
  expect(native(x)).toEqual(packed(x));
});

test("values that are not finite are passed to quantizeGgml, whose error names them", () => {
  for (const value of [NaN, Infinity, -Infinity, 127 * 65_520]) {
    const x = tensor([...new Array(31).fill(1), value], { shape: [1, 1, 1, 32] });
    expect(native(x)).toBeUndefined();
    expect(() => packed(x)).toThrow(/finite values|overflows float16/);
  }
});

test("a call that would access memory outside its operands is rejected", () => {
  const values = { sizes: [1, 1, 2], strides: [0, 0, 32], columns: 32, offset: 0, outOffset: 0 };
  const [x, out] = [new Float32Array(64), new Uint8Array(68)];
  packQ8Call("pack", values, [x, out]);
  const refused = (own: Partial<typeof values>) => () => packQ8Call("pack", { ...values, ...own }, [x, out]);
  expect(refused({ sizes: [1, 1, 3] })).toThrow(/operand 0 \(x\)/);
  expect(refused({ sizes: [1, 2, 2] })).toThrow(/operand 1 \(output\)/);
  expect(refused({ outOffset: 1 })).toThrow(/operand 1 \(output\)/);
  expect(refused({ columns: 16 })).toThrow(/columns in blocks of 32/);
});
