/** Losses composed of other operations, compared with each element's formula in float64. */
import { describe, expect, test } from "bun:test";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import {
  add,
  binaryCrossEntropy,
  cosineSimilarity,
  gaussianNllLoss,
  hingeEmbeddingLoss,
  huberLoss,
  klDiv,
  type LossReduction,
  l1Loss,
  marginRankingLoss,
  mul,
  normalize,
  pairwiseDistance,
  poissonNllLoss,
  smoothL1Loss,
  softMarginLoss,
  tensor,
  toDType,
} from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { tested, testTable } from "../run.ts";
import { type Block, layouts, makeBlock, place, Random, type Values } from "../samples.ts";
import type { OperationRow, Sample } from "../table.ts";

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];

interface Elements {
  readonly reduction: LossReduction;
}

/** An elementwise loss of operands of one shape. */
interface Loss {
  readonly call: (operands: Tensor[], options: Elements) => Tensor;
  readonly formula: (...values: number[]) => number;
  /** The values of each operand. Default −4 to 4. An operand of {@link sides} has no gradient. */
  readonly values?: readonly Values[];
}

const any: Values = { low: -4, high: 4 };
const sides: Values = { list: [1, -1, -1, 1, 1] };
const d = (x: number, t: number): number => Math.abs(x - t);

const losses: Readonly<Record<string, Loss>> = {
  l1Loss: { call: ([x, t], options) => l1Loss(x, t, options), formula: (x, t) => d(x, t) },
  smoothL1Loss: {
    call: ([x, t], options) => smoothL1Loss(x, t, { beta: 0.5, ...options }),
    formula: (x, t) => (d(x, t) < 0.5 ? d(x, t) ** 2 : d(x, t) - 0.25),
  },
  huberLoss: {
    call: ([x, t], options) => huberLoss(x, t, { delta: 1.5, ...options }),
    formula: (x, t) => (d(x, t) < 1.5 ? d(x, t) ** 2 / 2 : 1.5 * (d(x, t) - 0.75)),
  },
  "smoothL1Loss without a quadratic part": {
    call: ([x, t], options) => smoothL1Loss(x, t, { beta: 0, ...options }),
    formula: (x, t) => d(x, t),
  },
  "klDiv of logarithms": {
    call: ([x, t], options) => klDiv(x, t, { logTarget: true, ...options }),
    formula: (x, t) => Math.exp(t) * (t - x),
    values: [any, { low: -3, high: 0 }],
  },
  "poissonNllLoss of rates": {
    call: ([x, t], options) => poissonNllLoss(x, t, { logInput: false, eps: 0.125, ...options }),
    formula: (x, t) => x - t * Math.log(x + 0.125),
    values: [
      { low: 0.25, high: 4 },
      { low: 0, high: 3 },
    ],
  },
  "binaryCrossEntropy with weights": {
    call: ([x, t, w], options) => binaryCrossEntropy(x, t, w, options),
    formula: (p, t, w) => w * (-t * Math.log(p) - (1 - t) * Math.log1p(-p)),
    values: [
      { low: 0.05, high: 0.95 },
      { low: 0, high: 1 },
      { low: 0.25, high: 2 },
    ],
  },
  klDiv: {
    call: ([x, t], options) => klDiv(x, t, options),
    formula: (x, t) => t * (Math.log(t) - x),
    values: [any, { low: 0.1, high: 1 }],
  },
  poissonNllLoss: {
    call: ([x, t], options) => poissonNllLoss(x, t, options),
    formula: (x, t) => Math.exp(x) - t * x,
    values: [any, { low: 0, high: 3 }],
  },
  softMarginLoss: {
    call: ([x, t], options) => softMarginLoss(x, t, options),
    formula: (x, t) => Math.log1p(Math.exp(-t * x)),
  },
  binaryCrossEntropy: {
    call: ([x, t], options) => binaryCrossEntropy(x, t, options),
    formula: (p, t) => -t * Math.log(p) - (1 - t) * Math.log1p(-p),
    values: [
      { low: 0.05, high: 0.95 },
      { low: 0, high: 1 },
    ],
  },
  gaussianNllLoss: {
    call: ([x, t, v], options) => gaussianNllLoss(x, t, v, options),
    formula: (x, t, v) => (Math.log(v) + (x - t) ** 2 / v) / 2,
    values: [any, any, { low: 0.25, high: 2 }],
  },
  "gaussianNllLoss in full": {
    call: ([x, t, v], options) => gaussianNllLoss(x, t, v, { full: true, eps: 0.5, ...options }),
    formula: (x, t, v) => (Math.log(2 * Math.PI * Math.max(v, 0.5)) + (x - t) ** 2 / Math.max(v, 0.5)) / 2,
    values: [any, any, { low: 0.75, high: 2 }],
  },
  hingeEmbeddingLoss: {
    call: ([x, t], options) => hingeEmbeddingLoss(x, t, { margin: 0.75, ...options }),
    formula: (x, t) => (t === 1 ? x : Math.max(0.75 - x, 0)),
    values: [any, sides],
  },
  marginRankingLoss: {
    call: ([a, b, t], options) => marginRankingLoss(a, b, t, { margin: 0.75, ...options }),
    formula: (a, b, t) => Math.max(0.75 - t * (a - b), 0),
    values: [any, any, sides],
  },
};

const samplesOf = ({ values = [any, any] }: Loss): Sample<Elements>[] => [
  ...(["none", "sum", "mean"] as const).flatMap((reduction, first) =>
    layouts.slice(first % 2).map((layout, at) => ({
      name: `[5, 7] ${layout} ${reduction}`,
      inputs: values.map((own, operand) => ({
        shape: [5, 7],
        layout: layouts[(at + operand) % layouts.length],
        values: own,
        ...(own === sides ? { dtype: "int8" as const } : {}),
      })),
      options: { reduction },
    })),
  ),
  ...[[], [0, 3]].map((shape) => ({
    inputs: values.map((own) => ({ shape, values: own, ...(own === sides ? { dtype: "int8" as const } : {}) })),
    options: { reduction: "sum" as const },
  })),
];

function expectedOf(
  { formula }: Loss,
  blocks: readonly Block[],
  { reduction }: Elements,
  round: (x: number) => number,
) {
  const each = blocks[0].values.map((_, at) => round(formula(...blocks.map(({ values }) => values[at]))));
  const magnitudes = each.map((_, at) =>
    blocks.reduce((sum, { values }) => sum + 4 * values[at] ** 2 + Math.exp(Math.abs(values[at])), 8 * each[at]),
  );
  if (reduction === "none") return { shape: blocks[0].shape, values: each, roundings: magnitudes };
  const divisor = reduction === "mean" ? each.length : 1;
  const sum = each.reduce((all, own) => all + own, 0) / divisor;
  return { shape: [], values: [round(sum)], roundings: [magnitudes.reduce((all, own) => all + own, 0) / divisor] };
}

const rows = Object.entries(losses).map(
  ([name, loss]): OperationRow<Elements> => ({
    name,
    compute: (inputs, options) =>
      loss.call(
        inputs.map((own) => toDType(own, inputs[0].dtype)),
        options,
      ),
    dtypes: floats,
    samples: samplesOf(loss),
    oracle: (blocks, options, round) => ({ ...expectedOf(loss, blocks, options, round), dtype: blocks[0].dtype }),
    accuracy: { flash: true },
    gradient: true,
    gradientRoundings: () => 256,
  }),
);

// ---------------------------------------------------------------- distances

/** Vectors along the last axis, of two operands of one shape. */
const vectorsOf = ({ shape, values }: Block): number[][] => {
  const width = shape.at(-1)!;
  return Array.from({ length: values.length / width }, (_, at) => values.slice(at * width, (at + 1) * width));
};
const length = (vector: readonly number[]): number => Math.hypot(...vector);

const vectorSamples = (count: number): Sample[] =>
  layouts.map((_, at) => ({
    inputs: Array.from({ length: count }, (_, operand) => ({
      shape: at % 2 ? [3, 2, 9] : [4, 33],
      layout: layouts[(at + operand) % layouts.length],
      values: { low: 0.25, high: 2 },
    })),
    options: undefined,
  }));

const distances: readonly OperationRow[] = [
  {
    name: "pairwiseDistance",
    compute: ([a, b]) => pairwiseDistance(a, b, { eps: 0 }),
    dtypes: floats,
    samples: vectorSamples(2),
    oracle: ([a, b]) => {
      const others = vectorsOf(b);
      const values = vectorsOf(a).map((own, at) => length(own.map((x, k) => x - others[at][k])));
      return { shape: a.shape.slice(0, -1), values, roundings: values.map((own) => 16 * own) };
    },
    accuracy: { flash: true },
    gradient: true,
    gradientRoundings: () => 64,
  },
  {
    name: "cosineSimilarity",
    compute: ([a, b]) => cosineSimilarity(a, b, { dim: -1 }),
    dtypes: floats,
    samples: vectorSamples(2),
    oracle: ([a, b]) => {
      const others = vectorsOf(b);
      const values = vectorsOf(a).map((own, at) => {
        const other = others[at];
        return own.reduce((sum, x, k) => sum + x * other[k], 0) / (length(own) * length(other));
      });
      return { shape: a.shape.slice(0, -1), values, roundings: values.map(() => 16) };
    },
    accuracy: { flash: true },
    gradient: true,
    gradientRoundings: () => 64,
  },
  {
    name: "normalize",
    compute: ([x]) => normalize(x, { dim: -1 }),
    dtypes: floats,
    samples: vectorSamples(1),
    oracle: ([x]) => {
      const values = vectorsOf(x).flatMap((own) => own.map((element) => element / length(own)));
      return { shape: x.shape, values, roundings: values.map(() => 16) };
    },
    accuracy: { flash: true },
    gradient: true,
    gradientRoundings: () => 64,
  },
];

testTable("losses of other operations", [...rows, ...distances]);

describe.each(tested)("losses of 16-bit floats are accurate on %s", (backend) => {
  test.each(Object.entries(losses))(
    "%s is computed in float32 and rounded once",
    (_, { call, values = [any, any] }) => {
      withStrict(true, () =>
        withBackend(backend, () => {
          for (const dtype of ["float16", "bfloat16"] as const)
            for (const reduction of ["none", "sum", "mean"] as const) {
              const random = new Random(reduction.length);
              const drawn = values.map((own) => makeBlock({ shape: [7, 11], values: own }, dtype, random));
              const narrow = drawn.map((block) => place(block, "contiguous", backend, random));
              const once = call(
                narrow.map((operand) => toDType(operand, "float32")),
                { reduction },
              );
              expect(call(narrow, { reduction })).toEqual(toDType(once, dtype));
            }
        }),
      );
    },
  );
});

test("marginRankingLoss promotes operands of any dtypes; losses of integers are float32", () => {
  const some = ["float32", "float16", "int32", "int8"] as const;
  const triples = some.flatMap((x1) => some.flatMap((x2) => some.map((target) => [x1, x2, target] as const)));
  for (const dtypes of triples) {
    const operands = [
      [1, -2, 3, 4],
      [2, 2, -5, 4],
      [1, -1, -1, 1],
    ].map((x, at) => tensor(x, { dtype: dtypes[at] }));
    const loss = marginRankingLoss(operands[0], operands[1], operands[2], { margin: 2, reduction: "none" });
    const dtype = dtypes.includes("float32") || !dtypes.includes("float16") ? "float32" : "float16";
    expect([dtypes, loss]).toEqual([dtypes, tensor([3, 0, 10, 2], { dtype })]);
  }
});

// Backward passes that create a graph use compositions of other operations; others use the kernels' formulas.
describe.each(tested)("gradients of kernels equal those of compositions on %s", (backend) => {
  /** Values on both sides of every kink, and on it. */
  const values: Values = { list: [-4, 2.5, -1, 0.75, 0.5, -1.5, 1, 0.25, -0.5] };
  const shapesOf = (name: string): readonly (readonly number[])[] => {
    if (name.startsWith("marginRankingLoss")) return [[4, 7], [7], [4, 1]];
    return [[4, 7], [4, 7], name.startsWith("gaussianNllLoss") ? [4, 1] : [4, 7]];
  };
  const numbersOf = (x: Tensor): number[] => x.toArray().flat();

  test.each(Object.entries(losses))("%s", (name, loss) => {
    withBackend(backend, () => {
      for (const reduction of ["none", "sum", "mean"] as const) {
        const random = new Random(name.length);
        const operands = (loss.values ?? [any, any]).map((own, at) => {
          const spec = { shape: shapesOf(name)[at], values: own === any ? values : own };
          const operand = place(makeBlock(spec, "float32", random), layouts[at], backend, random);
          operand.requiresGrad = true;
          return operand;
        });
        const gradientsOf = (createGraph: boolean) => {
          const output = loss.call(operands, { reduction });
          const gradOutputs = [mul(add(output.detach(), 3), 0.25)];
          return grad([output], operands, { gradOutputs, createGraph, allowUnused: true });
        };
        const [fused, composed] = [gradientsOf(false), gradientsOf(true)];
        for (const [at, gradient] of fused.entries()) {
          expect(gradient === null).toBe(composed[at] === null);
          if (gradient === null) continue;
          const others = numbersOf(composed[at]);
          for (const [element, value] of numbersOf(gradient).entries())
            expect(Math.abs(value - others[element])).toBeLessThanOrEqual(1e-5 * (1 + Math.abs(others[element])));
        }
      }
    });
  });
});
