/** cummax and cummin: drawn shapes, axes, layouts and dtypes, with ties and NaN, compared with loops over numbers. */
import { expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { backward } from "../../../src/ops/gradient/backward.ts";
import { cummax, cummin, mul, sum, tensor, toDType } from "../../../src/ops/index.ts";
import { type DType, isFloat } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { repeats } from "../../support/repeats.ts";
import { mapSlices } from "../reduction/groups.ts";
import { tested } from "../run.ts";
import { testSameBits } from "../same_bits.ts";
import { type Block, expandedBlock, hash, layouts, makeBlock, place, Random } from "../samples.ts";

type IsBetter = (value: number, best: number) => boolean;
const functions: readonly (readonly [typeof cummax, IsBetter])[] = [
  [cummax, (value, best) => value >= best],
  [cummin, (value, best) => value <= best],
];
const dtypes: readonly DType[] = [
  ...(["float64", "float32", "float16", "bfloat16"] as const),
  ...(["int64", "int32", "uint32", "int8", "uint8"] as const),
];

/** The index of the last extreme element so far; after a NaN, the index of the last NaN. */
const placesIn = (slice: readonly number[], isBetter: IsBetter): number[] => {
  let at = 0;
  return slice.map((value, k) => {
    if (Number.isNaN(value) || isBetter(value, slice[at])) at = k;
    return at;
  });
};

interface Case {
  readonly block: Block;
  readonly layout: (typeof layouts)[number];
  readonly dim: number;
}

/** One long axis or several short ones; values with ties, ascending stretches, and now and then a NaN. */
function drawCase(random: Random, dtype: DType): Case {
  const isLong = random.integer(0, 2) === 0;
  const rank = random.integer(1, 3);
  const long = random.integer(0, rank - 1);
  const shape = Array.from({ length: rank }, (_, axis) => random.integer(1, isLong && axis === long ? 300 : 9));
  const kinds = [
    { integers: [0, 5] },
    { integers: [0, 120] },
    { list: Array.from({ length: 50 }, (_, k) => k) },
  ] as const;
  const drawn = makeBlock({ shape, values: kinds[random.integer(0, 2)] }, dtype, random);
  if (isFloat(dtype) && random.integer(0, 2) === 0)
    drawn.values[random.integer(0, drawn.values.length - 1)] = Number.NaN;
  const layout = layouts[random.integer(0, layouts.length - 1)];
  const block = layout === "expanded" ? expandedBlock(drawn) : drawn;
  return { block, layout, dim: random.integer(-rank, rank - 1) };
}

const numbers = (x: Tensor): number[] => Array.from(toDType(x, "float64").dataSync(), Number);

for (const backend of tested)
  test.each(dtypes.filter((dtype) => backend !== "metal" || dtype !== "float64"))(
    `%s equals the definition on ${backend}`,
    (dtype) => {
      const random = new Random(hash(`running extrema of ${dtype}`));
      for (let round = 0; round < repeats({ usual: backend === "cpu" ? 30 : 2, all: 300 }); round++) {
        const { block, layout, dim } = drawCase(random, dtype);
        const x = place(block, layout, backend, random);
        for (const [compute, isBetter] of functions) {
          const of = (map: (slice: number[]) => number[]) =>
            mapSlices(block.shape, [block.values], dim, (slice) => map(slice));
          const places = of((slice) => placesIn(slice, isBetter));
          const values = of((slice) => placesIn(slice, isBetter).map((at) => slice[at]));
          const results = withStrict(true, () => withBackend(backend, () => compute(x, dim)));
          expect({ x: x.describe(), dim, list: numbers(results.indices) }).toEqual({
            x: x.describe(),
            dim,
            list: places,
          });
          expect({ x: x.describe(), dim, list: numbers(results.values) }).toEqual({
            x: x.describe(),
            dim,
            list: values,
          });
        }
      }
    },
  );

test("the gradient of a running extremum is added to the elements at the indices", () => {
  const random = new Random(hash("gradients of running extrema"));
  for (let round = 0; round < 40; round++) {
    const { block, layout, dim } = drawCase(random, "float64");
    if (layout === "expanded") continue;
    const weights = block.values.map(() => random.integer(-3, 3));
    for (const [compute, isBetter] of functions) {
      const expected = mapSlices(block.shape, [block.values, weights], dim, (slice, shares) => {
        const sums = new Array<number>(slice.length).fill(0);
        for (const [k, at] of placesIn(slice, isBetter).entries()) sums[at] += shares[k];
        return sums;
      });
      const gradient = withBackend("cpu", () => {
        const x = place(block, layout, "cpu", random);
        x.requiresGrad = true;
        const each = tensor(weights, { shape: block.shape, dtype: "float64" });
        backward(sum(mul(compute(x, dim).values, each)) as Tensor);
        return numbers(x.grad!);
      });
      expect(gradient).toEqual(expected);
    }
  }
});

const ascending = tensor(
  Array.from({ length: 21_000 }, (_, k) => (k % 7) + k / 700),
  { shape: [3, 7000] },
);
testSameBits(() =>
  [cummax(ascending, 1), cummin(ascending, 0)].flatMap(({ values, indices }) => [
    values.dataSync(),
    indices.dataSync(),
  ]),
);
