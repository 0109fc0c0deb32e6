import { describe, expect, test } from "bun:test";
import { enableGrad, isGradEnabled } from "../../../src/autograd/modes.ts";
import { withBackend } from "../../../src/backend/policy.ts";
import { grad } from "../../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../../src/ops/gradient/gradcheck.ts";
import {
  binaryCrossEntropyWithLogits,
  crossEntropy,
  full,
  type LossReduction,
  mseLoss,
  mul,
  tensor,
} from "../../../src/ops/index.ts";
import type { DType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";
import { total } from "../reduction/groups.ts";
import { tested, testTable } from "../run.ts";
import { testSameBits } from "../same_bits.ts";
import type { Block, Layout } from "../samples.ts";
import type { Expected, OperationRow, Round, Sample } from "../table.ts";

const floats: readonly DType[] = ["float64", "float32", "float16", "bfloat16"];
const reductions: readonly LossReduction[] = ["none", "sum", "mean"];

// ---------------------------------------------------------------- cross entropy

interface Classes {
  readonly dim?: number;
  readonly reduction?: LossReduction;
  readonly labelSmoothing?: number;
  readonly ignoreIndex?: number;
  /** Whether classes have factors: see {@link factorOf}. */
  readonly isWeighted?: boolean;
}

/** The factor of a class: exact in every dtype. */
const factorOf = (c: number): number => 0.25 + (c % 5) / 4;

/** A slice of logits along the classes, and its target. */
interface Slice {
  readonly x: readonly number[];
  readonly target: number;
}

function slicesOf([x, targets]: readonly Block[], { dim }: Classes): Slice[] {
  const axis = axisOf(x.shape, dim);
  const length = x.shape[axis];
  const step = x.shape.slice(axis + 1).reduce((product, size) => product * size, 1);
  return targets.values.map((target, slice) => {
    const first = Math.floor(slice / step) * length * step + (slice % step);
    return { x: Array.from({ length }, (_, c) => x.values[first + c * step]), target };
  });
}

const axisOf = (shape: readonly number[], dim?: number): number =>
  dim === undefined ? Math.min(shape.length - 1, 1) : (dim + shape.length) % shape.length;

/** −(1 − ε) w[y] log p[y] − ε / classes · Σ w[c] log p[c], and its error: that of the logarithm, for each term. */
function lossOf({ x, target }: Slice, { labelSmoothing = 0, ignoreIndex = -100, isWeighted }: Classes, round: Round) {
  if (target === ignoreIndex) return { loss: 0, factor: 0, roundings: 0 };
  const factor = (c: number) => (isWeighted ? factorOf(c) : 1);
  const top = Math.max(...x);
  const shifted = x.map((value) => round(value - top));
  const logarithm = round(
    Math.log(
      total(
        shifted.map((value) => round(Math.exp(value))),
        round,
      ),
    ),
  );
  const terms = shifted.map((value, c) => round(factor(c) * round(logarithm - value)));
  const own = round((1 - labelSmoothing) * terms[target]);
  const spread = round((labelSmoothing / x.length) * total(terms, round));
  const range = top - Math.min(...x);
  const roundings = 2 * (range + 6 + Math.log2(x.length) + 2 * logarithm);
  return { loss: round(own + spread), factor: factor(target), roundings };
}

function crossEntropyOracle(blocks: readonly Block[], options: Classes, round: Round): Expected {
  const [x, targets] = blocks;
  const results = slicesOf(blocks, options).map((slice) => lossOf(slice, options, round));
  const losses = results.map(({ loss }) => loss);
  const sides = x.dtype === "float64" ? 2 : 1;
  const ofLosses = results.map(({ roundings }) => roundings * sides);
  if (options.reduction === "none") return { shape: targets.shape, values: losses, roundings: ofLosses };
  const sum = total(losses, round);
  const magnitude = losses.reduce((all, loss) => all + Math.abs(loss), 0) * 2 * Math.log2(losses.length + 2) * sides;
  const roundings = ofLosses.reduce((all, own) => all + own, magnitude);
  if (options.reduction === "sum") return { shape: [], values: [sum], roundings: [roundings] };
  const divisor = total(
    results.map(({ factor }) => factor),
    round,
  );
  return { shape: [], values: [round(sum / divisor)], roundings: [roundings / divisor] };
}

const targetsOf = (shape: readonly number[], list: readonly number[], dtype: DType = "int64", layout?: Layout) => ({
  shape,
  dtype,
  values: { list },
  ...(layout && { layout }),
});

const layouts: readonly Layout[] = ["offset", "transposed", "strided", "reversed", "expanded"];
const variants: readonly Classes[] = [
  { reduction: "none" },
  { reduction: "sum", labelSmoothing: 0.25 },
  { reduction: "mean", isWeighted: true },
  { reduction: "none", isWeighted: true, labelSmoothing: 0.125 },
  { reduction: "mean", labelSmoothing: 1, ignoreIndex: 2 },
];
const classSamples: readonly Sample<Classes>[] = [
  ...variants.map((options) => ({
    name: `[5, 7] ${JSON.stringify(options)}`,
    inputs: [{ shape: [5, 7] }, targetsOf([5], [6, 0, 2, -100, 3])],
    options: { ...options, ignoreIndex: -100 },
  })),
  { name: "a class ignored", inputs: [{ shape: [4, 3] }, targetsOf([4], [0, 2, 1, 2])], options: { ignoreIndex: 2 } },
  ...layouts.map((layout, at) => ({
    name: `[6, 33] ${layout}`,
    inputs: [
      { shape: [6, 33], layout },
      targetsOf([6], [32, 0, 7, 7, 31, 1], at % 2 ? "int32" : "int64", layouts[(at + 1) % 5]),
    ],
    options: variants[at],
  })),
  ...layouts.map((layout, at) => ({
    name: `[2, 3, 5, 3] ${layout}`,
    inputs: [{ shape: [2, 3, 5, 3], layout }, targetsOf([2, 5, 3], [2, 0, 1, 1], "int64", layouts[(at + 2) % 5])],
    options: { ...variants[at], ignoreIndex: 1 },
  })),
  { name: "uint8", inputs: [{ shape: [2, 3] }, targetsOf([2], [2, 0], "uint8")], options: {} },
  { name: "one axis", inputs: [{ shape: [5] }, targetsOf([], [3])], options: {} },
  { name: "one class", inputs: [{ shape: [3, 1] }, targetsOf([3], [0])], options: { reduction: "none" } },
  { name: "no rows", inputs: [{ shape: [0, 5] }, targetsOf([0], [])], options: { reduction: "sum" } },
  { name: "the last axis", inputs: [{ shape: [2, 3, 9] }, targetsOf([2, 3], [8, 0, 4])], options: { dim: -1 } },
  {
    name: "the first axis of many slices",
    inputs: [{ shape: [20, 37] }, targetsOf([37], [19, 0, 4])],
    options: { dim: 0, labelSmoothing: 0.5, isWeighted: true },
  },
  {
    name: "a long slice",
    inputs: [{ shape: [2, 5003] }, targetsOf([2], [5002, 4])],
    options: { labelSmoothing: 0.125, isWeighted: true },
  },
  {
    name: "a slice longer than a tile on the cpu, adjacent to others",
    inputs: [{ shape: [1100, 3] }, targetsOf([3], [1099, 0])],
    options: { dim: 0, reduction: "none" },
  },
];

/** The options of the call. */
const optionsFor = (x: Tensor, { isWeighted, ...options }: Classes) => {
  const classes = x.shape[axisOf(x.shape, options.dim)];
  const factors = Array.from({ length: classes }, (_, c) => factorOf(c));
  return { ...options, weight: isWeighted ? tensor(factors, { dtype: x.dtype }) : undefined };
};

const crossEntropyRow: OperationRow<Classes> = {
  name: "crossEntropy",
  compute: ([x, targets], options) => crossEntropy(x, targets, optionsFor(x, options)),
  dtypes: floats,
  samples: classSamples,
  oracle: crossEntropyOracle,
  accuracy: { flash: true },
  gradient: true,
  gradientRoundings: ([x], { dim }) => 8 * (12 + Math.log2(x.shape[axisOf(x.shape, dim)] + 1)),
};

/**
 * Two losses are composed of other operations: the one for class probabilities, and the one whose class weights require
 * a gradient.
 */
const composedRow: OperationRow<Classes & { readonly kind: "probabilities" | "factors" }> = {
  name: "crossEntropy of other operations",
  compute: ([x, second, third], { kind, ...options }) =>
    kind === "probabilities"
      ? crossEntropy(x, second, optionsFor(x, options))
      : crossEntropy(x, third, { ...optionsFor(x, options), weight: second }),
  dtypes: floats,
  samples: [
    {
      inputs: [
        { shape: [3, 4], layout: "transposed" },
        { shape: [3, 4], values: { low: 0, high: 1 } },
      ],
      options: { kind: "probabilities", labelSmoothing: 0.25, isWeighted: true },
    },
    {
      inputs: [
        { shape: [3, 4] },
        { shape: [4], values: { list: [0, 1, 2, 3].map(factorOf) } },
        targetsOf([3], [3, -100, 1]),
      ],
      options: { kind: "factors", labelSmoothing: 0.125, isWeighted: true },
    },
  ],
  oracle: (blocks, { kind, ...options }, round) => {
    if (kind === "factors") return crossEntropyOracle([blocks[0], blocks[2]], options, round);
    const [x, q] = blocks.map(({ values }) => values);
    const classes = blocks[0].shape[1];
    const losses = [0, 1, 2].map((row) => {
      const slice = x.slice(row * classes, (row + 1) * classes);
      const top = Math.max(...slice);
      const logarithm = Math.log(
        total(
          slice.map((value) => Math.exp(value - top)),
          round,
        ),
      );
      const share = (c: number) => 0.75 * q[row * classes + c] + 0.25 / classes;
      return total(
        slice.map((value, c) => round(factorOf(c) * share(c) * round(logarithm - (value - top)))),
        round,
      );
    });
    return { shape: [], values: [round(total(losses, round) / 3)], roundings: [200] };
  },
  accuracy: { flash: true },
  gradient: true,
  gradientRoundings: () => 200,
};

// ---------------------------------------------------------------- losses of one element each

type Formula = (values: readonly number[], round: Round) => number;

interface Elements {
  readonly reduction?: LossReduction;
  /** The shapes of `weight` and `posWeight`, which are broadcast. Default: neither is given. */
  readonly weights?: readonly (readonly number[])[];
}

const weightsOf = (dtype: DType, { weights }: Elements) =>
  (weights ?? []).map((shape) => {
    const size = shape.reduce((product, own) => product * own, 1);
    return tensor(
      Float64Array.from({ length: size }, (_, at) => factorOf(at)),
      { shape, dtype },
    );
  });

/** The weight at a position of x: that of the last axes. */
const weightAt = (place: number, x: Block, shape: readonly number[]): number => {
  const lead = x.shape.length - shape.length;
  let [rest, at, step] = [place, 0, 1];
  for (let axis = x.shape.length - 1; axis >= lead; axis--) {
    const own = shape[axis - lead];
    at += own === 1 ? 0 : (rest % x.shape[axis]) * step;
    step *= own;
    rest = Math.floor(rest / x.shape[axis]);
  }
  return factorOf(at);
};

const elementOracle =
  (formula: Formula) =>
  ([x, target]: readonly Block[], { reduction = "mean", weights = [] }: Elements, round: Round): Expected => {
    const losses = x.values.map((value, at) =>
      formula([value, target.values[at], ...weights.map((shape) => weightAt(at, x, shape))], round),
    );
    const sides = x.dtype === "float64" ? 2 : 1;
    if (reduction === "none")
      return { shape: x.shape, values: losses, roundings: losses.map((loss) => sides * 16 * (Math.abs(loss) + 1)) };
    const sum = total(losses, round);
    const magnitude =
      losses.reduce((all, loss) => all + Math.abs(loss) + 1, 0) * (16 + Math.log2(losses.length + 2)) * sides;
    const divisor = reduction === "mean" ? losses.length : 1;
    return { shape: [], values: [round(sum / divisor)], roundings: [magnitude / divisor] };
  };

const elementSamples = (weighted: boolean): Sample<Elements>[] => [
  ...reductions.flatMap((reduction) =>
    (["contiguous", ...layouts] as const).map((layout, at) => ({
      name: `[5, 7] ${layout} ${reduction}`,
      inputs: [
        { shape: [5, 7], layout, values: { low: -4, high: 4 } },
        { shape: [5, 7], layout: layouts[(at + 1) % 5], values: { low: 0, high: 1 } },
      ],
      options: { reduction, ...(weighted && at % 2 ? { weights: [[7], [5, 1]] } : {}) },
    })),
  ),
  { name: "0-dim", inputs: [{ shape: [] }, { shape: [] }], options: {} },
  { name: "no elements", inputs: [{ shape: [0, 3] }, { shape: [0, 3] }], options: {} },
  { name: "no elements, sum", inputs: [{ shape: [0, 3] }, { shape: [0, 3] }], options: { reduction: "sum" } },
  ...(weighted
    ? [{ name: "one weight", inputs: [{ shape: [2, 3] }, { shape: [2, 3] }], options: { weights: [[3]] } }]
    : []),
  {
    name: "many threadgroups",
    inputs: [{ shape: [33001] }, { shape: [33001] }],
    options: { reduction: "sum" },
    dtypes: ["float32", "bfloat16"],
    gradient: false,
  },
];

const squared: Formula = ([x, t], round) => {
  const difference = round(x - t);
  return round(difference * difference);
};
const binary: Formula = ([x, t, w = 1, v = 1], round) => {
  const softplus = round(round(Math.log1p(round(Math.exp(-Math.abs(x))))) + Math.max(-x, 0));
  const share = round(1 - t + round(v * t));
  return round(w * round(round(round(1 - t) * x) + round(share * softplus)));
};

const elementRows: readonly OperationRow<Elements>[] = [
  {
    name: "mseLoss",
    compute: ([x, t], { reduction }) => mseLoss(x, t, { reduction }),
    dtypes: floats,
    samples: elementSamples(false),
    oracle: elementOracle(squared),
    accuracy: { flash: true },
    gradient: true,
    gradientRoundings: () => 16,
  },
  {
    name: "binaryCrossEntropyWithLogits",
    compute: ([x, t], options) => {
      const [weight, posWeight] = weightsOf(x.dtype, options);
      return binaryCrossEntropyWithLogits(x, t, { reduction: options.reduction, weight, posWeight });
    },
    dtypes: floats,
    samples: elementSamples(true),
    oracle: elementOracle(binary),
    accuracy: { flash: true },
    gradient: true,
    gradientRoundings: () => 64,
  },
];

testTable("losses", [crossEntropyRow, composedRow, ...elementRows]);

// ---------------------------------------------------------------- further

describe("losses have gradients of gradients", () => {
  const leaf = (values: readonly unknown[]) => tensor(values as number[][], { dtype: "float64" });
  const logits = () => leaf([[0.5, -1, 2], [1.5, 0.25, -0.5]]); // biome-ignore format: rows
  const share = () => leaf([[0.25, 0.5, 1], [0, 0.75, 0.125]]); // biome-ignore format: rows
  const targets = tensor([2n, -100n]);
  const losses: Readonly<Record<string, (x: Tensor, t: Tensor) => Tensor>> = {
    crossEntropy: (x) => crossEntropy(x, targets, { labelSmoothing: 0.25 }),
    mseLoss: (x, t) => mseLoss(x, t, { reduction: "none" }),
    binaryCrossEntropyWithLogits: (x, t) => binaryCrossEntropyWithLogits(x, t, { posWeight: tensor([2]) }),
  };

  test.each(Object.entries(losses))("%s has gradients of gradients", (_name, loss) => {
    for (const backend of ["cpu", "reference"] as const)
      withBackend(backend, () => {
        const inputs = [logits(), share()];
        for (const input of inputs) input.requiresGrad = true;
        // Finite differences use the kernels' results; backward uses the results of other operations.
        const slopes = (x: Tensor, t: Tensor) => {
          const createGraph = isGradEnabled();
          const output = enableGrad(() => loss(x, t));
          const gradOutputs = [full(output.shape, 0.75, { dtype: "float64" })];
          return grad([output], [x], { gradOutputs, createGraph })[0];
        };
        gradcheck((x, t) => mul(slopes(x, t), share()), inputs);
      });
  });
});

/** Large enough for several threads, and for several threadgroups of each kernel. */
const everything = (): unknown[] => {
  const wave = (shape: readonly number[], step: number): Tensor => {
    const size = shape.reduce((product, own) => product * own, 1);
    return tensor(
      Float32Array.from({ length: size }, (_, at) => Math.sin(at * step)),
      { shape, requiresGrad: true },
    );
  };
  const targets = tensor(BigInt64Array.from({ length: 65 }, (_, at) => BigInt((at * 37) % 700)));
  const outcomes = [
    (x: Tensor) => crossEntropy(x, targets, { labelSmoothing: 0.25 }),
    (x: Tensor) => mseLoss(x, wave(x.shape, 0.7)),
    (x: Tensor) => binaryCrossEntropyWithLogits(x, wave(x.shape, 0.3)),
  ].map((loss) => {
    const x = wave([65, 700], 0.11);
    const output = loss(x);
    return [output, grad([output], [x])[0]];
  });
  return outcomes.flat().map((result) => Buffer.from(result.dataSync().buffer).toString("base64"));
};

describe("losses have the same bits with any number of threads", () => testSameBits(everything));

test("the mean over targets that are all ignored is NaN, as in PyTorch", () => {
  for (const backend of tested) {
    const result = withBackend(backend, () => crossEntropy(tensor([[1, 2]]), tensor([-100n])).item());
    expect(result).toBeNaN();
  }
});

test("an ignored target selects no class, even if there is one class and its weight has a gradient", () => {
  for (const backend of tested)
    withBackend(backend, () => {
      const weight = tensor([3], { requiresGrad: true });
      const losses = crossEntropy(tensor([[1], [2]]), tensor([-100n, 0n]), { weight, reduction: "none" });
      expect(losses.abs().toArray()).toEqual([0, 0]);
    });
});
