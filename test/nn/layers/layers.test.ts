/**
 * Every layer, compared with plain operations in float64 and with finite differences; initial weights; rejected
 * arguments.
 */
import { describe, expect, test } from "bun:test";
import {
  ArgumentError,
  amax,
  type BackendName,
  cat,
  Generator,
  grad,
  gradcheck,
  mean,
  nn,
  randn,
  ShapeError,
  type Tensor,
  tensor,
  withBackend,
  zerosLike,
} from "../../../src/index.ts";
import * as composed from "../composed.ts";
import { type Weights, weightsOf, within } from "../composed.ts";

const backends = ["cpu", "reference"] as const satisfies readonly BackendName[];
const options = () => ({ dtype: "float64", generator: new Generator(3) }) as const;
const whole = (values: number[] | number[][]) => tensor(values, { dtype: "int32" });

interface LayerRow {
  readonly name: string;
  readonly layer: () => nn.Module<[x: Tensor], Tensor>;
  /** The shape of a float64 input. */
  readonly shape: readonly number[];
  readonly composed: (x: Tensor, weights: Weights) => Tensor;
}

const grouped = { heads: 4, keyValueHeads: 2, causal: true } as const;

const table: readonly LayerRow[] = [
  {
    name: "Linear",
    layer: () => new nn.Linear(3, 5, options()),
    shape: [2, 4, 3],
    composed: composed.linear,
  },
  {
    name: "Linear without bias",
    layer: () => new nn.Linear(3, 5, { ...options(), bias: false }),
    shape: [4, 3],
    composed: (x, weights) => composed.linear(x, weights, false),
  },
  {
    name: "LayerNorm",
    layer: () => randomized(new nn.LayerNorm(6, options())),
    shape: [2, 3, 6],
    composed: composed.layerNorm,
  },
  {
    name: "LayerNorm without bias, another eps",
    layer: () => randomized(new nn.LayerNorm([6], { ...options(), bias: false, eps: 0.1 })),
    shape: [3, 6],
    composed: (x, weights) => composed.layerNorm(x, weights, 0.1, false),
  },
  {
    name: "RMSNorm",
    layer: () => randomized(new nn.RMSNorm(6, { ...options(), eps: 0.01 })),
    shape: [2, 3, 6],
    composed: (x, weights) => composed.rmsNorm(x, weights, 0.01),
  },
  {
    name: "MultiHeadAttention",
    layer: () => new nn.MultiHeadAttention({ ...options(), width: 6, heads: 3 }),
    shape: [2, 4, 6],
    composed: (x, weights) => composed.attention(x, weights, { heads: 3, keyValueHeads: 3 }),
  },
  {
    name: "MultiHeadAttention, grouped, rotary, causal, heads of another width",
    layer: () =>
      new nn.MultiHeadAttention({
        ...options(),
        width: 6,
        headWidth: 4,
        ...grouped,
        rotary: { base: 100 },
        bias: false,
      }),
    shape: [2, 4, 6],
    composed: (x, weights) => composed.attention(x, weights, { ...grouped, base: 100, hasBias: false }),
  },
  {
    name: "MLP",
    layer: () => new nn.MLP({ ...options(), width: 3, hidden: 5, approximate: "tanh" }),
    shape: [2, 2, 3],
    composed: composed.mlp,
  },
  {
    name: "SwiGLU",
    layer: () => new nn.SwiGLU({ ...options(), width: 3, hidden: 5 }),
    shape: [2, 2, 3],
    composed: composed.swiglu,
  },
  {
    name: "TransformerBlock, as GPT-2's",
    layer: () => new nn.TransformerBlock({ ...options(), width: 4, heads: 2, causal: true, feedForward: "geluTanh" }),
    shape: [2, 3, 4],
    composed: (x, weights) => composed.gptBlock(x, weights, { heads: 2, keyValueHeads: 2, causal: true }),
  },
  {
    name: "TransformerBlock, as Llama's",
    layer: () =>
      new nn.TransformerBlock({
        ...options(),
        width: 8,
        hidden: 5,
        ...grouped,
        bias: false,
        rotary: { base: 50 },
        norm: "rmsNorm",
        feedForward: "swiglu",
        eps: 1e-6,
      }),
    shape: [1, 3, 8],
    composed: (x, weights) => composed.llamaBlock(x, weights, { ...grouped, base: 50 }),
  },
  {
    name: "Sequential",
    layer: () => new nn.Sequential(new nn.Linear(3, 4, options()), new nn.LayerNorm(4, options())),
    shape: [2, 3],
    composed: (x, weights) => composed.layerNorm(composed.linear(x, within(weights, "0")), within(weights, "1")),
  },
];

/** Norms start with ones and zeros, which would hide a mistake. */
function randomized<Layer extends nn.Module>(layer: Layer): Layer {
  const generator = new Generator(5);
  layer.loadStateDict(
    Object.fromEntries(
      Object.entries(layer.stateDict()).map(([name, { shape }]) => [
        name,
        randn(shape, { dtype: "float64", generator }),
      ]),
    ),
  );
  return layer;
}

const largest = (x: Tensor): number => Number(amax(x.abs()).item());

function expectClose(got: Tensor, want: Tensor, within = 1e-13): void {
  expect(got.shape).toEqual(want.shape);
  expect(largest(got.sub(want)) / largest(want)).toBeLessThan(within);
}

describe.each(backends)("layers on %s", (backend) => {
  const on = (body: () => void) => withBackend(backend, body);

  test.each(table)("$name has the same results as its formula", ({ layer: make, shape, composed }) =>
    on(() => {
      const layer = make();
      const x = randn(shape, { dtype: "float64", generator: new Generator(1) });
      x.requiresGrad = true;
      const parameters = layer.namedParameters();
      const [got, want] = [layer.forward(x), composed(x, weightsOf(parameters))];
      expectClose(got, want);
      const leaves = [x, ...parameters.values()];
      const gradOutputs = [randn(got.shape, { dtype: "float64", generator: new Generator(2) })];
      const [gotGradients, wanted] = [got, want].map((out) => grad(out, leaves, { gradOutputs }));
      for (const [at, gradient] of gotGradients.entries()) expectClose(gradient, wanted[at], 1e-11);
    }),
  );

  test("Embedding returns rows; a row of padding has no gradient", () =>
    on(() => {
      const layer = new nn.Embedding(5, 3, { ...options(), paddingIndex: 1 });
      const out = layer.forward(
        whole([
          [4, 1],
          [0, 4],
        ]),
      );
      expectClose(out, composed.rows(layer.weight, [4, 1, 0, 4]).reshape([2, 2, 3]));
      out.sum().backward();
      expect(layer.weight.grad!.sum({ dim: 1 }).toArray()).toEqual([3, 0, 0, 0, 6]);
      expect(layer.weight.select(0, 1).toArray()).toEqual([0, 0, 0]);
    }));

  test("EmbeddingBag supports sum, mean, max, offsets and weights", () =>
    on(() => {
      const bags = (mode: "sum" | "mean" | "max") => new nn.EmbeddingBag(5, 3, { ...options(), mode });
      const [indices, offsets] = [whole([0, 2, 3, 1, 1]), whole([0, 3])];
      const picked = composed.rows(bags("sum").weight, [0, 2, 3, 1, 1]);
      const [first, second] = [picked.narrow(0, 0, 3), picked.narrow(0, 3, 2)];
      const both = (of: (bag: Tensor) => Tensor) => cat([of(first), of(second)], { dim: 0 });
      const wanted = {
        sum: both((bag) => bag.sum({ dim: 0, keepdim: true })),
        mean: both((bag) => mean(bag, { dim: 0, keepdim: true })),
        max: both((bag) => amax(bag, { dim: 0, keepdim: true })),
      };
      for (const mode of ["sum", "mean", "max"] as const)
        expectClose(bags(mode).forward(indices, { offsets }), wanted[mode]);
      const perSampleWeights = tensor([1, 2, 0, 1, -1], { dtype: "float64" });
      const weighted = picked.mul(perSampleWeights.unsqueeze(1)) as Tensor;
      expectClose(
        bags("sum").forward(indices, { offsets, perSampleWeights }).select(0, 0),
        weighted.narrow(0, 0, 3).sum({ dim: 0 }),
      );
      expectClose(
        bags("sum")
          .forward(
            whole([
              [0, 2],
              [1, 1],
            ]),
          )
          .select(0, 1),
        second.sum({ dim: 0 }),
      );
    }));

  test("gradients of a block match finite differences", () =>
    on(() => {
      const block = new nn.TransformerBlock({ ...options(), width: 4, hidden: 3, heads: 2, causal: true, rotary: {} });
      const x = randn([1, 3, 4], { dtype: "float64", generator: new Generator(1) });
      x.requiresGrad = true;
      gradcheck(() => block.forward(x), [x, ...block.parameters()]);
    }));
});

describe("Dropout", () => {
  const x = randn([50, 40], { generator: new Generator(4) });

  test("Dropout zeroes elements in training, and scales the others", () => {
    const kept = new nn.Dropout(0.25).forward(x);
    const [before, after] = [x.dataSync(), kept.dataSync()];
    const dropped = after.filter((value) => value === 0).length;
    expect(Math.abs(dropped / x.size - 0.25)).toBeLessThan(4 * Math.sqrt((0.25 * 0.75) / x.size));
    const scaled = before.map((value, at) => (after[at] === 0 ? 0 : value / 0.75));
    expect(largest(kept.sub(tensor(scaled, { shape: x.shape })))).toBeLessThan(1e-6);
  });

  test("eval() makes Dropout return x unchanged, in a block too", () => {
    expect(new nn.Dropout(0.25).eval().forward(x)).toBe(x);
    const make = (dropout: number) =>
      new nn.TransformerBlock({ ...options(), width: 4, heads: 2, dropout, attentionDropout: dropout });
    const input = randn([2, 3, 4], { dtype: "float64", generator: new Generator(1) });
    const [block, without] = [make(0.5), make(0)];
    expect(block.eval().forward(input).toArray()).toEqual(without.forward(input).toArray());
    expect(block.train().forward(input).toArray()).not.toEqual(without.forward(input).toArray());
  });

  test.each(["attention.output", "feedForward.down"])("a block drops residual elements, also if %s is zero", (part) => {
    const make = (dropout: number) =>
      new nn.TransformerBlock({ ...options(), width: 4, heads: 2, bias: false, dropout });
    const [block, without] = [make(0.5), make(0)];
    for (const each of [block, without]) {
      const weight = each.stateDict()[`${part}.weight`];
      each.loadStateDict({ [`${part}.weight`]: zerosLike(weight) }, { strict: false });
    }
    const input = randn([2, 3, 4], { dtype: "float64", generator: new Generator(1) });
    expect(block.forward(input).toArray()).not.toEqual(without.forward(input).toArray());
  });

  test("attention drops probabilities", () => {
    const input = randn([2, 3, 4], { dtype: "float64", generator: new Generator(1) });
    const attention = new nn.MultiHeadAttention({ ...options(), width: 4, heads: 2, dropout: 0.5 });
    const whole = attention.eval().forward(input).toArray();
    expect(attention.train().forward(input).toArray()).not.toEqual(whole);
  });
});

describe("layers start with PyTorch's weights", () => {
  const deviationOf = (x: Tensor) => Number(x.std().item());
  const bounds = (x: Tensor) => largest(x);

  test("initial weights are PyTorch's: linear layers within 1 / √inputs, embeddings normal", () => {
    const linear = new nn.Linear(64, 200, { generator: new Generator(1) });
    for (const parameter of [linear.weight, linear.bias!]) {
      expect(bounds(parameter)).toBeLessThanOrEqual(1 / 8);
      expect(deviationOf(parameter)).toBeCloseTo(1 / 8 / Math.sqrt(3), 2);
    }
    const { weight } = new nn.Embedding(200, 64, { generator: new Generator(1) });
    expect(Math.abs(deviationOf(weight) - 1)).toBeLessThan(0.03);
    expect(new nn.LayerNorm(3).weight!.toArray()).toEqual([1, 1, 1]);
    expect(new nn.LayerNorm(3).bias!.toArray()).toEqual([0, 0, 0]);
  });

  test("initial weights are GPT-2's: 0.02, scaled by 1 / √(2 layers) for the residual stream, biases 0", () => {
    const sizes = { vocabularySize: 97, contextLength: 64, layers: 8, heads: 2, width: 64 };
    const model = new nn.GPT({ ...sizes, generator: new Generator(1) });
    const deviations = [...model.namedParameters()]
      .filter(([name]) => name.endsWith("weight") && !name.includes("Norm"))
      .map(([name, x]) => [/(output|down)\.weight$/.test(name), deviationOf(x)] as const);
    expect(deviations.length).toBe(2 + 4 * 8);
    for (const [isResidual, deviation] of deviations)
      expect(Math.abs(deviation / (isResidual ? 0.02 / 4 : 0.02) - 1)).toBeLessThan(0.05);
    const biases = [...model.namedParameters()].filter(([name]) => name.endsWith("bias"));
    expect(biases.every(([, x]) => bounds(x) === 0)).toBe(true);
  });

  test("a generator's seed repeats the initial weights", () => {
    const weights = (seed: number) => {
      const sizes = { vocabularySize: 7, contextLength: 4, layers: 1, heads: 2, width: 4 };
      return new nn.Llama({ ...sizes, generator: new Generator(seed) }).parameters().map((x) => x.toArray());
    };
    expect(weights(1)).toEqual(weights(1));
    expect(weights(1)).not.toEqual(weights(2));
  });
});

describe("layers reject", () => {
  test.each([
    ["a width of 0", "invalidSize", () => new nn.Linear(0, 3)],
    ["a fraction of an embedding", "invalidSize", () => new nn.Embedding(2.5, 3)],
    ["a padding index that is no row", "invalidPaddingIndex", () => new nn.Embedding(3, 3, { paddingIndex: 3 })],
    ["an empty norm", "invalidSize", () => new nn.LayerNorm(0)],
    ["a probability of 1", "invalidProbability", () => new nn.Dropout(1)],
    ["heads that do not divide the width", "headsDoNotDivide", () => new nn.MultiHeadAttention({ width: 6, heads: 4 })],
    [
      "heads that are not a multiple of those of keys",
      "headsDoNotDivide",
      () => new nn.MultiHeadAttention({ width: 6, heads: 3, keyValueHeads: 2 }),
    ],
    [
      "dropout of attention below 0",
      "invalidProbability",
      () => new nn.TransformerBlock({ width: 4, heads: 2, attentionDropout: -1 }),
    ],
  ] as const)("layers reject %s", (_, code, make) => {
    expect(make).toThrow(ArgumentError);
    expect(make).toThrow(expect.objectContaining({ code }));
  });

  test("layers reject an input of another rank or width", () => {
    const attention = new nn.MultiHeadAttention({ width: 4, heads: 2 });
    expect(() => attention.forward(randn([3, 4]))).toThrow(ShapeError);
    const message = "expected x to have shape [batch, tokens, 4], got float32[1, 3, 5]";
    expect(() => attention.forward(randn([1, 3, 5]))).toThrow(message);
    expect(() => new nn.Linear(3, 2).forward(randn([4]))).toThrow(ShapeError);
  });
});
