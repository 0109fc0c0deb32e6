/** `orchard quantize` and `orchard generate` with its files: their output, and rejected arguments. */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { dequantizeGgml, io, nn, type QuantizedTensor, quantizeGgml, zeros } from "../../src/index.ts";
import { saveCheckpoint } from "../../src/io/checkpoint/save.ts";
import { Generator } from "../../src/random/generator.ts";
import { makeModel } from "../../src/train/model.ts";
import { settingsKey } from "../../src/train/quantized_file.ts";
import { presets } from "../../src/train/settings.ts";
import { trainingCommands } from "./command.ts";

const { folder, orchard } = trainingCommands();
const settings = { ...presets.tiny, width: 64, dtype: "bfloat16" as const };
const run = join(folder, "a-run");
// The seed differs from that of the model that the command creates before it loads these weights.
const model = makeModel(settings, 256, new Generator(3));
beforeAll(async () => {
  await saveCheckpoint(join(run, "checkpoints"), { model, step: 1, extra: { settings, scaler: null } });
});

describe("a run is quantized and generates", () => {
  const words = ["--prompt", "export const", "--tokens", "20", "--seed", "1"];

  test.each([
    ["q4_K", ["--format", "q4_K"], "model-q4_K.gguf", "q5_0"], // rows of 64 values are not super-blocks
    ["q8_0", ["--format", "q8_0", "--exclude", "blocks.1"], "model-q8_0.gguf", "q8_0"],
    ["affine", ["--format", "affine", "--group-size", "32"], "model-affine4.safetensors", "affine 4 bits"],
  ])("a run is quantized in %s and generates", async (_, flags, name, format) => {
    const made = await orchard("quantize", run, ...flags);
    expect([made.exitCode, made.err]).toEqual([0, ""]);
    const path = join(run, name);
    expect(made.out).toMatch(new RegExp(`^blocks\\.0\\.attention\\.output +\\[64, 64\\] +${format}`, "m"));
    expect(made.out).toContain(`${path}: ${statSync(path).size.toLocaleString("en")} bytes`);
    const weights = io.loadWeights(path);
    const [table, output] = name.endsWith(".gguf")
      ? ["token_embd.weight", "blk.1.attn_output.weight"]
      : ["tokenEmbedding.weight", "blocks.1.attention.output.weight"];
    expect(String(weights[table])).toContain(`QuantizedTensor ${format}`);
    expect(weights[output] instanceof Object).toBe(true);
    const first = await orchard("generate", path, ...words);
    expect(first.exitCode).toBe(0);
    expect(first.out).toStartWith("export const");
    expect(first.err).toMatch(/^20 tokens, [\d.e+]+ tokens\/s, \d+\.\d KB of weights\n$/);
    expect((await orchard("generate", path, ...words)).out).toBe(first.out);
    const fast = await orchard("generate", path, ...words, "--precision", "fast");
    expect([fast.exitCode, fast.out.startsWith("export const")]).toEqual([0, true]);
  });

  test("a run is quantized to another file, in safetensors", async () => {
    const out = join(folder, "other.safetensors");
    const made = await orchard("quantize", run, "--format", "q5_1", "--out", out);
    expect([made.exitCode, made.err]).toEqual([0, ""]);
    const w = io.loadWeights(out)["blocks.0.feedForward.up.weight"] as QuantizedTensor;
    expect([w.format, w.dtype]).toEqual(["q5_1", "float32"]);
    const trained = model.stateDict()["blocks.0.feedForward.up.weight"].to("float32").dataSync() as Float32Array;
    const packed = dequantizeGgml(w).dataSync() as Float32Array;
    for (let from = 0; from < trained.length; from += 32) {
      const block = trained.subarray(from, from + 32);
      const step = (Math.max(...block) - Math.min(...block)) / 31; // the distance of a block's 32 levels
      const errors = [...block].map((value, at) => Math.abs(value - packed[from + at]));
      expect([from, Math.max(...errors) <= step]).toEqual([from, true]);
    }
  });

  test("--stats also prints speed and bytes for a run that is not quantized", async () => {
    const { err, exitCode } = await orchard("generate", run, "--tokens", "3", "--stats");
    expect(exitCode).toBe(0);
    expect(err).toMatch(/^3 tokens, [\d.e+]+ tokens\/s, \d+\.\d KB of weights\n$/);
  });
});

describe("quantize prints an error of one sentence for", () => {
  test.each([
    ["another ending", ["--out", "x.bin"], "expected a .gguf or .safetensors file, got x.bin"],
    ["groups in GGUF", ["--format", "affine", "--out", "x.gguf"], "expected a .safetensors file for affine weights"],
    ["other bits", ["--format", "affine", "--bits", "7"], "one of 2, 3, 4, 5, 6, 8"],
    ["other groups", ["--format", "affine", "--group-size", "7"], "one of 32, 64, 128"],
    ["layers that there are not", ["--exclude", "block"], 'expected the path of a layer, got "block"'],
  ])("the error for %s is one sentence", async (_, flags, sentence) => {
    const { out, err, exitCode } = await orchard("quantize", run, ...flags);
    expect([exitCode, out]).toEqual([1, ""]);
    expect(err).toContain(sentence);
    expect(err).not.toContain("    at ");
    expect(existsSync("x.gguf")).toBe(false);
  });

  test("the errors for unknown formats, and folders without a run, are one sentence", async () => {
    expect((await orchard("quantize", run, "--format", "q9")).err).toContain("argument 'q9' is invalid");
    expect((await orchard("quantize", folder)).err).toContain(`${folder} has no run`);
  });
});

describe("generate prints an error of one sentence for", () => {
  const model = new nn.GPT({ vocabularySize: 256, contextLength: 32, layers: 2, heads: 2, width: 64 });
  nn.quantizeModel(model, { format: "q8_0" });
  const state = model.quantizedState();
  const good = JSON.stringify({ ...settings, dtype: "float32" });
  const refused = async (path: string, sentence: string) => {
    const { out, err, exitCode } = await orchard("generate", path, "--tokens", "2");
    expect([exitCode, out]).toEqual([1, ""]);
    expect(err).toContain(sentence);
    expect(err).not.toContain("    at ");
  };

  test("the error for a GGUF file of another program is one sentence", async () => {
    const path = join(folder, "foreign.gguf");
    await io.saveGguf(path, { w: quantizeGgml(zeros([1, 32]), "q4_0") }, { metadata: { [settingsKey]: 3 } });
    await refused(path, "expected a file written by `orchard quantize`, got one written by another program");
  });

  test.each([
    ["text that is no JSON", "{", "its settings: "],
    ["a list", "[]", "its settings: expected an object"],
    ["a width of text", JSON.stringify({ ...settings, width: "64" }), "its settings: width is not a setting of a run"],
    [
      "layers without end",
      JSON.stringify({ ...settings, layers: 1e9 }),
      "its settings: layers is not a setting of a run",
    ],
    [
      "another architecture",
      JSON.stringify({ ...settings, architecture: "x" }),
      "its settings: architecture is not a setting",
    ],
    ["a width that heads do not divide", JSON.stringify({ ...settings, heads: 3 }), "expected width to be a multiple"],
  ])("the error for settings that are %s is one sentence", async (_, text, sentence) => {
    const path = join(folder, "hostile.safetensors");
    await io.saveSafetensors(path, state, { metadata: { [settingsKey]: text } });
    await refused(path, sentence);
  });

  test("the error for weights of another model, or missing weights, is one sentence", async () => {
    const path = join(folder, "hostile.gguf");
    const other = JSON.stringify({ ...JSON.parse(good), width: 128 });
    await io.saveGguf(path, state, { metadata: { [settingsKey]: other } });
    await refused(path, "another shape or dtype");
    const { "tokenEmbedding.weight": _, ...fewer } = state;
    await io.saveGguf(path, fewer, { metadata: { [settingsKey]: good } });
    await refused(path, "tokenEmbedding.weight");
  });
});
