/** `loadModel` apart from results: files, dtypes, quantized weights, memory, and rejected input. */
import { afterEach, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  ArgumentError,
  FileError,
  FileFormatError,
  io,
  memory,
  nn,
  noGrad,
  OutOfMemoryError,
  randn,
  tensor,
} from "../../../../src/index.ts";
import { architectures } from "../../../../src/nn/models/loading/architectures.ts";
import { encoderArchitectures } from "../../../../src/nn/models/loading/encoder/architectures.ts";
import { encoderDecoderRows } from "../../../../src/nn/models/loading/encoder_decoder/architectures.ts";
import { fieldsOf } from "../../../../src/nn/models/loading/fields.ts";
import { alternativeTo } from "../../../../src/nn/models/loading/unsupported.ts";
import { dualArchitectures, visionArchitectures } from "../../../../src/nn/models/loading/vision/architectures.ts";
import { setMemoryLimit } from "../../../../src/tensor/reserve.ts";
import type { Tensor } from "../../../../src/tensor/tensor.ts";
import { testFolder } from "../../../support/folder.ts";
import { collectGarbage } from "../../../support/garbage.ts";
import { saveShards } from "../../../support/shards.ts";
import { writeGguf, writeWide } from "./gguf_of.ts";
import { answersOf, errorOf, folderOf } from "./oracle.ts";

const folder = testFolder("load-model");
let count = 0;
const weightsOf = (name: string) => io.loadSafetensors(join(folderOf(name), "model.safetensors"));

/** A copy of a model's folder, with changed fields in its config. */
function copyOf(name: string, config: object = {}): string {
  const path = folder.file(`${name}-${count++}`);
  cpSync(folderOf(name), path, { recursive: true });
  const own = JSON.parse(readFileSync(join(path, "config.json"), "utf8"));
  writeFileSync(join(path, "config.json"), JSON.stringify({ ...own, ...config }));
  return path;
}

const logitsOf = (model: nn.LanguageModel, name: string): Tensor =>
  noGrad(() => model.forward(answersOf(name)["tokens"]));
const load = (path: string, options?: nn.LoadModelOptions) => nn.loadModel(path, { dtype: "float32", ...options });
const failure = (run: Promise<unknown>): Promise<Error & { code: string }> =>
  run.then(
    () => {
      throw new Error("expected loading to fail, but it succeeded");
    },
    (error) => error,
  );

test("loadModel returns a folder's config, chat template and generation settings", async () => {
  const path = copyOf("llama");
  writeFileSync(
    join(path, "generation_config.json"),
    JSON.stringify({ eos_token_id: [5, 6], do_sample: true, temperature: 0.6, top_p: 0.9, top_k: 40 }),
  );
  writeFileSync(join(path, "tokenizer_config.json"), JSON.stringify({ chat_template: "{{ messages }}" }));
  const { model, report: _, ...others } = await nn.loadModel(path);
  expect(others).toEqual({
    path,
    source: "huggingFace",
    chatTemplate: "{{ messages }}",
    config: JSON.parse(readFileSync(join(path, "config.json"), "utf8")),
    generation: {
      beginToken: 1,
      stopTokens: [5, 6],
      paddingToken: 0,
      temperature: 0.6,
      topK: 40,
      topP: 0.9,
      repetitionPenalty: undefined,
    },
  });
  expect(model.training).toBe(false);
  expect(model.contextLength).toBe(128);
  writeFileSync(join(path, "chat_template.jinja"), "{{ other }}");
  expect((await nn.loadModel(path)).chatTemplate).toBe("{{ other }}");
});

test("without a dtype option, the model has the file's", async () => {
  const { model } = await nn.loadModel(folderOf("mixtral"));
  expect(new Set(model.parameters().map(({ dtype }) => dtype))).toEqual(new Set(["float16"]));
  expect(errorOf(logitsOf(model, "mixtral"), answersOf("mixtral")["logits"])).toBeLessThan(0.02);
});

test.each(["float16", "bfloat16"] as const)("a model loaded in %s has nearly the same logits", async (dtype) => {
  for (const name of ["qwen3", "gemma3"]) {
    const { model } = await nn.loadModel(folderOf(name), { dtype });
    const logits = logitsOf(model, name);
    expect(logits.dtype).toBe(dtype);
    // each layer rounds its results a few times, to 11 bits (float16) or 8 bits (bfloat16)
    expect(errorOf(logits, answersOf(name)["logits"])).toBeLessThan(dtype === "float16" ? 0.02 : 0.15);
  }
});

test("a model in several files, which also store its tied head, loads", async () => {
  const path = copyOf("qwen2");
  const all = Object.entries({
    ...weightsOf("qwen2"),
    "lm_head.weight": weightsOf("qwen2")["model.embed_tokens.weight"],
  });
  rmSync(join(path, "model.safetensors"));
  await saveShards(path, [Object.fromEntries(all.slice(0, 9)), Object.fromEntries(all.slice(9))]);
  const { model } = await load(path);
  expect(errorOf(logitsOf(model, "qwen2"), answersOf("qwen2")["logits"])).toBeLessThan(1e-5);
});

test("the text part of a vision model loads", async () => {
  const path = copyOf("gemma3");
  const all = Object.entries(JSON.parse(readFileSync(join(path, "config.json"), "utf8")));
  // the config of the text part may omit fields with default values, and contains fields of the other parts
  const text = Object.fromEntries(all.filter(([key, value]) => fieldsOf.gemma3_text[key] !== value));
  const around = { model_type: "gemma3", vision_config: { hidden_size: 2 }, boi_token_index: 5 };
  const write = (own: object) =>
    writeFileSync(join(path, "config.json"), JSON.stringify({ ...around, ...own, text_config: text }));
  write({});
  const named = Object.entries(weightsOf("gemma3")).map(([name, x]) => [`language_model.${name}`, x] as const);
  const picture = { "vision_tower.x.weight": randn([2, 2]), "multi_modal_projector.y": randn([2]) };
  await io.saveSafetensors(join(path, "model.safetensors"), { ...Object.fromEntries(named), ...picture });
  const { model } = await load(path);
  expect(errorOf(logitsOf(model, "gemma3"), answersOf("gemma3")["logits"])).toBeLessThan(1e-5);
  write({ audio_config: { hidden_size: 2 } });
  expect((await failure(load(path))).message).toContain("audio_config is not a setting of a vision-language model");
  write({ tie_word_embeddings: false });
  expect(await failure(load(path))).toMatchObject({ missing: ["lm_head.weight"] });
});

test("a model whose tokens attend to later ones has no cache, and embeds", async () => {
  const { model } = await load(copyOf("gemma3", { use_bidirectional_attention: true }));
  expect(() => model.newCache()).toThrow(expect.objectContaining({ code: "bidirectional" }));
  const generated = failure(Array.fromAsync(nn.generate(model, [1, 2, 3])));
  expect((await generated).message).toContain("or generate text; use forward, hiddenStates or nn.embed");
  const [alone, padded] = [
    [3, 4, 5],
    [0, 0, 3, 4, 5],
  ].map((row) => tensor([row], { dtype: "int32" }));
  const own = noGrad(() => model.hiddenStates(alone));
  const behind = noGrad(() => model.hiddenStates(padded, { padding: [2] })).narrow(1, 2, 3);
  expect(errorOf(behind, own)).toBeLessThan(1e-6);
  const vector = await nn.embed(model, [[3, 4, 5]], { normalize: false });
  expect(errorOf(vector, own.mean(1))).toBeLessThan(1e-6);
});

test("Gemma 3's settings of rotation before version 5 of transformers are read", async () => {
  const older = {
    rope_parameters: null,
    rope_theta: 10000,
    rope_local_base_freq: 100,
    rope_scaling: { rope_type: "linear", factor: 8 },
  };
  const { model } = await load(copyOf("gemma3", older));
  expect(errorOf(logitsOf(model, "gemma3"), answersOf("gemma3")["logits"])).toBeLessThan(1e-5);
});

describe("models can be quantized when they are loaded", () => {
  test.each(["huggingFace", "gguf"] as const)("a model can be quantized at load, from %s", async (source) => {
    const path = source === "gguf" ? folder.file("wide.gguf") : folderOf("mixtral");
    if (source === "gguf") await writeWide(path, "float32");
    const [exact, packed] = [await load(path), await load(path, { quantize: "q8_0" })];
    const formats = Object.values(packed.model.quantizedState()).map((own) =>
      "format" in own ? own.format : own.dtype,
    );
    expect(new Set(formats)).toEqual(new Set(["q8_0", "float32"]));
    const error = errorOf(logitsOf(packed.model, "qwen2"), logitsOf(exact.model, "qwen2"));
    expect(error).toBeGreaterThan(0);
    expect(error).toBeLessThan(0.1);
    expect(packed.report.allocatedBytes).toBeLessThan(0.6 * (exact.report.mappedBytes + exact.report.allocatedBytes));
  });

  test("quantized weights of a file stay quantized, and are mapped", async () => {
    const path = folder.file("q4.gguf");
    await writeWide(path, "q4_K");
    const { model, report } = await load(path, { precision: "fast" });
    const { attention } = model.blocks[0];
    expect(String(attention!.query)).toContain("q4_K, bias: false, fast");
    expect(report.formats).toMatchObject({ q4_K: 16, float32: 5 });
    expect(report.mappedBytes).toBe(0); // a tensor below 64 KB is read instead of mapped
    expect(report.fileBytes).toBe(report.allocatedBytes);
  });
});

describe("loading a model limits its memory", () => {
  afterEach(() => setMemoryLimit(null));

  /** Writes a model that takes 1.2 MB in float32. */
  async function larger(): Promise<string> {
    const path = copyOf("llama", { hidden_size: 128, intermediate_size: 256, head_dim: 32, num_hidden_layers: 1 });
    const p = "model.layers.0.";
    const shapes: Record<string, number[]> = {
      "model.embed_tokens": [97, 128],
      "model.norm": [128],
      lm_head: [97, 128],
      [`${p}input_layernorm`]: [128],
      [`${p}post_attention_layernorm`]: [128],

      [`${p}self_attn.q_proj`]: [128, 128],
      [`${p}self_attn.k_proj`]: [64, 128],
      [`${p}self_attn.v_proj`]: [64, 128],
      [`${p}self_attn.o_proj`]: [128, 128],
      [`${p}mlp.gate_proj`]: [256, 128],
      [`${p}mlp.up_proj`]: [256, 128],
      [`${p}mlp.down_proj`]: [128, 256],
    };
    const tensors = Object.entries(shapes).map(([name, shape]) => [`${name}.weight`, randn(shape)]);
    await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
    return path;
  }
  const bytes = 4 * (2 * 97 * 128 + 3 * 128 + 2 * 128 * 128 + 2 * 64 * 128 + 3 * 256 * 128);

  test("memory is reported before a weight is read; large weights in the file's dtype are mapped", async () => {
    const path = await larger();
    const reports: nn.MemoryReport[] = [];
    const { report, model } = await nn.loadModel(path, { onReport: (own) => reports.push(own) });
    expect(reports).toEqual([report]);
    const large = 4 * (2 * 128 * 128 + 3 * 256 * 128); // tensors of at least 64 KB are mapped
    expect(report).toMatchObject({ fileBytes: bytes, mappedBytes: large, allocatedBytes: bytes - large });
    expect(report.cacheBytesPerToken).toBe(2 * 2 * 32 * 4);
    expect(String(report)).toContain(`${bytes} bytes of weights: ${large} mapped`);
    expect(model.parameters().every(({ requiresGrad }) => requiresGrad)).toBe(true);
    const half = await nn.loadModel(path, { dtype: "float16" });
    expect(half.report).toMatchObject({ mappedBytes: 0, allocatedBytes: bytes / 2 + 2 * 3 * 128 });
  });

  test("insufficient memory is an error with the figures, before loading starts", async () => {
    const path = await larger();
    await collectGarbage(); // garbage of other tests would be freed while the model loads
    const { host, metal } = memory();
    setMemoryLimit(host.liveBytes + metal.liveBytes + 400_000);
    const seen: nn.MemoryReport[] = [];
    const error = await failure(nn.loadModel(path, { dtype: "float64", onReport: (own) => seen.push(own) }));
    expect(error).toBeInstanceOf(OutOfMemoryError);
    expect(error.code).toBe("notEnoughMemory");
    expect(error.message).toContain(`${seen[0].peakBytes} bytes`);
    await nn.loadModel(path); // without a conversion, weights are mapped
  });
});

test("no supported architecture has advice to load another one", () => {
  const tables = [architectures, encoderArchitectures, encoderDecoderRows, visionArchitectures, dualArchitectures];
  const others = ["resnet", "convnext", "segformer", "depth_anything", "detr", "rt_detr", "sam", "wav2vec2", "whisper"];
  const names = [...tables.flatMap((table) => Object.keys(table)), ...others];
  expect(names.filter((name) => alternativeTo(name) !== undefined)).toEqual([]);
});

describe("the error names what is rejected:", () => {
  test.each<[string, object, string, string]>([
    [
      "llama",
      { model_type: "zamba2" },
      "unknownArchitecture",
      'model_type "zamba2" is not supported; of recurrent language models mamba2',
    ],
    [
      "llama",
      { model_type: "mamba9" },
      "unknownArchitecture",
      'got "mamba9"; to support another architecture, add a row',
    ],
    ["llama", { model_type: "vision-encoder-decoder" }, "unknownArchitecture", "to read text in images, load a"],
    ["llama", { model_type: null }, "unknownArchitecture", "got none"],
    ["llama", { rope_parameters: { rope_type: "su" } }, "unknownScaling", 'got "su"'],
    ["llama", { hidden_act: "relu6" }, "unknownActivation", 'got "relu6"'],
    ["llama", { hidden_size: "32" }, "invalidConfig", "expected hidden_size to be a whole number of at least 1"],
    ["llama", { num_hidden_layers: 1e6 }, "invalidConfig", "expected num_hidden_layers to be at most 65536"],
    ["llama", { rope_parameters: { rope_type: "linear" } }, "invalidConfig", "expected rope_parameters.factor"],
    ["gpt2", { add_cross_attention: true }, "unsupportedConfig", "expected add_cross_attention to be false"],
    ["llama", { residual_multiplier: 0.2 }, "unsupportedConfig", "expected residual_multiplier to be 1, the only"],
    ["llama", { attention_multiplier: 0.2 }, "unsupportedConfig", "attention_multiplier is not a setting of llama"],
    [
      "llama",
      { attention_multiplier: 0.2, logits_scaling: 8 },
      "unsupportedConfig",
      "attention_multiplier is not a setting of llama (got 0.2); expected logits_scaling to be 1, the only",
    ],
    ["llama", { rope_scaling: { stretch: 2 } }, "unsupportedConfig", "rope_scaling.stretch is not a setting of rotary"],
    [
      "llama",
      { num_attention_heads: 3, head_dim: 8 },
      "invalidConfig",
      "expected num_attention_heads to be a multiple",
    ],
    ["mixtral", { num_experts_per_tok: 9 }, "invalidConfig", "expected num_experts_per_tok to be at most 4"],
    ["gpt2", { n_head: 5 }, "invalidConfig", "expected n_embd to be a multiple of n_head"],
  ])("%s with %p is rejected", async (name, config, code, text) => {
    const error = await failure(load(copyOf(name, config)));
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(text)]);
    expect(error instanceof ArgumentError || error instanceof FileFormatError).toBe(true);
  });

  test("the error lists all mismatching weights, and nothing is loaded", async () => {
    const path = copyOf("llama", { vocab_size: 98 });
    const { "model.norm.weight": norm, ...others } = weightsOf("llama");
    await io.saveSafetensors(join(path, "model.safetensors"), { ...others, stray: norm });
    const error = await failure(load(path));
    expect(error).toBeInstanceOf(nn.StateDictError);
    expect(error).toMatchObject({
      missing: ["model.norm.weight"],
      unexpected: ["stray"],
      different: ["model.embed_tokens.weight", "lm_head.weight"],
    });
    expect(error.message).toContain("expected [98, 32], got F16[97, 32]");
  });

  test("missing files, and files without a model, are errors", async () => {
    expect(await failure(load(folder.file("none")))).toBeInstanceOf(FileError);
    mkdirSync(folder.file("empty"), { recursive: true });
    expect(await failure(load(folder.file("empty")))).toBeInstanceOf(FileError);
    writeFileSync(folder.file("model.bin"), "");
    expect((await failure(load(folder.file("model.bin")))).code).toBe("unknownFile");
    const path = copyOf("llama");
    writeFileSync(join(path, "config.json"), "[]");
    expect((await failure(load(path))).code).toBe("invalidConfig");
  });

  test.each(["pytorch_model.bin", "pytorch_model.bin.index.json"])(
    "%s is an error that says how to convert it",
    async (name) => {
      const path = copyOf("llama");
      rmSync(join(path, "model.safetensors"));
      writeFileSync(join(path, name), "");
      const error = await failure(load(path));
      expect([error.code, error.message]).toEqual([
        "pickledWeights",
        expect.stringContaining(`${name} is not supported`),
      ]);
      expect(error.message).toContain("save_pretrained");
    },
  );

  test("the error names the unknown architecture of a GGUF file", async () => {
    const path = folder.file("other.gguf");
    await io.saveGguf(path, { x: randn([32]) }, { metadata: { "general.architecture": "rwkv" } });
    const error = await failure(load(path));
    expect(error.message).toContain("expected general.architecture to be one of gpt2, llama, ");
    expect(error.message).toContain('got "rwkv"');
  });

  test("the error names the missing metadata of a GGUF file", async () => {
    const path = folder.file("bare.gguf");
    await io.saveGguf(path, { x: randn([32]) }, { metadata: { "general.architecture": "llama" } });
    expect((await failure(load(path))).message).toContain("expected llama.block_count to be a whole number");
  });
});

test("padding is one number for each row, below its length, and requires a single cache", async () => {
  const { model } = await load(folderOf("llama"));
  const tokens = answersOf("llama")["tokens"];
  for (const padding of [[1], [0, 12], [0, 1, 2]])
    expect(() => model.forward(tokens, { padding })).toThrow(
      "expected padding to be one number below 12 for each of 2",
    );
  const cache = new nn.KeyValueCacheBatch([model.newCache(), model.newCache()]);
  expect(() => model.forward(tokens, { padding: [0, 1], cache })).toThrow(
    "padding is not supported for a batch of caches",
  );
});

test("metadata, tokens and the chat template of a GGUF file are read", async () => {
  const path = folder.file("qwen3.gguf");
  await writeGguf("qwen3", path, "float16");
  const { config, generation, chatTemplate, source } = await nn.loadModel(path);
  expect([source, chatTemplate, config["general.architecture"]]).toEqual(["gguf", undefined, "qwen3"]);
  expect(generation).toMatchObject({ beginToken: 1, stopTokens: [0] });
});
