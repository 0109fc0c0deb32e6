/** `orchard train --model`, and commands that accept its adapter, as processes. */
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { io, nn, noGrad, type Tensor, tensor, toDType } from "../../../src/index.ts";
import { mergeModel } from "../../../src/train/tuning/merge.ts";
import { writeGguf } from "../../nn/models/loading/gguf_of.ts";
import { errorOf, folderOf, numbers } from "../../nn/models/loading/oracle.ts";
import { writeModel } from "../../serve/folder.ts";
import { bunWords } from "../../support/program.ts";
import { lossesOf, trainingCommands } from "../command.ts";

const { folder, environment, orchard } = trainingCommands();
const [model, data, run] = ["model", "chats.jsonl", "run"].map((own) => join(folder, own)) as [string, string, string];

test("a run trains, resumes, generates, chats, and merges", async () => {
  await writeModel(model);
  const line = (at: number) =>
    `{"messages": [{"role": "user", "content": "the ${at}"}, {"role": "assistant", "content": "is ${at} f(x)."}]}\n`;
  writeFileSync(data, Array.from({ length: 20 }, (_, at) => line(at)).join(""));
  const sizes = ["--lora", "4", "--context", "64", "--steps", "30", "--learning-rate", "0.05", "--lora-targets"];
  const targets = ["query", "value", "up", "down", "output"];
  const own = [...sizes, ...targets, "--sample-tokens", "8", "--out", run];
  const { out, err, exitCode } = await orchard("train", "--model", model, "--data", data, ...own);
  expect([exitCode, err.includes("failed")]).toEqual([0, false]);
  expect(out).toMatch(/^adapter +rank 4 at 10 layers: \S+ parameters, alpha 4$/m);
  expect(out).toMatch(/^chats +20 examples \(1 held out\), \S+ tokens, \S+ of them targets$/m);
  expect(out).toContain("│ the ");
  expect(out).toContain(`merge it: `);
  expect(readdirSync(run).sort()).toEqual(["adapter", "checkpoints", "log.jsonl", "loss.png", "loss.svg"]);
  const losses = lossesOf(run);
  expect(losses).toHaveLength(30);
  expect(losses.at(-1)!).toBeLessThan(0.5 * losses[0]);

  const resumed = await orchard("train", "--resume", run, "--steps", "32");
  expect([resumed.exitCode, lossesOf(run).length]).toEqual([0, 32]);
  const adapter = join(run, "adapter");
  const asked = [
    "--prompt",
    "<|start|>user\nthe 3<|end|>\n<|start|>assistant\n",
    "--tokens",
    "6",
    "--temperature",
    "0",
  ];
  const answers = await Promise.all([
    orchard("generate", run, ...asked),
    orchard("generate", model, "--adapter", adapter, ...asked),
    orchard("generate", model, ...asked),
  ]);
  expect(answers.map((each) => each.exitCode)).toEqual([0, 0, 0]);
  const [ofRun, ofAdapter, ofModel] = answers.map((each) => each.out);
  expect(ofAdapter).toBe(ofRun);
  expect(ofModel).not.toBe(ofRun);

  const merged = join(folder, "merged");
  expect((await orchard("merge", model, adapter, "--out", merged)).out).toContain("merged the adapter into 10 layers");
  const again = await orchard("merge", model, adapter, "--out", merged);
  expect([again.exitCode, again.err]).toEqual([1, `[merge] expected a folder without a model, got ${merged}\n`]);
  const tokens = tensor([[1, 2, 3, 4, 5]], { dtype: "int32" });
  const logits = (each: nn.LanguageModel) => noGrad(() => each.forward(tokens) as Tensor);
  const { model: adapted } = await nn.loadModel(model);
  nn.loadLora(adapted, adapter);
  const { model: whole, chatTemplate } = await nn.loadModel(merged);
  expect(errorOf(logits(whole), logits(adapted))).toBeLessThan(1e-5);
  expect(chatTemplate).toBeDefined();

  const words = ["chat", model, "--adapter", adapter, "--temperature", "0", "--tokens", "6"];
  const chatting = Bun.spawn([...bunWords, "src/cli/orchard.ts", ...words], {
    ...({ stdout: "pipe", stderr: "pipe" } as const),
    cwd: packageRoot,
    env: environment,
    stdin: Buffer.from("the 3\n"),
  });
  const said = await new Response(chatting.stdout).text();
  expect(await chatting.exited).toBe(0);
  expect(ofRun).toContain(said.trim());
});

test.each<[string, string[]]>([
  ["--lora requires --model", ["--lora", "4"]],
  ["quantize requires --model", ["--quantize", "q4_0"]],
  ["layers can't be set for a pretrained model", ["--model", folder, "--lora", "4", "--layers", "2", "--data", "x"]],
  ["--adapter requires a Hugging Face model folder or a .gguf file", []],
])("%s fine-tunes", async (problem, words) => {
  const command = words.length > 0 ? ["train", ...words] : ["generate", folder, "--adapter", folder];
  const { err, exitCode } = await orchard(...command);
  expect([exitCode, err]).toEqual([1, expect.stringContaining(problem)]);
});

test.each(["gpt2", "phi3", "llama"] as const)("merged into a GGUF file, %s has the adapter's logits", async (name) => {
  const [base, out] = [join(folder, `${name}.gguf`), join(folder, `merged-${name}.gguf`)];
  await writeGguf(name, base, "float32");
  await mergeModel(base, join(folderOf(name), "adapter"), out);
  using before = io.openGguf(base);
  using after = io.openGguf(out);
  expect([after.metadata, after.names]).toEqual([before.metadata, before.names]);
  for (const own of after.names) expect(after.info(own)).toEqual(before.info(own));
  const { tokens } = io.loadSafetensors(join(folderOf(name), "answers.safetensors")) as { tokens: Tensor };
  const logits = (each: nn.LanguageModel) => noGrad(() => each.forward(tokens) as Tensor);
  const [{ model: whole }, { model: adapted }] = [await nn.loadModel(out), await nn.loadModel(base)];
  const plain = numbers(logits(adapted));
  nn.loadLora(adapted, join(folderOf(name), "adapter"));
  expect(numbers(logits(adapted))).not.toEqual(plain);
  expect(errorOf(logits(whole), logits(adapted))).toBeLessThan(1e-5);
  const refused = (to: string) => expect(mergeModel(base, join(folderOf(name), "adapter"), to)).rejects;
  await refused(out).toThrow("expected a file that does not exist");
  await refused(join(folder, "other")).toThrow("expected a .gguf file for one");
});

test.each(["quantization", "quantization_config", "compression_config"])(
  "adapters are not merged into weights with %s",
  async (key) => {
    const path = join(folder, key);
    mkdirSync(path, { recursive: true });
    writeFileSync(
      join(path, "config.json"),
      JSON.stringify({ model_type: "llama", [key]: { bits: 4, group_size: 64 } }),
    );
    const merged = mergeModel(path, join(folderOf("llama"), "adapter"), join(folder, `of-${key}`));
    await expect(merged).rejects.toThrow(`expected a folder with plain weights, got ${path} with ${key}`);
  },
);

test.each(["gpt2", "phi3", "llama"])("a merged model has the names, forms and dtypes of %s", async (name) => {
  const [own, out] = [folderOf(name), join(folder, `merged-${name}`)];
  mkdirSync(folder, { recursive: true });
  await mergeModel(own, join(own, "adapter"), out);
  const [before, after] = [own, out].map((path) => io.loadSafetensors(join(path, "model.safetensors")));
  const forms = (state: Record<string, Tensor>) =>
    Object.entries(state)
      .map(([key, x]) => `${key} ${x.describe()}`)
      .sort();
  expect(forms(after)).toEqual(forms(before));
  const tokens = io.loadSafetensors(join(own, "answers.safetensors"))["tokens"];
  const logits = (each: nn.LanguageModel) => noGrad(() => each.forward(tokens) as Tensor);
  const { model: merged } = await nn.loadModel(out, { dtype: "float32" });
  const { model: summed } = await nn.loadModel(own, { dtype: "float32" });
  const adapter = nn.loadLora(summed, join(own, "adapter"));
  adapter.merge();
  const plain = numbers(logits(summed));
  for (const path of adapter.layers.keys()) {
    const { weight } = summed.namedModules().get(path) as nn.Linear;
    noGrad(() => weight.copy_(toDType(toDType(weight, "float16"), "float32"))); // rounded as in the merged file
  }
  expect(numbers(logits(summed))).not.toEqual(plain);
  expect(errorOf(logits(merged), logits(summed))).toBeLessThan(1e-6);
});
