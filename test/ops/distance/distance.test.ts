/** Distances of tensors and points, norms of slices and of channels, and pooling by drawn windows, on every backend. */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import * as library from "../../../src/ops/index.ts";
import { Generator } from "../../../src/random/generator.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { gradientOf, leaf } from "../activation/rows.ts";
import { resultOf, valueAt } from "../coordinates.ts";
import { floats, mapped } from "../elementwise/oracle.ts";
import { tested, testTable } from "../run.ts";
import type { Layout } from "../samples.ts";
import type { OperationRow, Round } from "../table.ts";

const layouts: readonly Layout[] = ["contiguous", "transposed", "strided", "offset", "reversed"];
const samplesOf = <Options>(shapes: readonly (readonly number[])[], options: Options) =>
  layouts.map((layout, at) => ({
    name: `${layout} ${JSON.stringify(options)}`,
    inputs: shapes.map((shape, own) => ({ shape, layout: layouts[(at + own) % layouts.length] })),
    options,
  }));

function normOf(values: readonly number[], p: number, round: Round): number {
  const sizes = values.map(Math.abs);
  if (p === Number.POSITIVE_INFINITY) return Math.max(0, ...sizes);
  return round(sizes.reduce((sum, own) => round(sum + round(own ** p)), 0) ** (1 / p));
}

/** Besides the sum, a power, a root and a quotient are rounded. */
const accuracy = { accuracy: { flash: true, ulps: 4 }, gradientRoundings: () => 8 } as const;
const orders = [1, 2, 3, Number.POSITIVE_INFINITY];
const distRow: OperationRow<number> = {
  name: "dist",
  compute: ([a, b], p) => library.dist(a, b, p),
  dtypes: floats,
  samples: orders.flatMap((p) => samplesOf([[3, 5], [5]], p)), // biome-ignore format: shapes
  oracle: (blocks, p, round) => ({
    shape: [],
    values: [normOf(mapped(blocks, (a, b) => round(a - b)).values, p, round)],
  }),
  ...accuracy,
  gradient: true,
};
const pdistRow: OperationRow<number> = {
  name: "pdist",
  compute: ([x], p) => library.pdist(x, p),
  dtypes: floats,
  samples: orders.flatMap((p) => [...samplesOf([[6, 3]], p), ...samplesOf([[1, 3]], p).slice(0, 1)]),
  oracle: ([x], p, round) => {
    const [count, width] = x.shape as [number, number];
    const pairs = Array.from({ length: count }, (_, i) => i).flatMap((i) =>
      Array.from({ length: count - i - 1 }, (_, j) => [i, i + 1 + j] as const),
    );
    const difference = (i: number, j: number) =>
      Array.from({ length: width }, (_, k) => round(valueAt(x, [i, k]) - valueAt(x, [j, k])));
    return { shape: [pairs.length], values: pairs.map(([i, j]) => normOf(difference(i, j), p, round)) };
  },
  ...accuracy,
  gradient: true,
};
const renormRow: OperationRow<{ readonly p: number; readonly dim: number }> = {
  name: "renorm",
  compute: ([x], { p, dim }) => library.renorm(x, p, dim, 3),
  dtypes: floats,
  samples: [1, 2, 3].flatMap((p) => [0, -1].flatMap((dim) => samplesOf([[4, 2, 3]], { p, dim }))),
  oracle: ([x], { p, dim }, round) => {
    const axis = dim < 0 ? dim + 3 : dim;
    const slice = (index: number) =>
      x.values.filter((_, at) => [Math.floor(at / 6), Math.floor(at / 3) % 2, at % 3][axis] === index);
    return resultOf(x.shape, (place) => {
      const norm = normOf(slice(place[axis]), p, round);
      return round(valueAt(x, place) * (norm > 3 ? round(3 / (norm + 1e-7)) : 1));
    });
  },
  ...accuracy,
  gradient: true,
};
const responseRow: OperationRow<number> = {
  name: "localResponseNorm",
  compute: ([x], size) => library.localResponseNorm(x, size, { alpha: 0.5, beta: 0.75, k: 2 }),
  dtypes: floats,
  samples: [1, 2, 5].flatMap((size) => samplesOf([[2, 4, 3]], size)),
  oracle: ([x], size, round) =>
    resultOf(x.shape, ([n, channel, i]) => {
      let sum = 0;
      for (let other = channel - Math.floor(size / 2); other < channel - Math.floor(size / 2) + size; other++)
        if (other >= 0 && other < x.shape[1]) sum = round(sum + round(valueAt(x, [n, other, i]) ** 2));
      return round(valueAt(x, [n, channel, i]) / round(round(2 + round((0.5 * sum) / size)) ** 0.75));
    }),
  ...accuracy,
  gradient: true,
};
testTable("distances", [distRow, pdistRow]);
testTable("norms of slices", [renormRow]);
testTable("norms of channels", [responseRow]);

describe.each(["cpu", "reference"] as const)("gradients of gradients on %s", (backend) => {
  test.each([
    ["dist", (x: Tensor) => library.dist(x, library.mul(x, 0.25), 3)],
    ["pdist", (x: Tensor) => library.pdist(x)],
    ["renorm", (x: Tensor) => library.renorm(x, 2, 0, 0.5)],
    ["localResponseNorm", (x: Tensor) => library.localResponseNorm(library.unsqueeze(x, -1), 3, { alpha: 0.5 })],
  ])("%s has gradients of gradients", (_name, compute) =>
    withBackend(backend, () => {
      const x = leaf([4, 3], 1);
      const cotangent = leaf(compute(x).shape, 2);
      expect(gradcheck((g, own) => gradientOf(compute)(g, own), [cotangent, x])).toBe(true);
    }),
  );
});

describe.each(tested)("distances and fractional pooling on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));

  test("fractional windows are in order, the last one at the end, and return their largest elements", () => {
    const x = on(() => library.randn([2, 3, 9, 8], { generator: new Generator(4) }));
    const samples = on(() => library.rand([2, 3, 2], { generator: new Generator(5) }));
    const { values, indices } = on(() =>
      library.fractionalMaxPool2d(x, [3, 2], { outputSize: [5, 4], returnIndices: true, randomSamples: samples }),
    );
    const elements = x.toArray() as unknown as number[][][][];
    const drawn = samples.toArray() as unknown as number[][][];
    const startsOf = (sample: number, size: number, output: number, kernel: number): number[] => {
      const step = Math.fround((size - kernel) / (output - 1));
      const at = (i: number) => Math.floor(Math.fround(Math.fround(i + sample) * step));
      return Array.from({ length: output }, (_, i) => (i === output - 1 ? size - kernel : at(i) - at(0)));
    };
    const wanted = elements.map((batch, n) =>
      batch.map((plane, c) => {
        const [horizontal, vertical] = drawn[n][c] as [number, number];
        const columns = startsOf(horizontal, 8, 4, 2);
        return startsOf(vertical, 9, 5, 3).map((top) =>
          columns.map((left) => {
            const places = [0, 1, 2].flatMap((i) => [0, 1].map((j) => (top + i) * 8 + left + j));
            const of = (place: number): number => plane[Math.floor(place / 8)][place % 8];
            return places.reduce((best, place) => (of(place) > of(best) ? place : best));
          }),
        );
      }),
    );
    expect((indices.toArray() as unknown as bigint[]).flat(4).map(Number)).toEqual(wanted.flat(4));
    const flat = wanted.flatMap((batch, n) =>
      batch.flatMap((rows, c) => rows.flat().map((place) => elements[n][c][Math.floor(place / 8)][place % 8])),
    );
    expect((values.toArray() as unknown as number[]).flat(4)).toEqual(flat);
    expect(on(() => library.fractionalMaxPool2d(x, 2, { outputRatio: [0.5, 0.3] })).shape).toEqual([2, 3, 4, 2]);
  });

  test("triplets may have a custom distance", () => {
    const [a, near, far] = on(() => ["0 0", "3 4", "0 2"].map((own) => library.tensor([own.split(" ").map(Number)])));
    const distanceFunction = (left: Tensor, right: Tensor): Tensor =>
      library.sum(library.abs(library.sub(left, right) as Tensor), -1) as Tensor;
    const lossOf = (options: object) =>
      on(() => library.tripletMarginWithDistanceLoss(a, near, far, { distanceFunction, ...options }).item());
    expect(lossOf({})).toBe(7 - 2 + 1);
    expect(lossOf({ swap: true, margin: 0 })).toBe(7 - Math.min(2, 5));
    expect(lossOf({ margin: -9 })).toBe(0);
  });
});
