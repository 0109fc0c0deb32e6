import { describe, expect, test } from "bun:test";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { ones } from "../../../src/ops/creation/full.ts";
import { tensor } from "../../../src/ops/creation/tensor.ts";
import { detach, grad } from "../../../src/ops/gradient/backward.ts";
import { addmm } from "../../../src/ops/matmul/addmm.ts";
import { dot } from "../../../src/ops/matmul/dot.ts";
import { bmm, matmul, mm } from "../../../src/ops/matmul/matmul.ts";
import { outer } from "../../../src/ops/matmul/outer.ts";
import { transpose } from "../../../src/ops/view/permute.ts";
import { slice } from "../../../src/ops/view/slice.ts";
import { tested, testTable } from "../run.ts";
import { type Block, layouts } from "../samples.ts";
import type { OperationRow, Sample } from "../table.ts";
import { matmulOracle, matrices, productDTypes, sampledMatrices, wrapped } from "./products.ts";

const floats = productDTypes.slice(0, 4);

/** Every pair of layouts of the two operands. */
const layoutPairs: Sample[] = layouts.flatMap((a) => layouts.map((b) => matrices([18, 20], [20, 9], a, b)));

const batches: Sample[] = [
  matrices([3, 5, 7], [3, 7, 4]),
  matrices([3, 5, 7], [7, 4]),
  matrices([3, 5, 7], [7, 4], "transposed"),
  matrices([5, 7], [3, 7, 4]),
  matrices([2, 1, 5, 7], [3, 7, 4], "strided", "reversed"),
  matrices([2, 3, 4, 9], [1, 3, 9, 17], "transposed", "expanded"),
  matrices([4, 1, 9], [4, 9, 17]),
  matrices([4, 1, 9], [9, 17]),
  matrices([4, 17, 9], [4, 9, 1]),
  matrices([6, 33, 20], [6, 20, 65], "expanded", "transposed"),
  matrices([2, 1, 2, 1, 2, 1, 3, 2], [1, 2, 1, 2, 1, 2, 2, 3]),
  matrices([0, 2, 3], [3, 2]),
  matrices([2, 2, 0], [2, 0, 2]),
];

const vectors: Sample[] = [
  matrices([9], [9]),
  matrices([0], [0]),
  matrices([1], [1]),
  matrices([2049], [2049], "reversed", "strided"),
  matrices([19, 9], [9]),
  matrices([33, 130], [130], "transposed", "strided"),
  matrices([34, 132], [132], "offset"),
  matrices([2, 3, 19, 9], [9]),
  matrices([9], [9, 19]),
  matrices([130], [130, 33], "reversed", "transposed"),
  matrices([9], [2, 9, 19]),
  matrices([9], [2, 9, 3], "expanded"),
];

/** Long sums for few results, which Metal splits into parts. */
const long: Sample[] = [
  matrices([7, 1030], [1030, 9]),
  matrices([33, 257], [257, 33], "transposed", "transposed"),
  matrices([2, 9001], [9001], "strided"),
  matrices([9001], [9001, 3], "contiguous", "offset"),
  matrices([3, 2, 600], [3, 600, 2]),
];

/**
 * Lengths of sums for results and gradients: one runs over k, the others over m and n, and over a batch if an operand
 * is broadcast.
 */
const longestSum = (inputs: readonly Block[]): number =>
  Math.max(
    1,
    ...inputs.flatMap(({ shape }) => [
      shape.reduce((product, size) => product * size, 1) / (shape.at(-1) || 1),
      ...shape,
    ]),
  );

const matmulRow: OperationRow = {
  name: "matmul",
  compute: ([a, b]) => matmul(a, b),
  dtypes: productDTypes,
  samples: [...sampledMatrices(39, 7), ...layoutPairs, ...batches, ...vectors, ...long],
  oracle: ([a, b], _, round) => matmulOracle(a, b, round),
  accuracy: { flash: true },
  sumLength: longestSum,
  gradient: true,
};

const notFinite = { list: [1, Number.POSITIVE_INFINITY, 0, -2, Number.NaN, 0.5, Number.NEGATIVE_INFINITY] };

/** NaN and infinities spread to the rows and columns that contain them, and to no other. */
const notFiniteRow: OperationRow = {
  ...matmulRow,
  name: "matmul_not_finite",
  dtypes: floats,
  samples: [
    { inputs: [{ shape: [9, 33], values: notFinite }, { shape: [33, 20] }], options: undefined },
    { inputs: [{ shape: [9, 33] }, { shape: [33, 20], values: notFinite, layout: "transposed" }], options: undefined },
    { inputs: [{ shape: [13, 7], values: notFinite }, { shape: [7] }], options: undefined },
    {
      inputs: [
        { shape: [2, 8], values: { list: [0, 0, 0, 1] } },
        { shape: [8, 2], values: notFinite },
      ],
      options: undefined,
    },
  ],
  gradient: false,
};

interface Factors {
  readonly beta?: number;
  readonly alpha?: number;
}

/** beta · input + alpha · Σ, with the sum rounded as matmul's; beta 0 ignores the input. */
function addmmOracle(
  [input, a, b]: readonly Block[],
  { beta = 1, alpha = 1 }: Factors,
  round: (value: number) => number,
) {
  const product = matmulOracle(a, b, round);
  const [rows = 1, columns = 1] = input.shape.length === 1 ? [1, ...input.shape] : input.shape;
  const n = product.shape[1];
  const values = product.values.map((sum, index) => {
    const at = (rows === 1 ? 0 : Math.floor(index / n)) * columns + (columns === 1 ? 0 : index % n);
    const scaled = round(alpha * sum);
    return wrapped(a.dtype, beta === 0 ? scaled : round(scaled + round(beta * input.values[at])));
  });
  return { shape: product.shape, values };
}

const addmmSample = (
  options: Factors,
  input: Sample["inputs"][number],
  [m, k, n]: readonly number[],
): Sample<Factors> => ({
  name: `${JSON.stringify(options)} [${input.shape.join(",")}] + ${m}·${k}·${n}`,
  inputs: [input, { shape: [m, k] }, { shape: [k, n], layout: "transposed" }],
  options,
});

const addmmRow: OperationRow<Factors> = {
  name: "addmm",
  compute: ([input, a, b], options) => addmm(input, a, b, options),
  dtypes: productDTypes,
  samples: [
    addmmSample({}, { shape: [5, 4] }, [5, 3, 4]),
    addmmSample({ beta: 2, alpha: 3 }, { shape: [17, 33], layout: "transposed" }, [17, 20, 33]),
    addmmSample({ beta: 2, alpha: 3 }, { shape: [33], layout: "strided" }, [17, 20, 33]),
    addmmSample({ alpha: 2 }, { shape: [17, 1], layout: "reversed" }, [17, 300, 33]),
    addmmSample({ beta: 3 }, { shape: [] }, [1, 9, 7]),
    addmmSample({ beta: 3 }, { shape: [1, 7] }, [6, 9, 7]),
    addmmSample({ beta: 2, alpha: 2 }, { shape: [9, 1] }, [9, 21, 1]),
    addmmSample({ beta: 2, alpha: 2 }, { shape: [3, 2] }, [3, 0, 2]),
    addmmSample({ alpha: 0 }, { shape: [3, 2] }, [3, 4, 2]),
    { ...addmmSample({ beta: 0 }, { shape: [3, 2], values: { list: [Number.NaN] } }, [3, 4, 2]), dtypes: floats },
    { ...addmmSample({ beta: 0.5, alpha: 1.25 }, { shape: [3, 2] }, [3, 4, 2]), dtypes: floats },
  ],
  oracle: addmmOracle,
  accuracy: { flash: true },
  sumLength: longestSum,
  gradient: true,
};

const outerRow: OperationRow = {
  name: "outer",
  compute: ([a, b]) => outer(a, b),
  dtypes: productDTypes,
  samples: [matrices([3], [5]), matrices([7], [1], "reversed", "strided"), matrices([0], [2]), matrices([33], [65])],
  oracle: ([a, b], _, round) => ({
    shape: [...a.shape, ...b.shape],
    values: a.values.flatMap((x) => b.values.map((y) => wrapped(a.dtype, round(x * y)))),
  }),
  accuracy: { flash: true },
  sumLength: longestSum,
  gradient: true,
};

const aliases: readonly OperationRow[] = [
  {
    ...matmulRow,
    name: "matmul_repeated",
    compute: ([a, b]) => matmul(a, b),
    samples: [matrices([1, 5, 7], [3, 7, 4]), matrices([3, 5, 7], [1, 7, 4], "offset"), matrices([3, 1, 7], [1, 7, 4])],
  },
  { ...matmulRow, name: "mm", compute: ([a, b]) => mm(a, b), samples: [matrices([5, 7], [7, 3], "transposed")] },
  {
    ...matmulRow,
    name: "bmm",
    compute: ([a, b]) => bmm(a, b),
    samples: [
      ...layouts.map((layout) => matrices([2, 5, 7], [2, 7, 3], layout, layout)),
      matrices([1, 5, 7], [1, 7, 3], "strided"),
      matrices([3, 1, 7], [3, 7, 2], "transposed"),
      matrices([3, 33, 2], [3, 2, 63]), // small products, whose rows do not end with a vector
      matrices([2, 18, 5], [2, 5, 17], "transposed", "transposed"),
    ],
  },
  { ...matmulRow, name: "dot", compute: ([a, b]) => dot(a, b), samples: vectors.slice(0, 4) },
];

testTable("products", [matmulRow, notFiniteRow, ...aliases, outerRow]);
testTable("products with an input", [addmmRow]);

describe("outer is the product of every pair", () => {
  test("outer promotes its dtypes, as mul does", () => {
    const result = outer(tensor([1, 2], { dtype: "int32" }), tensor([0.5, -1]));
    expect(result.dtype).toBe("float32");
    expect(result.toArray()).toEqual([
      [0.5, -1],
      [1, -2],
    ]);
  });
});

test.each(tested)("products of views on %s need no other operation, forward or backward", (backend) => {
  withBackend(backend, () => {
    const a = transpose(ones([3, 5, 4]), 1, 2);
    const b = slice(ones([3, 6, 10]), { dim: 2, step: 2 });
    const leaves = [detach(a), detach(transpose(b, 1, 2))];
    for (const leaf of leaves) leaf.requiresGrad = true;
    const cotangent = transpose(ones([3, 6, 4]), 1, 2);
    resetCodepaths();
    grad([matmul(leaves[0], leaves[1])], leaves, { gradOutputs: [cotangent] });
    expect(codepaths().map(({ operation, calls }) => [operation, calls])).toEqual([["matmul", 3]]);
  });
});

test.each(tested)("a batch of transposed matrices is multiplied without a copy on %s", (backend) => {
  withBackend(backend, () => {
    const a = transpose(ones([3, 5, 4]), 1, 2);
    const b = ones([5, 6]);
    resetCodepaths();
    matmul(a, b);
    expect(codepaths().map(({ operation, calls }) => [operation, calls])).toEqual([["matmul", 1]]);
  });
});

test("gradients have gradients: for ⟨c bᵀ, v⟩ they are vᵀ c and v b", () => {
  const a = ones([2, 3], { requiresGrad: true });
  const b = tensor(
    [
      [1, 2],
      [3, 4],
      [5, 6],
    ],
    { requiresGrad: true },
  );
  const c = tensor(
    [
      [1, -1],
      [2, 0.5],
    ],
    { requiresGrad: true },
  );
  const v = tensor([
    [1, 0, 2],
    [0, -1, 1],
  ]);
  for (const product of [matmul(a, b), addmm(ones([2]), a, b)]) {
    const [first] = grad([product], [a], { gradOutputs: [c], createGraph: true });
    const [ofB, ofC] = grad([first], [b, c], { gradOutputs: [v] });
    expect(ofB.toArray()).toEqual([
      [1, -1],
      [-2, -0.5],
      [4, -1.5],
    ]);
    expect(ofC.toArray()).toEqual([
      [11, 14],
      [2, 2],
    ]);
  }
});
