import { describe, expect, test } from "bun:test";
import { enableGrad, isGradEnabled } from "../../../src/autograd/modes.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import {
  type BagMode,
  type EmbeddingBagOptions,
  embedding,
  embeddingBag,
  full,
  mul,
  rand,
  sub,
  tensor,
  toDType,
} from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { total } from "../reduction/groups.ts";
import { tested, testTable } from "../run.ts";
import { testSameBits } from "../same_bits.ts";
import { type Block, type Layout, type OperandSpec, Random } from "../samples.ts";
import type { OperationRow, Round, Sample } from "../table.ts";

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];
const layouts: readonly Layout[] = ["contiguous", "offset", "transposed", "strided", "reversed", "expanded"];
const modes: readonly BagMode[] = ["sum", "mean", "max"];
const ROWS = 9;

const indicesOf = (shape: readonly number[], layout: Layout = "contiguous", dtype: DType = "int64"): OperandSpec => ({
  shape,
  layout,
  dtype,
  values: { integers: [0, ROWS - 1] },
});

const embeddingRow: OperationRow<object> = {
  name: "embedding",
  compute: ([indices, weight]) => embedding(indices, weight),
  dtypes: floats,
  samples: [
    ...layouts.map((layout, at) => ({
      name: `[4, 6] of [${ROWS}, 5] ${layout}`,
      inputs: [indicesOf([4, 6], layouts[(at + 1) % 5], at % 2 ? "int32" : "int64"), { shape: [ROWS, 5], layout }],
      options: {},
    })),
    { name: "bytes", inputs: [indicesOf([7], "contiguous", "uint8"), { shape: [ROWS, 3] }], options: {} },
    { name: "one index", inputs: [indicesOf([]), { shape: [ROWS, 3] }], options: {} },
    { name: "no index", inputs: [indicesOf([2, 0]), { shape: [ROWS, 3] }], options: {} },
    { name: "no width", inputs: [indicesOf([3]), { shape: [ROWS, 0] }], options: {}, gradient: false },
    { name: "a wide table", inputs: [indicesOf([5]), { shape: [ROWS, 600] }], options: {} },
    { name: "seven axes", inputs: [indicesOf([1, 2, 1, 2, 1, 2, 1]), { shape: [ROWS, 2] }], options: {} },
  ],
  oracle: ([indices, weight]) => {
    const width = weight.shape[1];
    return {
      shape: [...indices.shape, width],
      values: indices.values.flatMap((row) => weight.values.slice(row * width, (row + 1) * width)),
      dtype: weight.dtype,
    };
  },
  accuracy: { flash: true },
  sumLength: ([indices]) => indices.values.length,
  gradient: true,
};

interface BagOptions extends Omit<EmbeddingBagOptions, "offsets" | "perSampleWeights"> {
  readonly offsets?: readonly number[];
}

/** The positions of the indices that count, for each bag. */
function membersOf(indices: Block, { offsets, paddingIndex, includeLastOffset }: BagOptions): number[][] {
  const padding = paddingIndex === undefined ? -1 : (paddingIndex + ROWS) % ROWS;
  const [first = 0, length = 0] = indices.shape;
  const bounds = offsets
    ? [...offsets, ...(includeLastOffset ? [] : [indices.values.length])]
    : Array.from({ length: first + 1 }, (_, bag) => bag * length);
  return bounds
    .slice(1)
    .map((end, bag) =>
      Array.from({ length: end - bounds[bag] }, (_, at) => bounds[bag] + at).filter(
        (place) => indices.values[place] !== padding,
      ),
    );
}

function bagOracle([indices, weight, factors]: readonly Block[], options: BagOptions, round: Round) {
  const width = weight.shape[1];
  const bags = membersOf(indices, options);
  const at = (place: number, column: number) =>
    round(weight.values[indices.values[place] * width + column] * (factors?.values[place] ?? 1));
  const result = (members: readonly number[], column: number) => {
    const own = members.map((place) => at(place, column));
    if (own.length === 0) return 0;
    if (options.mode === "max") return Math.max(...own);
    const sum = total(own, round);
    return (options.mode ?? "mean") === "mean" ? round(sum / own.length) : sum;
  };
  const values = bags.flatMap((members) => Array.from({ length: width }, (_, column) => result(members, column)));
  return { shape: [bags.length, width], values, dtype: weight.dtype };
}

const bagSamples: readonly Sample<BagOptions>[] = [
  ...layouts.flatMap((layout, at) =>
    modes.map((mode) => ({
      name: `${mode} of [4, 6] ${layout}`,
      inputs: [indicesOf([4, 6], layouts[(at + 1) % 5], at % 2 ? "int32" : "int64"), { shape: [ROWS, 5], layout }],
      options: { mode, ...(at % 3 === 0 ? { paddingIndex: 4 } : {}) },
      gradient: mode !== "max" || layout !== "expanded", // any one of equal rows may be the largest
    })),
  ),
  ...modes.map((mode, at) => ({
    name: `${mode} by offsets`,
    inputs: [indicesOf([17], layouts[at + 1]), { shape: [ROWS, 5] }],
    options: { mode, offsets: [0, 0, 4, 5, 5, 11, 17], paddingIndex: 0 },
  })),
  ...modes.map((mode) => ({
    name: `${mode} up to the last offset`,
    inputs: [indicesOf([7], "contiguous", "int32"), { shape: [ROWS, 3] }],
    options: { mode, offsets: [0, 3, 5], includeLastOffset: true },
  })),
  ...layouts.map((layout, at) => ({
    name: `factors of [3, 4] ${layout}`,
    inputs: [indicesOf([3, 4]), { shape: [ROWS, 5], layout: layouts[(at + 2) % 6] }, { shape: [3, 4], layout }],
    options: { mode: "sum" as const, ...(at % 2 ? { paddingIndex: 1 } : {}) },
  })),
  {
    name: "factors by offsets",
    inputs: [indicesOf([9]), { shape: [ROWS, 40] }, { shape: [9] }],
    options: { mode: "sum", offsets: [0, 2, 2], paddingIndex: 3 },
  },
  { name: "nothing but empty bags", inputs: [indicesOf([0]), { shape: [ROWS, 3] }], options: { offsets: [0, 0] } },
  { name: "the largest of nothing", inputs: [indicesOf([3, 0]), { shape: [ROWS, 3] }], options: { mode: "max" } },
  { name: "a wide table", inputs: [indicesOf([2, 3]), { shape: [ROWS, 600] }], options: { mode: "mean" } },
];

const bagRow: OperationRow<BagOptions> = {
  name: "embeddingBag",
  compute: ([indices, weight, perSampleWeights], { offsets, ...options }) =>
    embeddingBag(indices, weight, {
      ...options,
      perSampleWeights,
      offsets: offsets && tensor(BigInt64Array.from(offsets.map(BigInt))),
    }),
  dtypes: floats,
  samples: bagSamples,
  oracle: bagOracle,
  accuracy: { flash: true },
  sumLength: ([indices]) => indices.values.length,
  gradient: true,
};

testTable("embedding", [embeddingRow, bagRow]);

test("a row with a factor of 0 gets no gradient, regardless of the bag's gradient", () => {
  for (const backend of tested)
    withBackend(backend, () => {
      const weight = tensor([[1, 2], [3, 4]], { requiresGrad: true }); // biome-ignore format: rows
      const index = tensor([1n, 0n, 1n]);
      const found = (output: Tensor) =>
        grad([output], [weight], { gradOutputs: [full(output.shape, 2, { dtype: "float32" })] })[0].toArray();
      expect(found(embedding(index, weight, { paddingIndex: 1 }))).toEqual([
        [2, 2],
        [0, 0],
      ]);
      const bags = embeddingBag(index, weight, { offsets: tensor([0n]), paddingIndex: 0 });
      expect(found(bags)).toEqual([[0, 0], [2, 2]]); // biome-ignore format: rows
    });
});

describe("a row that many indices select gets the sum of their gradients", () => {
  // Runs of 1, 32, 33 and 100 indices: a SIMD-group reads 32 at a time.
  const runs = [1, 32, 33, 100];
  const named = runs.flatMap((count, row) => new Array<bigint>(count).fill(BigInt(3 * row)));
  test.each(tested)("the sum is exact on %s", (backend) => {
    withBackend(backend, () => {
      const weight = full([11, 3], 1, { dtype: "float32" });
      weight.requiresGrad = true;
      const output = embedding(tensor(named), weight);
      const seed = tensor(
        named.map((_, at) => [at, 1, 2 * at]),
        { dtype: "float32" },
      );
      const rows = grad([output], [weight], { gradOutputs: [seed] })[0].toArray() as number[][];
      const places = (row: bigint) => named.flatMap((own, at) => (own === row ? [at] : []));
      const expected = rows.map((_, row) => {
        const sum = places(BigInt(row)).reduce((total, at) => total + at, 0);
        return [sum, places(BigInt(row)).length, 2 * sum];
      });
      expect(rows).toEqual(expected);
    });
  });
});

describe("if rows of a bag are equal, the first counts as the largest and gets the gradient", () => {
  test.each(tested)("the first of equal rows counts on %s", (backend) => {
    withBackend(backend, () => {
      const weight = tensor([[1], [1], [0]], { requiresGrad: true });
      const output = embeddingBag(tensor([[2n, 1n, 1n, 0n]]), weight, { mode: "max" });
      expect(grad([output], [weight], { gradOutputs: [full([1, 1], 3, { dtype: "float32" })] })[0].toArray()).toEqual([
        [0],
        [3],
        [0],
      ]);
    });
  });
});

describe("a NaN among the rows of a bag is the largest", () => {
  test.each(tested)("NaN counts as the largest on %s", (backend) => {
    const weight = withBackend(backend, () => tensor([[1], [Number.NaN], [-Infinity]]));
    const largest = (row: bigint[]) =>
      withBackend(backend, () => embeddingBag(tensor([row]), weight, { mode: "max" }).item());
    expect([largest([0n, 1n, 0n]), largest([1n, 0n]), largest([2n, 2n])]).toEqual([Number.NaN, Number.NaN, -Infinity]);
  });
});

describe("functions of embeddings have gradients of gradients", () => {
  const index = tensor([[0n, 2n, 2n], [1n, 0n, 1n]]); // biome-ignore format: rows
  const table = () => tensor([[0.5, -1], [1.5, 0.25], [-0.75, 2]], { dtype: "float64" }); // biome-ignore format: rows
  const factors = () => tensor([[0.5, 1, -2], [0.25, 3, 1]], { dtype: "float64" }); // biome-ignore format: rows
  const outputs: Readonly<Record<string, (weight: Tensor, perSampleWeights: Tensor) => Tensor>> = {
    embedding: (weight) => embedding(index, weight, { paddingIndex: 1 }),
    "a sum with factors": (weight, perSampleWeights) => embeddingBag(index, weight, { mode: "sum", perSampleWeights }),
    "a mean": (weight) => embeddingBag(index, weight, { paddingIndex: 0 }),
    "the largest": (weight) => embeddingBag(index, weight, { mode: "max" }),
  };

  test.each(Object.entries(outputs))("%s has gradients of gradients", (_name, compute) => {
    for (const backend of ["cpu", "reference"] as const)
      withBackend(backend, () => {
        const inputs = [table(), factors()];
        for (const input of inputs) input.requiresGrad = true;
        // A square, so that the gradient of the table depends on the table.
        const slopes = (weight: Tensor, own: Tensor) => {
          const createGraph = isGradEnabled();
          const output = enableGrad(() => compute(weight, own));
          const squares = enableGrad(() => mul(output, output));
          return grad([squares], [weight], {
            gradOutputs: [full(squares.shape, 0.75, { dtype: "float64" })],
            createGraph,
          })[0];
        };
        gradcheck((weight, own) => mul(slopes(weight, own), table()), inputs);
      });
  });
});

test("bags of drawn sizes and widths equal sums in float64, rounded once", () => {
  const random = new Random(4711);
  const rounded = (values: readonly number[], dtype: DType) =>
    toDType(tensor(Float32Array.from(values)), dtype).dataSync() as Float32Array;
  withBackend("cpu", () => {
    for (let round = 0; round < 40; round++) {
      const dtype = (["float32", "bfloat16", "float16"] as const)[round % 3];
      const [rows, width] = [random.integer(1, 40), random.integer(1, round % 8 === 7 ? 1100 : 70)];
      const [bags, length] = [random.integer(1, 6), random.integer(1, 21)];
      const weight = toDType(sub(rand([rows, width]), 0.5), dtype);
      const places = Array.from({ length: bags * length }, () => random.integer(0, rows - 1));
      const index = tensor(BigInt64Array.from(places, BigInt), { shape: [bags, length] });
      const hasFactors = random.integer(0, 1) === 1;
      const perSampleWeights = hasFactors ? toDType(rand([bags, length]), dtype) : undefined;
      const [table, factors] = [weight, perSampleWeights].map((each) => each && toDType(each, "float64").dataSync());
      const sums = Array.from({ length: bags * width }, (_, at) => {
        const [bag, column] = [Math.floor(at / width), at % width];
        const terms = places.slice(bag * length, (bag + 1) * length);
        return terms.reduce(
          (sum, row, k) => sum + table![row * width + column] * (factors?.[bag * length + k] ?? 1),
          0,
        );
      });
      const total = embeddingBag(index, weight, { mode: "sum", perSampleWeights });
      expect(total.dataSync()).toEqual(rounded(sums, dtype));
      if (hasFactors) continue;
      const means = sums.map((sum) => sum * (1 / length));
      expect(embeddingBag(index, weight, { mode: "mean" }).dataSync()).toEqual(rounded(means, dtype));
    }
  });
});

/** Rows that are selected often and never, in columns of several tasks and threadgroups. */
const everything = (): unknown[] => {
  const wave = (shape: readonly number[], step: number): Tensor => {
    const size = shape.reduce((product, own) => product * own, 1);
    return tensor(
      Float32Array.from({ length: size }, (_, at) => Math.sin(at * step)),
      { shape, requiresGrad: true },
    );
  };
  const indices = tensor(BigInt64Array.from({ length: 1200 }, (_, at) => BigInt((at * at) % 90)));
  const offsets = tensor(BigInt64Array.from({ length: 40 }, (_, at) => BigInt(at * 25)));
  const outcomes = [
    (weight: Tensor) => embedding(indices, weight),
    (weight: Tensor) => embeddingBag(indices, weight, { offsets, mode: "sum", perSampleWeights: wave([1200], 0.7) }),
    (weight: Tensor) => embeddingBag(indices, weight, { offsets, mode: "max" }),
  ].map((compute) => {
    const weight = wave([100, 70], 0.11);
    const output = compute(weight);
    return [output, grad([output], [weight], { gradOutputs: [wave(output.shape, 0.3)] })[0]];
  });
  return outcomes.flat().map((result) => Buffer.from(result.dataSync().buffer).toString("base64"));
};

describe("results of embeddings are bit-identical", () => testSameBits(everything));
