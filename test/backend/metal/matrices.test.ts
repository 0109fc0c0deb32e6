/**
 * simdgroup_matrix: products, loads, stores, and the elements that a lane sees, which have the layout of Apple's GPUs
 * on every device. The matrices contain small integers, so every result is exact in each type.
 */
import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { DeviceBuffer } from "../../../src/backend/metal/buffer.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { metalKernel } from "../../../src/backend/metal/kernel.ts";
import { environmentFlag } from "../../../src/core/environment.ts";

const source = (a: string, b: string, d: string) => `#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
kernel void products(device const ${a}* a [[buffer(0)]], device const ${b}* b [[buffer(1)]],
                     device ${d}* out [[buffer(2)]], constant uint& count [[buffer(3)]],
                     constant bool& transposed [[buffer(4)]], uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_matrix<${a}, 8, 8> left;
  simdgroup_matrix<${b}, 8, 8> right;
  simdgroup_matrix<${d}, 8, 8> sum = make_filled_simdgroup_matrix<${d}, 8, 8>(1), diagonal(${d}(3)), lanes, last;
  for (uint k = 0; k < count; k++) {
    simdgroup_load(left, a + k * 64, 8);
    simdgroup_load(right, b + k * 64, 8, ulong2(0), transposed);
    simdgroup_multiply_accumulate(sum, left, right, sum);
  }
  simdgroup_store(sum, out, 8);
  simdgroup_store(diagonal, out + 64, 8);
  for (int i = 0; i < 2; i++) lanes.thread_elements()[i] = ${d}(lane * 2 + i);
  simdgroup_store(lanes, out + 128, 8);
  left.thread_elements()[0] += ${a}(1);
  right.thread_elements()[1] += ${b}(2);
  simdgroup_multiply(last, left, right);
  last.thread_elements()[1] += ${d}(lane);
  simdgroup_store(last, out + 192, 8, ulong2(0), true);
}`;

/** The row and the first column of a lane's two elements (the formula of mrt/simdgroup_matrix.h). */
function positionOf(lane: number): readonly [number, number] {
  const quad = lane >> 2;
  return [(quad & 4) + ((lane >> 1) & 3), (quad & 2) * 2 + (lane & 1) * 2];
}

type Matrix = number[]; // 64 elements, row-major
const entries = Array.from({ length: 64 }, (_, at) => at);
const transpose = (m: Matrix): Matrix => entries.map((at) => m[(at % 8) * 8 + (at >> 3)]);
const product = (a: Matrix, b: Matrix): Matrix =>
  entries.map((at) => Array.from({ length: 8 }, (_, k) => a[(at >> 3) * 8 + k] * b[k * 8 + (at % 8)]).reduce(plus));
const plus = (x: number, y: number): number => x + y;

/** Adds `value(lane)` to element `which` of each lane. */
function addToLanes(m: Matrix, which: number, value: (lane: number) => number): Matrix {
  const changed = [...m];
  for (let lane = 0; lane < 32; lane++) {
    const [row, column] = positionOf(lane);
    changed[row * 8 + column + which] += value(lane);
  }
  return changed;
}

function wanted(lefts: Matrix[], rights: Matrix[], transposed: boolean): number[] {
  const turned = transposed ? rights.map(transpose) : rights;
  const sum = lefts.reduce((total, left, k) => product(left, turned[k]).map((x, at) => x + total[at]), ones);
  const lanes = addToLanes(
    addToLanes(zeros, 0, (lane) => lane * 2),
    1,
    (lane) => lane * 2 + 1,
  );
  const left = addToLanes(lefts.at(-1)!, 0, () => 1);
  const right = addToLanes(turned.at(-1)!, 1, () => 2);
  const last = addToLanes(product(left, right), 1, (lane) => lane);
  return [...sum, ...entries.map((at) => (at % 9 === 0 ? 3 : 0)), ...lanes, ...transpose(last)];
}
const [zeros, ones] = [entries.map(() => 0), entries.map(() => 1)];

const bits = (values: number[]) =>
  Uint16Array.from(values, (value) => new Uint32Array(Float32Array.of(value).buffer)[0] >>> 16);
const types = {
  half: {
    to: (values: number[]) => Float16Array.from(values),
    from: (bytes: Uint8Array) => new Float16Array(bytes.buffer),
  },
  float: {
    to: (values: number[]) => Float32Array.from(values),
    from: (bytes: Uint8Array) => new Float32Array(bytes.buffer),
  },
  bfloat: {
    to: bits,
    from: (bytes: Uint8Array) =>
      Float32Array.from(new Uint16Array(bytes.buffer), (x) => new Float32Array(Uint32Array.of(x << 16).buffer)[0]),
  },
};
type Name = keyof typeof types;

describe.skipIf(environmentFlag("ORCHARD_SKIP_METAL"))("products of simdgroup_matrix match Apple's layout", () => {
  const cases: [Name, Name, Name][] = [
    ["half", "half", "float"],
    ["half", "half", "half"],
    ["bfloat", "bfloat", "float"],
    ["bfloat", "bfloat", "bfloat"],
    ["float", "float", "float"],
    ["half", "float", "float"],
  ];
  // A checker that an earlier file has turned on finds that the kernels depend on the layout, as they should.
  afterAll(() => void metalContext().report({ clear: true }));

  test.each(cases)("%s times %s is %s, in the layout of Apple's GPUs", (a, b, d) => {
    using kernel = metalKernel({ name: "products", source: source(a, b, d) });
    const matrix = fc.array(fc.integer({ min: -2, max: 2 }), { minLength: 64, maxLength: 64 });
    const matrices = fc.array(fc.tuple(matrix, matrix), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(matrices, fc.boolean(), (pairs, transposed) => {
        const lefts = pairs.map(([left]) => left);
        const rights = pairs.map(([, right]) => right);
        using left = new DeviceBuffer(types[a].to(lefts.flat()));
        using right = new DeviceBuffer(types[b].to(rights.flat()));
        using out = new DeviceBuffer(4 * 64 * (d === "float" ? 4 : 2), { zero: true });
        kernel.encode({ a: left, b: right, out, count: pairs.length, transposed }, { grid: 32, threadgroup: 32 });
        const got = Array.from(types[d].from(out.read(Uint8Array).slice()));
        expect(got).toEqual(wanted(lefts, rights, transposed));
      }),
      { numRuns: 5, seed: 39 },
    );
  });
});
