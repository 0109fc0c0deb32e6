/** A matrix stored by columns times a column, and a row times a matrix: each lane has four rows (or columns). */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { whyUnavailable } from "../../../src/backend/registry.ts";
import { matmul, slice, tensor, toDType } from "../../../src/ops/index.ts";
import type { FloatDType } from "../../../src/tensor/dtype.ts";
import { checked, testVariants } from "../../linalg/variants.ts";
import { Random } from "../samples.ts";

const UNIT = { float32: 2 ** -24, float16: 2 ** -11 } as const;

/**
 * [k, columns], just below and above the numbers that a lane, a few lanes, a SIMD-group and a threadgroup process at a
 * time.
 */
const sizes = [
  [1, 5],
  [7, 3],
  [8, 4],
  [31, 32],
  [33, 33],
  [257, 36],
  [600, 31],
  [1100, 70],
] as const;

/** The row times the matrix, with `margin` unused columns before and after. */
function product(k: number, n: number, margin: number, dtype: FloatDType) {
  const random = new Random(k * 31 + n);
  const draw = (count: number) => Array.from({ length: count }, () => Math.fround(random.next() * 2 - 1));
  return withStrict(true, () =>
    withBackend("metal", () => {
      const wide = n + 2 * margin;
      const whole = toDType(tensor(draw(k * wide), { shape: [k, wide] }), dtype);
      const row = toDType(tensor(draw(k), { shape: [1, k] }), dtype);
      const matrix = slice(whole, { dim: 1, start: margin, end: margin + n });
      const values = Array.from(toDType(whole, "float32").dataSync() as Float32Array);
      const left = Array.from(toDType(row, "float32").dataSync() as Float32Array);
      const at = (i: number, j: number) => values[i * wide + margin + j];
      return { got: Array.from(toDType(matmul(row, matrix), "float32").dataSync() as Float32Array), left, at };
    }),
  );
}

function check(k: number, n: number, margin: number, dtype: "float32" | "float16"): void {
  const { got, left, at } = product(k, n, margin, dtype);
  expect(got).toHaveLength(n);
  for (const [j, value] of got.entries()) {
    const terms = left.map((x, i) => x * at(i, j));
    const exact = terms.reduce((sum, term) => sum + term, 0);
    const magnitude = terms.reduce((sum, term) => sum + Math.abs(term), 0);
    // The number of roundings in a sum: at most 8 in a block, k / 256 blocks, 2 exchanges, 8 SIMD-groups, the parts,
    // and the final rounding.
    const bound = (24 + k / 256) * UNIT.float32 * magnitude + UNIT[dtype] * Math.abs(exact) + 2 ** -26;
    if (!(Math.abs(value - exact) <= bound)) throw new Error(`${k} x ${n}, column ${j}: ${value}, expected ${exact}`);
  }
}

describe.if(whyUnavailable("metal") === undefined)("a row times a matrix on metal is correct", () => {
  // A margin of 4 columns keeps rows at multiples of 4 elements if n is a multiple of 4, so that elements are read by
  // fours.
  test.each(sizes)("%d x %d is the sum of its products, read by fours or one by one", (k, n) => {
    for (const dtype of ["float32", "float16"] as const)
      for (const margin of [0, 1, 4]) checked(() => check(k, n, margin, dtype));
  });

  test("NaN in a column stays in it", () => {
    const values = Array.from({ length: 40 * 36 }, (_, index) => (index % 36 === 5 ? Number.NaN : 1));
    const out = withStrict(true, () =>
      withBackend("metal", () =>
        matmul(tensor(new Array(40).fill(1), { shape: [1, 40] }), tensor(values, { shape: [40, 36] })).dataSync(),
      ),
    );
    expect(Array.from(out as Float32Array)).toEqual(
      Array.from({ length: 36 }, (_, column) => (column === 5 ? Number.NaN : 40)),
    );
  });

  testVariants(import.meta.path, "1100 x 70 is the sum of its products");
});
