/**
 * PyTorch's attention and transformer layers, beyond its fixtures (pytorch.test.ts): initialization, modes, mistakes.
 */
import { describe, expect, test } from "bun:test";
import {
  ArgumentError,
  DTypeError,
  Generator,
  manualSeed,
  nn,
  ones,
  optim,
  randn,
  relu,
  ShapeError,
  type Tensor,
  tensor,
  zeros,
} from "../../../src/index.ts";
import { on, tested } from "../../optim/run.ts";

const seeded = () => ({ generator: new Generator(3) });
const x = (...shape: number[]) => randn(shape, seeded());
const attention = (options: nn.MultiheadAttentionOptions = {}) =>
  new nn.MultiheadAttention(8, 2, { batchFirst: true, ...seeded(), ...options });
const valuesOf = (own: Tensor) => Array.from(own.dataSync() as Float32Array);

describe("MultiheadAttention equals PyTorch's", () => {
  test("MultiheadAttention is initialized as in PyTorch: Xavier's bounds, biases of 0", () => {
    const own = new nn.MultiheadAttention(64, 4, { addBiasKv: true, ...seeded() });
    const largest = (w: Tensor) => Math.max(...valuesOf(w).map(Math.abs));
    const bound = Math.sqrt(6 / (4 * 64)); // √(6 / (inputs + outputs)) of [3 · 64, 64]
    expect(largest(own.in_proj_weight!)).toBeLessThanOrEqual(bound);
    expect(largest(own.in_proj_weight!)).toBeGreaterThan(0.99 * bound);
    expect([own.in_proj_bias!, own.out_proj.bias!].map(largest)).toEqual([0, 0]);
    expect(own.bias_k!.shape).toEqual([1, 1, 64]);
    const cross = new nn.MultiheadAttention(6, 2, { kdim: 5, vdim: 7 });
    expect([...cross.namedParameters().keys()]).toEqual([
      "q_proj_weight",
      "k_proj_weight",
      "v_proj_weight",
      "in_proj_bias",
      "out_proj.weight",
      "out_proj.bias",
    ]);
  });

  test("MultiheadAttention drops weights in training only, with the global seed", () => {
    const own = attention({ dropout: 0.5 });
    const input = x(2, 5, 8);
    const run = (needWeights: boolean) => valuesOf(own.forward(input, input, input, { needWeights }).output);
    manualSeed(1);
    const dropped = run(true);
    manualSeed(1);
    expect(run(true)).toEqual(dropped);
    own.eval();
    const [slow, fast] = [run(true), run(false)];
    expect(slow).not.toEqual(dropped);
    for (const [at, value] of fast.entries()) expect(value).toBeCloseTo(slow[at], 5);
  });

  test("a query without keys has the output of zeros, and weights of NaN", () => {
    const own = attention().eval();
    const input = x(1, 2, 8);
    const attnMask = tensor([[true, true], [false, false]]); // biome-ignore format: rows
    const { output, weights } = own.forward(input, input, input, { attnMask });
    expect(weights).toBeNull();
    expect(valuesOf(output).slice(0, 8)).toEqual(valuesOf(own.out_proj.bias as Tensor));
    const needed = own.forward(input, input, input, { attnMask, needWeights: true });
    expect(valuesOf(needed.weights!).map(Number.isNaN)).toEqual([true, true, false, false]);
  });

  test("MultiheadAttention accepts zero keys, and batches of size zero", () => {
    const { output } = attention().forward(x(2, 3, 8), zeros([2, 0, 8]), zeros([2, 0, 8]));
    expect(output.shape).toEqual([2, 3, 8]);
    expect(attention().forward(zeros([0, 3, 8]), zeros([0, 2, 8]), zeros([0, 2, 8])).output.shape).toEqual([0, 3, 8]);
  });

  test.each(tested)("one product for queries, keys and values has the same results as three on %s", (backend) => {
    on(backend, () => {
      const own = attention().eval();
      const input = x(1, 4, 8);
      const whole = valuesOf(own.forward(input, input, input, { isCausal: true }).output);
      const parts = valuesOf(own.forward(input, input.clone(), input.clone(), { isCausal: true }).output);
      for (const [at, value] of parts.entries()) expect(value).toBeCloseTo(whole[at], 5);
    });
  });

  const input: Tensor = x(2, 3, 8);
  const forward =
    (inputs: nn.MultiheadAttentionInputs, key = input) =>
    () =>
      attention().forward(input, key, key, inputs);
  test.each([
    ["another width", forward({}, x(2, 3, 7)), ShapeError, /key \[batch, keys, 8\].*got.*float32\[2, 3, 7\]/],
    ["another batch", forward({}, x(1, 3, 8)), ShapeError, /float32\[1, 3, 8\]/],
    ["another rank", forward({}, x(3, 8)), ShapeError, /or all without batch/],
    ["another dtype", forward({}, input.to("float64")), DTypeError, /dtype of the weights, float32, got float64/],
    ["a mask of another shape", forward({ attnMask: ones([3, 4]) }), ShapeError, /attnMask.*\[3, 3\] or \[4, 3, 3\]/],
    ["a mask of integers", forward({ attnMask: ones([3, 3], { dtype: "int32" }) }), DTypeError, /bool or float32/],
    ["padding of another shape", forward({ keyPaddingMask: ones([3]) }), ShapeError, /keyPaddingMask.*\[2, 3\]/],
    [
      "heads that do not divide",
      () => new nn.MultiheadAttention(8, 3),
      ArgumentError,
      /multiple of numHeads, got 8 and 3/,
    ],
  ] as const)("MultiheadAttention rejects %s", (_, call, type, message) => {
    expect(call).toThrow(type as typeof ShapeError);
    expect(call).toThrow(message);
  });
});

describe("stacks of transformer layers are built as in PyTorch", () => {
  const options = { dimFeedforward: 12, batchFirst: true, ...seeded() };

  test("a stack has independent copies of its layer", () => {
    const layer = new nn.TransformerEncoderLayer(8, 2, { ...options, dtype: "float64" });
    const encoder = new nn.TransformerEncoder(layer, 2);
    const [first, second] = encoder.layers;
    expect(first.linear1.weight).not.toBe(layer.linear1.weight);
    expect(valuesOf(second.linear1.weight as Tensor)).toEqual(valuesOf(layer.linear1.weight as Tensor));
    expect([...encoder.namedParameters().keys()].slice(0, 2)).toEqual([
      "layers.0.self_attn.in_proj_weight",
      "layers.0.self_attn.in_proj_bias",
    ]);
    expect(encoder.parameters()).toHaveLength(24);
    expect(encoder.layers.every(({ linear2 }) => linear2.weight.dtype === "float64")).toBe(true);
  });

  test("an activation may be a function", () => {
    const input = x(1, 4, 8);
    const run = (activation: nn.TransformerActivation) => {
      const layer = new nn.TransformerEncoderLayer(8, 2, { ...options, ...seeded(), activation }).eval();
      return valuesOf(layer.forward(input));
    };
    expect(run((own) => relu(own))).toEqual(run("relu"));
    expect(run("gelu")).not.toEqual(run("relu"));
  });

  test("dropout is applied in training only, everywhere", () => {
    const layer = new nn.TransformerDecoderLayer(8, 2, { ...options, dropout: 0.9 });
    const [input, memory] = [x(1, 4, 8), x(1, 5, 8)];
    expect(valuesOf(layer.forward(input, memory))).not.toEqual(valuesOf(layer.forward(input, memory)));
    layer.eval();
    expect(valuesOf(layer.forward(input, memory))).toEqual(valuesOf(layer.forward(input, memory)));
    expect(layer.modules().filter((own) => own instanceof nn.Dropout)).toHaveLength(4);
  });

  test("a Transformer's matrices start with Xavier's bounds, all different", () => {
    const model = new nn.Transformer(16, 2, 2, 1, 24, { ...seeded(), batchFirst: true });
    for (const [name, own] of model.namedParameters()) {
      if (own.rank < 2) continue;
      const bound = Math.sqrt(6 / (own.shape[0] + own.shape[1]));
      const largest = Math.max(...valuesOf(own).map(Math.abs));
      expect([name, largest <= bound, largest > 0.9 * bound]).toEqual([name, true, true]);
    }
    const [first, second] = model.encoder.layers;
    expect(valuesOf(first.linear1.weight as Tensor)).not.toEqual(valuesOf(second.linear1.weight as Tensor));
    const added = nn.Transformer.generateSquareSubsequentMask(2).toArray();
    expect(added).toEqual([[0, Number.NEGATIVE_INFINITY], [0, 0]]); // biome-ignore format: rows
  });

  test("a Transformer trains", () => {
    const model = new nn.Transformer({
      dModel: 16,
      nhead: 2,
      numEncoderLayers: 1,
      numDecoderLayers: 1,
      dimFeedforward: 32,
      dropout: 0,
      batchFirst: true,
      ...seeded(),
    });
    const optimizer = new optim.Adam(model.parameters(), { lr: 1e-2 });
    const [source, target] = [x(4, 5, 16), x(4, 5, 16)];
    const loss = () => model.forward(source, target, { tgtIsCausal: true }).sub(target.neg()).square().mean();
    const before = Number(loss().item());
    for (let step = 0; step < 10; step++) {
      optimizer.zeroGrad();
      loss().backward();
      optimizer.step();
    }
    expect(Number(loss().item())).toBeLessThan(before / 2);
  });
});
