/**
 * The output of `console.log` for objects with many parts: exact texts, the same from `Bun.inspect` and `node:util`.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { inspect } from "node:util";
import { printedBytes, printedColumns, printedCount, printedLines, printedOptions } from "../../src/core/printing.ts";
import { data, Generator, io, nn, ones, optim, randn, sum, type Tensor, tensor, zeros } from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";
import { saveShards } from "../support/shards.ts";

const { path: folder } = testFolder("printing");

/** The printed text: alone, in Node's inspect, and inside a list. */
function printed(value: unknown): string {
  const text = Bun.inspect(value);
  expect(inspect(value)).toBe(text);
  expect(Bun.inspect([value])).toContain(text.split("\n")[0]);
  return text;
}

describe("modules print as trees", () => {
  test("a module prints a tree with shapes, and totals", () => {
    const model = new nn.Sequential(new nn.Linear(4, 8), new nn.Dropout(0.1), new nn.LayerNorm(8, { bias: false }));
    expect(printed(model)).toBe(`Sequential(
  (0): Linear(4, 8)  weight [8, 4], bias [8]
  (1): Dropout(p: 0.1)
  (2): LayerNorm(8, eps: 0.00001, bias: false)  weight [8]
)
48 parameters, 192 B`);
  });

  test("tensors outside of layers, frozen and tied tensors are printed, and equal parts only once", () => {
    class Model extends nn.Module<[x: Tensor], Tensor> {
      readonly scale = ones([3], { requiresGrad: true });
      readonly steps = zeros([1], { dtype: "int64" });
      readonly blocks = Array.from({ length: 3 }, () => new nn.Sequential(new nn.Linear(3, 3, false)));
      readonly embedding = new nn.Embedding(5, 3, { dtype: "float16" });
      readonly head = Object.assign(new nn.Linear(3, 5, { bias: false, dtype: "float16" }), {
        weight: this.embedding.weight,
      });
      override forward(x: Tensor): Tensor {
        return x;
      }
    }
    expect(printed(new Model())).toBe(`Model(
  scale [3], steps [1] (frozen)
  (blocks.0 to blocks.2): 3 × Sequential(
    (0): Linear(3, 3, bias: false)  weight [3, 3]
  )
  (embedding): Embedding(5, 3)  weight [5, 3]
  (head): Linear(3, 5, bias: false)  weight [5, 3] (tied)
)
45 parameters, 150 B; 1 in buffers, 8 B`);
  });

  test("an empty module prints its name", () => {
    expect(printed(new nn.Dropout(0.5))).toBe("Dropout(p: 0.5)\n0 parameters, 0 B");
  });
});

describe("printed optimizers and related objects", () => {
  test("optimizers print parameters, steps, bytes of state, and options", () => {
    const w = tensor([1, 2, 3], { requiresGrad: true });
    const adam = new optim.Adam([w], { lr: 0.01 });
    const options = "betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0";
    expect(printed(adam)).toBe(`Adam: 1 parameter (3 elements), 0 steps, 0 B of state\n  lr: 0.01, ${options}`);
    sum(w).backward();
    adam.step();
    adam.setLearningRate(0.005);
    expect(printed(adam)).toBe(
      `Adam: 1 parameter (3 elements), 1 step, 24 B of state\n  lr: 0.005, initialLr: 0.01, ${options}`,
    );
  });

  test("enabled options are printed", () => {
    const w = ones([2], { requiresGrad: true });
    expect(printed(new optim.SGD([w], { lr: 1, momentum: 0.9, nesterov: true }))).toContain("nesterov: true");
    expect(printed(new optim.SGD([w], { lr: 1, momentum: 0.9 }))).not.toContain("nesterov");
  });

  test("parameter groups are printed", () => {
    const [a, b] = [ones([2], { requiresGrad: true }), ones([1000, 2], { requiresGrad: true })];
    const groups = [{ parameters: [a], lr: 1 }, { parameters: [b] }];
    expect(
      printed(new optim.Lion(groups, { lr: 0.5 })),
    ).toBe(`Lion: 2 parameters (2,002 elements), 0 steps, 0 B of state
  group 0 (1 parameter): lr: 1, betas: [0.9, 0.99], weightDecay: 0
  group 1 (1 parameter): lr: 0.5, betas: [0.9, 0.99], weightDecay: 0`);
  });

  test("a gradient scaler prints its scale", () => {
    expect(printed(new optim.GradScaler({ initialScale: 1024 }))).toMatch(
      /^GradScaler: scale 1024\n {2}initialScale: 1024, growthFactor: 2, backoffFactor: 0.5, growthInterval: 2000/,
    );
  });

  test("schedules print the calls that create them, with their factors", () => {
    expect(printed(optim.constant())).toBe("Schedule constant(): 1 in step 0");
    expect(printed(optim.linear({ total: 10 }))).toBe(
      "Schedule linear({ total: 10, from: 1, to: 0 }): 1 in step 0, 0 in step 10",
    );
    expect(printed(optim.cosineWithWarmup({ warmup: 99, total: 2000, floor: 0.1 }))).toBe(
      "Schedule cosineWithWarmup({ warmup: 99, total: 2000, floor: 0.1 }): " +
        "0.01 in step 0, 1 in step 99, 0.1 in step 2000",
    );
    expect(printed(optim.oneCycle({ total: 100 }))).toBe(
      'Schedule oneCycle({ total: 100, warmupShare: 0.3, divFactor: 25, finalDivFactor: 10000, anneal: "cosine" }): ' +
        "0.04 in step 0, 1 in step 29, 0.000004 in step 99",
    );
    expect(Object.keys(optim.constant())).toEqual([]);
  });

  test("generators print their state", () => {
    const generator = new Generator(42);
    expect(printed(generator)).toBe("Generator: seed 42, 0 calls so far");
    randn([2], { generator });
    expect(printed(generator)).toBe("Generator: seed 42, 1 call so far");
  });
});

test("tokenizers print their kind and size", () => {
  const bytes = 'ByteTokenizer "bytes": 256 tokens, no end of text, separator 10';
  expect(printed(new data.ByteTokenizer())).toBe(bytes);
  const gpt2 = 'Gpt2Tokenizer "gpt2": 50,257 tokens, end of text 50256, separator 50256';
  expect(printed(new data.Gpt2Tokenizer())).toBe(gpt2);
  const trained = data.trainBpe("low lower lowest", 262);
  expect(printed(trained)).toBe(
    `BpeTokenizer "${trained.name}": ${trained.vocabularySize} tokens, end of text 0, separator 0`,
  );
});

describe("printed readers of files", () => {
  test("safetensors files print their tensors", async () => {
    const path = join(folder, "model.safetensors");
    const weights = { weight: zeros([2, 3]), "a.longer.name": zeros([300], { dtype: "bfloat16" }) };
    await io.saveSafetensors(path, weights, { metadata: { format: "pt" } });
    const file = io.openSafetensors(path);
    const lines = ['format: "pt"', "weight         F32[2, 3]  24 B", "a.longer.name  BF16[300]  600 B"];
    expect(printed(file).split("\n  ").toSorted()).toEqual(
      [`safetensors ${path}: 2 tensors, 624 B`, ...lines].toSorted(),
    );
    file.close();
    expect(printed(file)).toStartWith(`safetensors ${path}: 2 tensors, 624 B (closed)\n`);
  });

  test("a list of many tensors is truncated", async () => {
    const path = join(folder, "many.safetensors");
    await io.saveSafetensors(path, Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`t${at}`, zeros([1])])));
    using file = io.openSafetensors(path);
    const lines = printed(file).split("\n  ");
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toBe("… and 11 more tensors");
  });

  test("shards that are not opened are printed as such", async () => {
    const path = await saveShards(folder, [{ a: zeros([2]), b: zeros([2]) }, { c: zeros([2]) }]);
    using file = io.openSafetensors(path);
    expect(printed(file)).toBe(`safetensors ${path}: 3 tensors in 2 files
  total_size: "24"
  model-00001-of-00002.safetensors: 2 tensors
  model-00002-of-00002.safetensors: 1 tensor`);
  });

  test("GGUF files print their tensors", async () => {
    const path = join(folder, "model.gguf");
    const metadata = { "general.architecture": "llama", "general.name": "x".repeat(100), "tokens.list": ["a", "b"] };
    await io.saveGguf(path, { weight: zeros([2, 3]) }, { metadata });
    const file = io.openGguf(path);
    expect(printed(file)).toBe(`GGUF 3 ${path}: 1 tensor, 24 B
  general.architecture: "llama"
  general.name: "${"x".repeat(59)}…
  tokens.list: 2 × string
  weight  f32[2, 3]  24 B`);
    file.close();
    expect(printed(file)).toStartWith(`GGUF 3 ${path}: 1 tensor, 24 B (closed)\n`);
  });
});

test("printed texts are made of their parts", () => {
  expect([0, 999, 1000, 123_456, 1e15].map(printedBytes)).toEqual(["0 B", "999 B", "1.00 KB", "123 KB", "1.00e+3 TB"]);
  expect([1, 2, 1e6].map((count) => printedCount(count, "step"))).toEqual(["1 step", "2 steps", "1,000,000 steps"]);
  expect(printedOptions({ a: [1, "x"], b: undefined, c: null })).toBe('a: [1, "x"], c: null');
  expect(printedLines(["a", "b"], "lines")).toEqual(["a", "b"]);
  expect(printedColumns([["a", "bb"], ["ccc", "d"]])).toEqual(["a    bb", "ccc  d"]); // biome-ignore format: rows
});
