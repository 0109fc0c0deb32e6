/** Histograms and counts: elements on bounds and beyond them, views, weights, and more elements than one part has. */
import { describe, expect, test } from "bun:test";
import {
  bincount,
  type DType,
  histc,
  histogram,
  slice,
  type Tensor,
  tensor,
  withBackend,
  withStrict,
} from "../../../src/index.ts";
import { tested } from "../run.ts";
import { Random, rounder } from "../samples.ts";

const list = (x: Tensor): number[] => Array.from(x.dataSync() as ArrayLike<number | bigint>, Number);

/** The weight of the elements between each two bounds. */
function counted(x: readonly number[], edges: readonly number[], weights?: readonly number[]): number[] {
  const last = edges.length - 1;
  return edges.slice(0, last).map((edge, bin) =>
    x.reduce((total, value, at) => {
      const isIn = value >= edge && (value < edges[bin + 1] || (bin === last - 1 && value === edges[last]));
      return isIn ? total + (weights?.[at] ?? 1) : total;
    }, 0),
  );
}

describe.each(tested)("histograms on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));
  const special = [Number.NaN, Infinity, -Infinity, -0, 0, 4, 4.0000005, -1e-30, 0.5, 1, 1.5, 3.9999998, 2, 2, 2, 3];

  test("elements on bounds, beyond them, and NaN are counted as in PyTorch", () =>
    on(() => {
      const x = special.map(Math.fround);
      expect(list(histc(tensor(special), 8, 0, 4))).toEqual(counted(x, [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]));
      // 0.1 is not exact in float32: elements next to a multiple of it belong to the bin of the stored bounds
      const tenths = Array.from({ length: 41 }, (_, at) => Math.fround((at * 0.4) / 40));
      const edges = Array.from({ length: 9 }, (_, at) => Math.fround((at * 0.4) / 8));
      expect(list(histogram(tensor(tenths), 8, { range: [0, 0.4] }).hist)).toEqual(counted(tenths, edges));
      const uneven = [-2, -1e-30, 0, 0.5, 2, 3.5, 100].map(Math.fround);
      expect(list(histogram(tensor(special), tensor(uneven)).hist)).toEqual(counted(x, uneven));
      expect(list(histogram(tensor([]), 4).binEdges)).toEqual([0, 0.25, 0.5, 0.75, 1]);
    }));

  test("elements at and next to each bound are counted in the right bin despite rounding", () =>
    on(() => {
      for (const [first, last, bins] of [
        [-1, 1, 10],
        [0.1, 0.7, 30],
      ] as const) {
        const edges = Array.from({ length: bins + 1 }, (_, at) =>
          Math.fround(at === bins ? last : first + ((last - first) * at) / bins),
        );
        const x = Float32Array.from(edges.flatMap((edge) => [edge, edge, edge]));
        const bits = new Int32Array(x.buffer);
        for (let at = 0; at < bits.length; at += 3) {
          bits[at] -= 1;
          bits[at + 2] += 1;
        }
        expect(list(histc(tensor(x), bins, first, last))).toEqual(counted([...x], edges));
      }
    }));

  test("drawn elements are counted between the stored bounds, also where these coincide", () =>
    on(() => {
      const random = new Random(5);
      for (const dtype of backend === "metal" ? (["float32"] as const) : (["float32", "float64"] as const))
        for (const width of [2, 2 ** -20, 2 ** -22]) {
          const bins = random.integer(50, 70); // more than the different bounds of the last width in float32
          const round = rounder(dtype);
          const edges = Array.from({ length: bins + 1 }, (_, at) => round(1 + (width * at) / bins));
          const drawn = Array.from({ length: 700 }, () => round(1 + (random.next() * 1.2 - 0.1) * width));
          const x = [...drawn, Number.NaN, ...edges];
          const strided = slice(
            tensor(
              x.flatMap((value) => [value, 1]),
              { dtype },
            ),
            { dim: 0, step: 2 },
          );
          for (const each of [tensor(x, { dtype }), strided])
            expect(list(histc(each, bins, 1, 1 + width))).toEqual(counted(x, edges));
        }
    }));

  test("views, 16-bit floats, and equal bounds are accepted", () =>
    on(() => {
      const x = slice(tensor([9, 1, 9, 2, 9, 3, 9, 4]), { dim: 0, start: 1, step: 2 });
      const weight = slice(tensor([0, 2, 0, 4, 0, 8, 0, 16]), { dim: 0, start: 1, step: 2 });
      expect(list(histogram(x, 3, { weight }).hist)).toEqual([2, 4, 24]);
      expect(list(histogram(x, 3, { weight, density: true }).hist)).toEqual([2 / 30, 4 / 30, 24 / 30].map(Math.fround));
      for (const dtype of ["float16", "bfloat16"] as const) {
        const halves = tensor([1, 2, 2.5, 3, 4], { dtype });
        expect(list(histc(halves, 3, 1, 4))).toEqual([1, 2, 2]);
        expect(list(histogram(halves, 3, { weight: halves }).hist)).toEqual([1, 4.5, 7]);
      }
      const large = tensor([1e20, 1e20]);
      expect(list(histc(large, 4)).reduce((total, own) => total + own, 0)).toBe(2);
    }));

  test("integers are counted, and their weights added", () =>
    on(() => {
      const x = tensor([3n, 1n, 3n, 0n, 3n]);
      expect(list(bincount(x))).toEqual([1, 1, 0, 3]);
      expect(list(bincount(x, undefined as never, 6))).toEqual([1, 1, 0, 3, 0, 0]);
      expect(list(bincount(slice(x, { dim: 0, step: 2 })))).toEqual([0, 0, 0, 3]);
      expect(list(bincount(tensor([2, 0], { dtype: "uint8" }), tensor([0.5, 4])))).toEqual([4, 0, 0.5]);
      expect(() => list(bincount(tensor([2n, -1n])))).toThrow("expected indices of 0 to 2, got -1 at [1]");
    }));

  // Metal has no float64
  test.skipIf(backend === "metal")("sums of weights are float32 for float32, and float64 otherwise", () =>
    on(() => {
      const weighed = (dtype: DType) => bincount(tensor([3n, 1n, 3n, 3n]), tensor([1, 0, 1, 1], { dtype }));
      for (const dtype of ["int64", "bool", "bfloat16", "float32"] as const) {
        expect(weighed(dtype).dtype as DType).toBe(dtype === "float32" ? "float32" : "float64");
        expect(list(weighed(dtype))).toEqual([0, 0, 0, 3]);
      }
      // sums are not rounded to the dtype: 2048 + 1 would be 2048 in float16, and 2²⁴ + 1 would be 2²⁴ in float32
      expect(list(bincount(tensor([0n, 0n]), tensor([2048, 1], { dtype: "float16" })))).toEqual([2049]);
      expect(list(bincount(tensor([0n, 0n]), tensor([2 ** 24, 1], { dtype: "int32" })))).toEqual([2 ** 24 + 1]);
    }),
  );

  test("elements that are divided into parts, one per task, are all counted", () =>
    on(() => {
      // 32 parts on cpu begin at 2¹⁵ elements each; the software device would take long for so many
      const x = Float32Array.from({ length: backend === "metal" ? 3000 : 100_000 }, (_, at) => Math.sin(at) * 2.9);
      const weight = Float32Array.from(x, (_, at) => (at % 7) / 7);
      const edges = Array.from({ length: 51 }, (_, at) => Math.fround(-2 + (at * 4) / 50));
      const bins = new Array<number>(50).fill(0);
      const sums = new Array<number>(50).fill(0);
      for (const [at, value] of x.entries()) {
        const bin = edges.findLastIndex((edge) => edge <= value);
        if (bin < 0 || value > 2) continue;
        bins[Math.min(bin, 49)] += 1;
        sums[Math.min(bin, 49)] += weight[at];
      }
      expect(list(histc(tensor(x), 50, -2, 2))).toEqual(bins);
      expect(list(histogram(tensor(x), tensor(edges)).hist)).toEqual(bins);
      const weighted = list(histogram(tensor(x), 50, { range: [-2, 2], weight: tensor(weight) }).hist);
      for (const [bin, own] of weighted.entries())
        expect(Math.abs(own - sums[bin])).toBeLessThanOrEqual(sums[bin] * 2 ** -23);
      const places = tensor(BigInt64Array.from(x, (value) => BigInt(Math.floor(value + 3))));
      const counts = new Array<number>(6).fill(0);
      for (const value of x) counts[Math.floor(value + 3)] += 1;
      expect(list(bincount(places))).toEqual(counts);
    }));
});
