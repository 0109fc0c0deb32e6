/** GPT and Llama: compared with plain operations, on every backend, and their errors. */
import { describe, expect, test } from "bun:test";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { whyUnavailable } from "../../../src/backend/registry.ts";
import {
  amax,
  type BackendName,
  crossEntropy,
  DTypeError,
  Generator,
  grad,
  manualSeed,
  nn,
  noGrad,
  optim,
  randn,
  ShapeError,
  type Tensor,
  tensor,
  tidy,
  toDType,
  withBackend,
} from "../../../src/index.ts";
import { checkFindings, tested } from "../../ops/run.ts";
import * as composed from "../composed.ts";

const whole = (values: readonly (readonly number[])[]) => tensor(values as number[][], { dtype: "int32" });
const sizes = { vocabularySize: 11, contextLength: 6, layers: 2, heads: 2, width: 8 } as const;
const tokens = [
  [3, 10, 0, 7, 3],
  [1, 1, 2, 9, 4],
];
const targets = [
  [10, 0, 7, 3, 5],
  [1, 2, 9, 4, 6],
];

/** Weights far from their initialization, so that every part affects the result. */
const initialization = nn.gpt2Initialization(1, 0.5);
const gpt = (options: Partial<nn.GPTOptions> = {}) =>
  new nn.GPT({ ...sizes, initialization, generator: new Generator(2), ...options });
const llama = (options: Partial<nn.LlamaOptions> = {}) =>
  new nn.Llama({ ...sizes, initialization, keyValueHeads: 1, generator: new Generator(2), ...options });

const largest = (x: Tensor): number => Number(amax(x.abs()).item());
const apart = (got: Tensor, want: Tensor): number => largest(got.sub(want)) / largest(want);

describe.each(["cpu", "reference"] as const)("models on %s match plain operations", (backend) => {
  test("GPT's logits, loss and gradients match plain operations", () =>
    withBackend(backend, () => {
      const model = gpt({ dtype: "float64" });
      const logits = model.forward(whole(tokens));
      const wanted = composed.gpt(tokens, composed.weightsOf(model.namedParameters()), sizes.layers, sizes.heads);
      expect(apart(logits, wanted)).toBeLessThan(1e-12);
      const loss = crossEntropy(logits, whole(targets), { dim: 2 });
      const wantedLoss = composed.nextTokenLoss(wanted, targets);
      expect(Math.abs(Number(loss.item()) - Number(wantedLoss.item()))).toBeLessThan(1e-12);
      const parameters = model.namedParameters();
      const all = [...parameters.values()];
      const [got, want] = [grad(loss, all), grad(wantedLoss, all)];
      for (const [at, name] of [...parameters.keys()].entries())
        expect([name, apart(got[at], want[at]) < 1e-9]).toEqual([name, true]);
    }));
});

describe("architectures have the right parameters", () => {
  test("GPT has its names, shapes and numbers of parameters", () => {
    const shapes = [...gpt().namedParameters()].map(([name, { shape }]) => `${name} ${shape.join("x")}`);
    expect(shapes.length).toBe(2 + 2 * 12 + 2);
    expect(shapes.slice(0, 8)).toEqual([
      "tokenEmbedding.weight 11x8",
      "positionEmbedding.weight 6x8",
      "blocks.0.attentionNorm.weight 8",
      "blocks.0.attentionNorm.bias 8",
      "blocks.0.attention.queryKeyValue.weight 24x8",
      "blocks.0.attention.queryKeyValue.bias 24",
      "blocks.0.attention.output.weight 8x8",
      "blocks.0.attention.output.bias 8",
    ]);
    expect(shapes.slice(-2)).toEqual(["finalNorm.weight 8", "finalNorm.bias 8"]);
  });

  test("GPT-2 small has 124,439,808 parameters", () => {
    const options = { vocabularySize: 50_257, contextLength: 1024, layers: 12, heads: 12, width: 768 };
    const model = new nn.GPT({ ...options, initialization: nn.noInitialization });
    expect(model.parameters().reduce((sum, { size }) => sum + size, 0)).toBe(124_439_808);
    expect(model.summary()).toContain("124,439,808 parameters, 498 MB");
  });

  test("GPT may have no biases, and an untied head", () => {
    const model = gpt({ bias: false, tied: false });
    expect([...model.namedParameters().keys()].filter((name) => name.endsWith("bias"))).toEqual([]);
    expect([...model.namedParameters().keys()].at(-1)).toBe("head.weight");
    expect(model.forward(whole(tokens)).shape).toEqual([2, 5, 11]);
    expect(llama({ tied: true }).head).toBeNull();
  });

  test.each(["float16", "bfloat16"] as const)("GPT trains in %s", (dtype) => {
    const model = gpt({ dtype: "float32" }).to(dtype);
    const optimizer = new optim.AdamW(model.parameters(), { lr: 0.01, masterWeights: true });
    const losses = Array.from({ length: 15 }, () => {
      const logits = toDType(model.forward(whole(tokens)), "float32");
      const loss = crossEntropy(logits, whole(targets), { dim: 2 });
      model.zeroGrad();
      loss.backward();
      optimizer.step();
      return Number(loss.item());
    });
    expect(losses.at(-1)!).toBeLessThan(losses[0] / 2);
  });

  test("dropout is active only in training, in embeddings, attention and residual additions", () => {
    const logits = (model: nn.GPT) => model.forward(whole(tokens)).toArray();
    const plain = logits(gpt());
    for (const dropout of [0.5, { embedding: 0.5 }, { attention: 0.5 }, { residual: 0.5 }]) {
      const model = gpt({ dropout });
      expect(logits(model)).not.toEqual(plain);
      expect(logits(model.eval())).toEqual(plain);
    }
  });
});

describe.each(tested.filter((name) => name !== "reference"))("results on %s equal reference", (backend) => {
  const on = <Result>(name: BackendName, body: () => Result): Result => {
    const why = whyUnavailable(name);
    if (why) throw new Error(`${name} can't be tested: ${why}`);
    if (name === "metal") metalContext().configure("check", true);
    const result = withBackend(name, body);
    if (name === "metal") checkFindings({ name: "a model" });
    return result;
  };
  /** Float32 results of two backends differ by a few roundings. */
  const expectSame = (body: () => Map<string, number[]>, within: number) => {
    const [got, want] = [on(backend, body), withBackend("reference", body)];
    expect(want.size).toBeGreaterThan(2);
    for (const [name, values] of want) {
      const scale = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      const worst = values.reduce((most, value, at) => Math.max(most, Math.abs(value - got.get(name)![at])), 0);
      expect([name, worst <= within * scale]).toEqual([name, true]);
    }
  };
  const numbers = (x: Tensor): number[] => Array.from(x.dataSync(), Number);
  const gradientsOf = (tensors: ReadonlyMap<string, Tensor>): Map<string, number[]> =>
    new Map([...tensors].map(([name, { grad }]) => [`gradient of ${name}`, numbers(grad!)]));

  test("a block with dropout has reference's results and gradients", () => {
    expectSame(() => {
      manualSeed(6);
      const options = {
        width: 8,
        heads: 2,
        keyValueHeads: 1,
        hidden: 12,
        causal: true,
        rotary: {},
        bias: false,
      } as const;
      const block = new nn.TransformerBlock({
        ...options,
        norm: "rmsNorm",
        feedForward: "swiglu",
        dropout: 0.2,
        attentionDropout: 0.3,
        generator: new Generator(1),
      });
      const x = randn([2, 5, 8], { generator: new Generator(3), requiresGrad: true });
      block.forward(x).backward(randn([2, 5, 8], { generator: new Generator(4) }));
      return gradientsOf(new Map([["x", x], ...block.namedParameters()]));
    }, 1e-5);
  });

  test("a GPT has equal logits, gradients, and results of a training step", () => {
    expectSame(() => {
      const model = gpt({ dropout: 0 });
      const optimizer = new optim.AdamW(model.parameters(), { lr: 0.01 });
      const logits = model.forward(whole(tokens));
      crossEntropy(logits, whole(targets), { dim: 2 }).backward();
      const gradients = gradientsOf(model.namedParameters());
      optimizer.step();
      const after = noGrad(() => model.forward(whole(tokens), { lastOnly: true }));
      return new Map([["logits", numbers(logits)], ["after a step", numbers(after)], ...gradients] as [
        string,
        number[],
      ][]);
    }, 2e-5);
  });

  test("tokens one by one are equal, until the cache is full", () => {
    expectSame(() => {
      const model = llama({ layers: 1 }).eval();
      using cache = model.newCache();
      const logits = [[1, 2, 3, 4], [5], [6], [7], [8]].map((part) =>
        tidy(() => numbers(noGrad(() => model.forward(whole([part]), { cache, lastOnly: true })))),
      );
      expect([cache.position, cache.length]).toEqual([8, 6]);
      return new Map(logits.map((values, at) => [`part ${at}`, values]));
    }, 1e-5);
  });
});

describe("models reject", () => {
  test.each<readonly [string, Tensor, string, new (...args: never[]) => Error]>([
    ["a token that is not in the vocabulary", whole([[1, 11]]), "indexOutOfRange", ShapeError],
    ["a negative token", whole([[1, -1]]), "indexOutOfRange", ShapeError],
    ["more tokens than the context", whole([[1, 2, 3, 4, 5, 6, 7]]), "sequenceTooLong", ShapeError],
    ["no tokens", tensor([[]], { dtype: "int32" }), "wrongShape", ShapeError],
    ["tokens without a batch", tensor([1, 2], { dtype: "int32" }), "wrongShape", ShapeError],
    ["tokens that are not integers", tensor([[1, 2]]), "notIntegers", DTypeError],
  ])("models reject %s", (_, given, code, kind) => {
    for (const model of [gpt(), llama()]) {
      const forward = () => withBackend("cpu", () => model.forward(given));
      expect(forward).toThrow(kind);
      expect(forward).toThrow(expect.objectContaining({ code }));
    }
  });

  test("models reject tokens beyond the remaining context of a cache", () => {
    const model = gpt().eval();
    using cache = model.newCache();
    noGrad(() => model.forward(whole([[1, 2, 3, 4]]), { cache }));
    expect(() => model.forward(whole([[1, 2, 3]]), { cache })).toThrow("expected at most 6 tokens, got 3 after 4");
  });

  test("models reject a number of heads that does not divide the width, and numbers out of range", () => {
    expect(() => gpt({ heads: 3 })).toThrow("expected width to be a multiple of heads, got 8 and 3");
    const message = "expected heads to be a multiple of keyValueHeads";
    expect(() => llama({ width: 8, heads: 4, keyValueHeads: 3 })).toThrow(message);
    expect(() => gpt({ layers: 0 })).toThrow("expected layers to be a whole number of at least 1");
    expect(() => gpt({ dropout: 1 })).toThrow("expected dropout to be a probability in [0, 1) or an object");
  });
});
