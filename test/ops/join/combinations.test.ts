/** Combinations, products of sets, blocks, parts and triangles, on every backend. */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import * as library from "../../../src/ops/index.ts";
import { type DType, dtypes } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { resultOf, valueAt } from "../coordinates.ts";
import { tested, testTable } from "../run.ts";
import type { Block, Layout } from "../samples.ts";
import type { Expected, OperationRow } from "../table.ts";

type Shape = readonly number[];

/** Every way to take r of this many positions, in order, by trying all. */
function choices(count: number, r: number, allowsEqual: boolean): number[][] {
  let all: number[][] = [[]];
  for (let taken = 0; taken < r; taken++)
    all = all.flatMap((own) => Array.from({ length: count }, (_, next) => [...own, next]));
  return all.filter((own) => own.every((place, at) => at === 0 || place > own[at - 1] - Number(allowsEqual)));
}

interface Call {
  readonly shapes: readonly Shape[];
  readonly compute: (...inputs: Tensor[]) => Tensor | readonly Tensor[];
  readonly oracle: (...inputs: Block[]) => Expected | readonly Expected[];
}

const combinations = (count: number, r: number, withReplacement: boolean): Call => {
  const rows = choices(count, r, withReplacement);
  return {
    shapes: [[count]],
    compute: (x) => library.combinations(x, { r, withReplacement }),
    oracle: (x) => resultOf([rows.length, r], ([row, at]) => x.values[rows[row][at]]),
  };
};

const layouts: readonly Layout[] = ["contiguous", "offset", "transposed", "strided", "reversed"];
const row = (name: string, calls: readonly Call[]): OperationRow<Call> => ({
  name,
  compute: (inputs, { compute }) => compute(...inputs),
  dtypes,
  samples: calls.flatMap((options, index) =>
    layouts.map((layout, at) => ({
      name: `call ${index} ${layout}`,
      inputs: options.shapes.map((shape, own) => ({ shape, layout: layouts[(at + own) % layouts.length] })),
      options,
    })),
  ),
  oracle: (inputs, { oracle }) => oracle(...inputs),
  accuracy: { ulps: 0 },
  gradient: true,
});

testTable("combinations", [
  row("combinations", [
    ...[1, 3, 5].flatMap((count) => [1, 2, 3].map((r) => combinations(count, r, false))),
    ...[0, 1, 4].map((count) => combinations(count, 3, true)),
  ]),
  row("cartesianProd", [
    {
      shapes: [[2], [3], [2]],
      compute: (...all) => library.cartesianProd(...all),
      oracle: (...all) =>
        resultOf([12, 3], ([at, which]) => {
          const places = [Math.floor(at / 6), Math.floor(at / 2) % 3, at % 2];
          return valueAt(all[which], [places[which]]);
        }),
    },
    {
      shapes: [[3]],
      compute: (x) => library.cartesianProd(x),
      oracle: (x) => resultOf([3], ([at]) => valueAt(x, [at])),
    },
  ]),
  row("blockDiag", [
    {
      shapes: [[2, 3], [2], [], [3, 1]], // biome-ignore format: shapes
      compute: (...all) => library.blockDiag(all),
      oracle: (a, b, c, d) =>
        resultOf([7, 7], ([i, j]) => {
          if (i < 2) return j < 3 ? valueAt(a, [i, j]) : 0;
          if (i === 2) return j === 3 || j === 4 ? valueAt(b, [j - 3]) : 0;
          if (i === 3) return j === 5 ? valueAt(c, []) : 0;
          return j === 6 ? valueAt(d, [i - 4, 0]) : 0;
        }),
    },
  ]),
  row("hsplit, vsplit, dsplit", [
    {
      shapes: [[2, 4, 3]],
      compute: (x) => library.hsplit(x, 2),
      oracle: (x) => [0, 2].map((from) => resultOf([2, 2, 3], ([i, j, k]) => valueAt(x, [i, j + from, k]))),
    },
    {
      shapes: [[4]],
      compute: (x) => library.hsplit(x, [1, 1]),
      oracle: (x) => [
        resultOf([1], () => valueAt(x, [0])),
        resultOf([0], () => 0),
        resultOf([3], ([i]) => valueAt(x, [i + 1])),
      ],
    },
    {
      shapes: [[4, 2]],
      compute: (x) => library.vsplit(x, 2),
      oracle: (x) => [0, 2].map((from) => resultOf([2, 2], ([i, j]) => valueAt(x, [i + from, j]))),
    },
    {
      shapes: [[2, 1, 4]],
      compute: (x) => library.dsplit(x, [3]),
      oracle: (x) => [
        resultOf([2, 1, 3], ([i, , k]) => valueAt(x, [i, 0, k])),
        resultOf([2, 1, 1], ([i]) => valueAt(x, [i, 0, 3])),
      ],
    },
  ]),
]);

const dtypesOfSets: readonly DType[] = dtypes;
testTable("sets", [
  {
    name: "isin",
    compute: ([x, others]) => library.isin(x, others),
    dtypes: dtypesOfSets,
    samples: [
      [[40], [7]],
      [
        [3, 5],
        [2, 2],
      ],
      [[], [3]],
      [[4], [0]],
      [[0], [3]],
    ].map(([shape, others]) => ({
      inputs: [
        { shape: shape, values: { integers: [0, 6] as const } },
        { shape: others, layout: "reversed" as const, values: { integers: [0, 9] as const } },
      ],
      options: undefined,
    })),
    oracle: ([x, others]) => ({
      shape: x.shape,
      values: x.values.map((own) => Number(others.values.includes(own) && !Number.isNaN(own))),
      dtype: "bool",
    }),
    accuracy: { ulps: 0 },
    gradient: false,
  } satisfies OperationRow as OperationRow,
]);

describe.each(tested)("combinations and triangles on %s", (backend) => {
  const on = <Result>(body: () => Result): Result => withStrict(true, () => withBackend(backend, body));

  test("the coordinates of triangles are right", () => {
    const sizes = [
      [3, 3],
      [2, 5],
      [5, 2],
      [0, 3],
      [3, 0],
    ] as [number, number][];
    for (const [rows, columns] of sizes)
      for (const offset of [-6, -1, 0, 1, 6]) {
        const places = Array.from({ length: rows * columns }, (_, at) => [Math.floor(at / columns), at % columns]);
        const below = places.filter(([i, j]) => j - i <= offset);
        const above = places.filter(([i, j]) => j - i >= offset);
        const listOf = (x: Tensor<"int64">) => Array.from(x.dataSync(), Number);
        expect(on(() => listOf(library.trilIndices(rows, columns, offset)))).toEqual([
          ...below.map(([i]) => i),
          ...below.map(([, j]) => j),
        ]);
        expect(on(() => listOf(library.triuIndices(rows, columns, offset)))).toEqual([
          ...above.map(([i]) => i),
          ...above.map(([, j]) => j),
        ]);
      }
  });

  test("NaN is in no set, and `invert` finds the elements that are not in the set", () => {
    const [x, others] = on(() => [library.tensor([Number.NaN, 1, -0]), library.tensor([Number.NaN, 0])]) as Tensor[];
    expect(on(() => library.isin(x, others).toArray())).toEqual([false, false, true]);
    expect(on(() => library.isin(x, others, { invert: true }).toArray())).toEqual([true, true, false]);
    expect(on(() => library.isin(x, 1).toArray())).toEqual([false, true, false]);
  });

  test("vander has powers at equal distances", () => {
    const powers = on(() => library.logspace(-1, 2, 7, { base: 3 }));
    const wanted = Array.from({ length: 7 }, (_, at) => Math.fround(3 ** (-1 + at / 2)));
    expect(powers.toArray()).toEqual(wanted);
    expect(on(() => library.logspace(0, 5, 6, 2, { dtype: "int64" }).toArray())).toEqual([1n, 2n, 4n, 8n, 16n, 32n]);
    expect(on(() => library.logspace(0.5, 9, 1).toArray())).toEqual([Math.fround(10 ** 0.5)]);
    expect(on(() => library.logspace(0, 1, 0).shape)).toEqual([0]);
  });
});
