/** LoRA compared with PyPI's `peft` (scripts/fixtures/models/adapters.py), and gradient checkpointing. */
import { describe, expect, test } from "bun:test";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  ArgumentError,
  add,
  crossEntropy,
  Generator,
  io,
  manualSeed,
  mul,
  nn,
  noGrad,
  optim,
  randn,
  sum,
  type Tensor,
  tanh,
} from "../../../src/index.ts";
import { testFolder } from "../../support/folder.ts";
import { writeGguf } from "./loading/gguf_of.ts";
import { answersOf, errorOf, folderOf, numbers } from "./loading/oracle.ts";

const folder = testFolder("lora");
const adapters = ["llama", "phi3", "gpt2"] as const;
const adapterOf = (name: string) => join(folderOf(name), "adapter");
const load = async (name: string, options?: nn.LoadModelOptions) =>
  (await nn.loadModel(folderOf(name), { dtype: "float32", ...options })).model;
const logitsOf = (model: nn.LanguageModel, name: string): Tensor =>
  noGrad(() => model.forward(answersOf(name)["tokens"]));
const lossOf = (model: nn.LanguageModel, name: string): Tensor => {
  const tokens = answersOf(name)["tokens"];
  return crossEntropy(model.forward(tokens.narrow(1, 0, 11)), tokens.narrow(1, 1, 11), { dim: 2 });
};

describe.each(adapters)("peft's adapter of %s", (name) => {
  const want = io.loadSafetensors(join(adapterOf(name), "answers.safetensors"))["logits"];

  test("peft's adapter gives the same logits, merged and not", async () => {
    const model = await load(name);
    const plain = numbers(logitsOf(model, name));
    const modules = model.toString();
    const adapter = nn.loadLora(model, adapterOf(name));
    const adapted = logitsOf(model, name);
    expect(errorOf(adapted, want)).toBeLessThan(1e-5);
    adapter.merge();
    expect(model.toString()).toBe(modules);
    expect(errorOf(logitsOf(model, name), want)).toBeLessThan(1e-5);
    adapter.unmerge();
    expect(numbers(logitsOf(model, name))).toEqual(numbers(adapted));
    adapter.remove();
    expect(model.toString()).toBe(modules);
    expect(numbers(logitsOf(model, name))).toEqual(plain);
    expect(model.parameters().every(({ requiresGrad }) => requiresGrad)).toBe(true);
  });

  test("saving peft's adapter again writes the same file", async () => {
    const adapter = nn.loadLora(await load(name), adapterOf(name));
    const path = folder.file(name);
    await nn.saveLora(adapter, path);
    const files = [adapterOf(name), path].map((own) => io.loadSafetensors(join(own, "adapter_model.safetensors")));
    const [theirs, ours] = files.map((own) =>
      Object.entries(own)
        .map(([key, x]) => [key, x.shape, numbers(x)])
        .sort(),
    );
    expect(ours).toEqual(theirs);
    const config = JSON.parse(readFileSync(join(path, "adapter_config.json"), "utf8"));
    expect(config).toMatchObject({ peft_type: "LORA", r: adapter.rank, bias: "none", fan_in_fan_out: name === "gpt2" });
    const again = await load(name);
    nn.loadLora(again, path);
    expect(errorOf(logitsOf(again, name), want)).toBeLessThan(1e-5);
  });
});

describe("an adapter names its base model", () => {
  const write = (path: string, own: object) => {
    cpSync(adapterOf("llama"), path, { recursive: true });
    const config = JSON.parse(readFileSync(join(path, "adapter_config.json"), "utf8"));
    writeFileSync(join(path, "adapter_config.json"), JSON.stringify({ ...config, ...own }));
  };
  const saved = async (adapter: nn.LoraAdapter, path: string): Promise<string | null> => {
    await nn.saveLora(adapter, path);
    return JSON.parse(readFileSync(join(path, "adapter_config.json"), "utf8")).base_model_name_or_path;
  };

  test("the base model is the folder that the model was loaded from, or its name in the hub's cache", async () => {
    const plain = nn.lora(await load("llama"), { rank: 2 });
    expect([plain.baseModel, await saved(plain, folder.file("plain"))]).toEqual([folderOf("llama"), folderOf("llama")]);
    const cached = folder.file("hub", "models--some-one--a--model", "snapshots", "0f3a");
    cpSync(folderOf("llama"), cached, { recursive: true });
    const { model } = await nn.loadModel(cached);
    expect(await saved(nn.lora(model, { rank: 2 }), folder.file("cached"))).toBe("some-one/a--model");
  });

  test("the base model of a loaded adapter is the one that its config names", async () => {
    const path = folder.file("named");
    write(path, { base_model_name_or_path: "owner/base" });
    const adapter = nn.loadLora(await load("llama"), path);
    expect([adapter.baseModel, await saved(adapter, folder.file("again"))]).toEqual(["owner/base", "owner/base"]);
    expect(nn.loadLora(await load("llama"), adapterOf("llama")).baseModel).toBe(folderOf("llama"));
    const other = await load("qwen3");
    expect(() => nn.loadLora(other, path)).toThrow("does not match the model; the adapter was trained for owner/base");
    write(folder.file("wrong"), { base_model_name_or_path: 3 });
    expect(() => nn.loadLora(other, folder.file("wrong"))).toThrow("expected base_model_name_or_path to be a text");
  });
});

describe("lora adds small matrices that train", () => {
  test("LoRA adds nothing at first, and trains only its matrices", async () => {
    const model = await load("qwen3");
    const before = numbers(logitsOf(model, "qwen3"));
    const frozen = Object.entries(model.stateDict()).map(([key, x]) => [key, numbers(x)] as const);
    const adapter = nn.lora(model, { rank: 3, alpha: 6, generator: new Generator(1) });
    expect([...adapter.layers.keys()]).toEqual(
      [0, 1].flatMap((at) => ["query", "value"].map((own) => `blocks.${at}.attention.${own}`)),
    );
    expect(numbers(logitsOf(model, "qwen3"))).toEqual(before);
    expect(model.parameters()).toEqual(adapter.parameters());
    const optimizer = new optim.AdamW(adapter.parameters(), { lr: 0.05 });
    const losses = Array.from({ length: 12 }, () => {
      const loss = lossOf(model, "qwen3");
      loss.backward();
      optimizer.step();
      optimizer.zeroGrad();
      return loss.item() as number;
    });
    expect(losses.at(-1)!).toBeLessThan(0.7 * losses[0]);
    adapter.remove();
    expect(Object.entries(model.stateDict()).map(([key, x]) => [key, numbers(x)] as const)).toEqual(frozen);
  });

  test("gradients match the sum of the weights", async () => {
    const model = await load("llama");
    const adapter = nn.loadLora(model, adapterOf("llama"));
    const layer = adapter.layers.get("blocks.0.attention.query")!;
    lossOf(model, "llama").backward();
    const merged = await load("llama");
    const other = nn.loadLora(merged, adapterOf("llama"));
    other.merge();
    const { weight } = merged.blocks[0].attention!.query as nn.Linear;
    weight.requiresGrad = true;
    lossOf(merged, "llama").backward();
    // with G the gradient of W + s B A, those of A and B are s Bᵀ G and s G Aᵀ
    const scaled = mul(weight.grad!, layer.scale);
    expect(errorOf(layer.down.weight.grad!, layer.up.weight.detach().T.matmul(scaled))).toBeLessThan(1e-5);
    expect(errorOf(layer.up.weight.grad!, scaled.matmul(layer.down.weight.detach().T))).toBeLessThan(1e-5);
  });

  test("LoRA works on quantized weights, which do not change", async () => {
    const model = await load("llama", { quantize: "q8_0" });
    const before = numbers(logitsOf(model, "llama"));
    const adapter = nn.lora(model, { rank: 2, targets: ["query", "up"] });
    const optimizer = new optim.SGD(adapter.parameters(), { lr: 0.1 });
    const first = lossOf(model, "llama");
    first.backward();
    optimizer.step();
    expect(lossOf(model, "llama").item() as number).toBeLessThan(first.item() as number);
    const adapted = logitsOf(model, "llama");
    adapter.merge();
    expect(errorOf(logitsOf(model, "llama"), adapted)).toBeLessThan(1e-5);
    adapter.remove();
    expect(numbers(logitsOf(model, "llama"))).toEqual(before);
  });

  test("in float16, the sum is computed in float32", async () => {
    const model = await load("llama", { dtype: "float16" });
    nn.loadLora(model, adapterOf("llama"));
    const want = io.loadSafetensors(join(adapterOf("llama"), "answers.safetensors"))["logits"];
    const logits = logitsOf(model, "llama");
    expect(logits.dtype).toBe("float16");
    expect(errorOf(logits, want)).toBeLessThan(0.02);
  });

  test("LoRA does not adapt experts", async () => {
    const adapter = nn.lora(await load("qwen3_moe"), { rank: 1, targets: ["gate"] });
    expect([...adapter.layers.keys()]).toEqual(["blocks.1.feedForward.gate"]);
  });
});

describe("the error names what is rejected:", () => {
  test("models that loadModel did not return are rejected", () => {
    const sizes = { vocabularySize: 8, contextLength: 4, layers: 1, heads: 1, width: 4 };
    for (const model of [new nn.GPT(sizes), new nn.Llama(sizes)]) {
      expect(() => nn.lora(model, { rank: 1 })).toThrow("expected model to be a model that loadModel returned");
      expect(() => nn.loadLora(model, adapterOf("llama"))).toThrow(
        "expected model to be a model that loadModel returned",
      );
    }
  });

  test("targets, states, and a second adapter are rejected", async () => {
    const model = await load("llama");
    expect(() => nn.lora(model, { rank: 1, targets: ["query", "q_proj"] })).toThrow('got "q_proj"');
    expect(() => nn.lora(model, { rank: 1, targets: [] })).toThrow(ArgumentError);
    const adapter = nn.lora(model, { rank: 1 });
    expect(() => nn.lora(model, { rank: 1 })).toThrow("expected a model without adapters");
    expect(() => adapter.unmerge()).toThrow("expected the adapter to be merged, but it is active");
    adapter.merge();
    expect(() => adapter.merge()).toThrow("expected the adapter to be active, but it is merged");
    adapter.remove();
    adapter.remove();
    expect(() => adapter.merge()).toThrow("but it is removed");
  });

  test.each<[object, string]>([
    [{ peft_type: "IA3" }, 'expected peft_type to be "LORA"'],
    [{ use_dora: true }, "expected use_dora to be false"],
    [{ modules_to_save: ["lm_head"] }, "expected modules_to_save to be null"],
    [{ rank_pattern: { q_proj: 2 } }, "expected rank_pattern to be {}"],
    [{ r: 0 }, "expected r to be a whole number of at least 1"],
    [{ r: 5 }, "another shape"],
  ])("a config with %p is rejected", async (own, message) => {
    const path = folder.file(`config-${message.replace(/\W/g, "")}`);
    cpSync(adapterOf("llama"), path, { recursive: true });
    const config = JSON.parse(readFileSync(join(path, "adapter_config.json"), "utf8"));
    writeFileSync(join(path, "adapter_config.json"), JSON.stringify({ ...config, ...own }));
    const model = await load("llama");
    const modules = model.toString();
    expect(() => nn.loadLora(model, path)).toThrow(message);
    expect(model.toString()).toBe(modules);
    expect(model.parameters().length).toBeGreaterThan(10);
  });

  test("an adapter of another model is rejected", async () => {
    const model = await load("gpt2");
    expect(() => nn.loadLora(model, adapterOf("llama"))).toThrow(nn.StateDictError);
  });
});

test("adapters work on a GGUF file of llama, whose query and key rows have another order", async () => {
  const path = folder.file("llama.gguf");
  await writeGguf("llama", path, "float32");
  const want = io.loadSafetensors(join(adapterOf("llama"), "answers.safetensors"))["logits"];
  const { model } = await nn.loadModel(path);
  const adapter = nn.loadLora(model, adapterOf("llama"));
  expect([...adapter.layers.keys()].some((own) => own.endsWith("query"))).toBe(true);
  expect(errorOf(logitsOf(model, "llama"), want)).toBeLessThan(1e-5);
  await nn.saveLora(adapter, folder.file("of-gguf"));
  const [ours, theirs] = [folder.file("of-gguf"), adapterOf("llama")].map((own) =>
    io.loadSafetensors(join(own, "adapter_model.safetensors")),
  );
  for (const [name, x] of Object.entries(theirs)) expect(numbers(ours[name])).toEqual(numbers(x));
});

describe("checkpoint recomputes blocks without changing results", () => {
  const layers = () => {
    const generator = new Generator(5);
    return [64, 64, 64].map(
      (width) => new nn.Sequential(new nn.Linear(width, width, { generator }), new nn.Dropout(0.3), new nn.Tanh()),
    );
  };
  const run = (blocks: readonly nn.Sequential[], x: Tensor, isKept: boolean): Tensor => {
    manualSeed(3);
    return blocks.reduce(
      (y, block) => (isKept ? (block.forward(y) as Tensor) : nn.checkpoint((own) => block.forward(own) as Tensor, y)),
      x,
    );
  };

  test("checkpoint has the same result and gradients, bit by bit, with dropout", () => {
    const results = [true, false].map((isKept) => {
      const blocks = layers();
      const x = randn([4, 64], { generator: new Generator(2), requiresGrad: true });
      const y = run(blocks, x, isKept);
      sum(mul(y, y)).backward();
      const after = randn([2]).toArray();
      return [y, x.grad!, ...blocks.flatMap((block) => block.parameters().map(({ grad }) => grad!))]
        .map(numbers)
        .concat(after as never);
    });
    expect(results[1]).toEqual(results[0]);
  });

  test("checkpoint keeps only its inputs until the backward pass", () => {
    const made: Tensor[] = [];
    const body = (x: Tensor): Tensor => {
      made.push(tanh(x), tanh(tanh(x)));
      return mul(made.at(-2)!, made.at(-1)!);
    };
    const x = randn([64, 64], { requiresGrad: true });
    const y = nn.checkpoint(body, x);
    expect(made.map(({ isDisposed, storage }) => [isDisposed, storage.isReleased])).toEqual([
      [true, true],
      [true, true],
    ]);
    const gradient = randn([64, 64]);
    y.backward(gradient);
    expect(made).toHaveLength(4);
    const again = x.detach();
    again.requiresGrad = true;
    body(again).backward(gradient);
    expect(numbers(x.grad!)).toEqual(numbers(again.grad!));
  });

  test("in noGrad nothing is recorded; inputs without gradients get none", () => {
    const [block] = layers();
    const x = randn([4, 64]);
    expect(noGrad(() => nn.checkpoint((own) => block.forward(own) as Tensor, x)).requiresGrad).toBe(false);
    sum(nn.checkpoint((own) => block.forward(own) as Tensor, x)).backward();
    expect(x.grad).toBeNull();
    expect(block.parameters().every(({ grad }) => grad !== null)).toBe(true);
  });

  test("several inputs work, also if a body uses some of them twice", () => {
    const [a, b] = [randn([3], { requiresGrad: true }), randn([3], { requiresGrad: true })];
    sum(nn.checkpoint((x, y) => add(mul(x, x), mul(x, y)), a, b)).backward();
    expect(errorOf(a.grad!, add(mul(a.detach(), 2), b.detach()))).toBeLessThan(1e-6);
    expect(numbers(b.grad!)).toEqual(numbers(a));
  });

  test("tensors with a history have to be inputs; there are no second-order gradients", () => {
    const x = randn([3], { requiresGrad: true });
    const made = mul(x, 2);
    expect(() => nn.checkpoint((y) => add(y, made), x)).toThrow("got the result of an earlier mul");
    expect(() => nn.checkpoint((_: Tensor) => 5 as never, x)).toThrow("expected body to return a tensor, got 5");
    const y = sum(nn.checkpoint((own) => mul(own, own), x));
    expect(() => y.backward(undefined, { createGraph: true })).toThrow("gradients of gradients are not supported");
  });
});
