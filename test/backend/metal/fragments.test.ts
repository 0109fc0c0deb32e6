/**
 * Products of small integers by fragments and by matrices of different types are exact, zeros included: on an NVIDIA
 * GPU, tensor cores multiply floats in parts of 8 bits.
 */
import { describe, expect, test } from "bun:test";
import { environmentFlag } from "../../../src/core/environment.ts";
import { metalKernel } from "../../../src/index.ts";
import { Random } from "../../ops/samples.ts";
import { seed } from "../../support/some.ts";

const [ROWS, COLUMNS, DEPTH] = [16, 8, 16];

/** Both kernels compute out = a b, where a is 16 x 16 and b is 16 x 8. */
const kernels = {
  "fragments of floats": `
  Sums upper = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  Sums lower = upper;
  Sums left[4];
  Sums right[2];
  for (int i = 0; i < 4; i += 1) simdgroup_load(left[i], a + i % 2 * 128 + i / 2 * 8, 16);
  for (int i = 0; i < 2; i += 1) simdgroup_load(right[i], b + i * 64, 8);
  orchard::fragment_multiply_accumulate(
      upper, lower, left[0], left[1], left[2], left[3], right[0], right[1]);
  simdgroup_store(upper, out, 8);
  simdgroup_store(lower, out + 64, 8);`,
  "floats times halfs": `
  for (int high = 0; high < 2; high += 1) {
    Sums sums = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (int k = 0; k < 2; k += 1) {
      Sums left;
      Sums wide;
      simdgroup_matrix<half, 8, 8> right;
      simdgroup_load(left, a + high * 128 + k * 8, 16);
      simdgroup_load(wide, b + k * 64, 8);
      for (int i = 0; i < 2; i += 1) right.thread_elements()[i] = half(wide.thread_elements()[i]);
      simdgroup_multiply_accumulate(sums, left, right, sums);
    }
    simdgroup_store(sums, out + high * 64, 8);
  }`,
} as const;

const sourceOf = (body: string): string => `#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
typedef simdgroup_matrix<float, 8, 8> Sums;
kernel void product(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]],
                    device float* out [[buffer(2)]]) {${body}
}`;

const isTested = process.platform === "linux" && !environmentFlag("ORCHARD_SKIP_METAL");

describe.skipIf(!isTested)("products of small integers are exact", () => {
  test.each(Object.entries(kernels))("by %s, also beside NaN and infinity", (_, body) => {
    using kernel = metalKernel({ name: "product", source: sourceOf(body) });
    const random = new Random(seed);
    let zeros = 0;
    for (const loud of [undefined, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
      for (let round = 0; round < 8; round++) {
        const draw = (count: number) => Float32Array.from({ length: count }, () => random.integer(-3, 3));
        const [a, b] = [draw(ROWS * DEPTH), draw(DEPTH * COLUMNS)];
        if (loud !== undefined) for (const side of [a, b]) side[random.integer(0, side.length - 1)] = loud;
        const { out } = kernel.run(
          { a, b, out: new Float32Array(ROWS * COLUMNS) },
          { grid: 32, threadgroup: 32 },
        ).outputs;
        const expected = Array.from(out, (_, at) => {
          const [row, column] = [Math.floor(at / COLUMNS), at % COLUMNS];
          let sum = 0;
          for (let k = 0; k < DEPTH; k++) sum += a[row * DEPTH + k] * b[k * COLUMNS + column];
          return sum + 0;
        });
        zeros += expected.filter((value) => value === 0).length;
        expect(Array.from(out, (value) => value + 0)).toEqual(expected);
      }
    expect(zeros).toBeGreaterThan(40);
  });
});
