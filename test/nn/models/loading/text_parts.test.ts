/** Tests text parts of vision-language models, multi-token prediction layers, and settings in DeepSeek's files. */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, nn, noGrad, type Tensor } from "../../../../src/index.ts";
import { type ArchitectureName, rowOf } from "../../../../src/nn/models/loading/architectures.ts";
import { testFolder } from "../../../support/folder.ts";
import { hashed } from "../weights.ts";
import { errorOf, writeHashed } from "./oracle.ts";

interface Drawn {
  readonly seed: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly shapes: Readonly<Record<string, number[]>>;
}

const fixture = join(packageRoot, "test", "fixtures", "decoders", "drawn");
const { models }: { models: Record<string, readonly [Drawn, ...Drawn[]]> } = JSON.parse(
  readFileSync(`${fixture}.json`, "utf8"),
);
const answers = io.loadSafetensors(`${fixture}.safetensors`);
const folder = testFolder("text-parts");

/** Writes a random model with a changed config, renamed and additional weights. Compares its logits. */
async function errorOfFolder(
  name: ArchitectureName,
  config: (own: Drawn["config"]) => object,
  rename: (key: string) => string,
  further: Readonly<Record<string, Tensor>>,
  at = 0,
): Promise<number> {
  const { seed, config: own, shapes } = models[name][at];
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "config.json"), JSON.stringify(config(own)));
  await writeHashed(path, shapes, rowOf(name).normsFromOne === true, `${seed}.`);
  const file = join(path, "model.safetensors");
  const weights = Object.entries(io.loadSafetensors(file)).map(([key, x]) => [rename(key), x.clone()] as const);
  await io.saveSafetensors(file, { ...Object.fromEntries(weights), ...further });
  const { model } = await nn.loadModel(path, { dtype: "float32" });
  const logits = noGrad(() => model.forward(answers[`${name}.${at}.tokens`]));
  return errorOf(logits, answers[`${name}.${at}.logits`]);
}

const small = hashed("x", [4, 4], 0);
/** Weights of other parts of Gemma 3n and Gemma 4. */
const gemmaParts = {
  "model.audio_tower.x.weight": small,
  "model.embed_vision.x": small,
  "model.vision_tower.x": small,
};

test.each([
  ["qwen3_5", "qwen3_5_text", "model.language_model.", { "model.visual.blocks.0.proj.weight": small, "mtp.x": small }],
  ["qwen3_5_moe", "qwen3_5_moe_text", "model.language_model.", { "model.visual.x.weight": small }],
  ["gemma3n", "gemma3n_text", "model.language_model.", gemmaParts],
  ["gemma4", "gemma4_text", "model.language_model.", gemmaParts],
  ["llama4", "llama4_text", "language_model.model.", { "vision_model.x.weight": small }],
] as const)("the text part of %s loads", async (type, name, prefix, further) => {
  const config = (own: Drawn["config"]) => ({
    model_type: type,
    text_config: own,
    vision_config: { depth: 1 },
    image_token_id: 5,

    tie_word_embeddings: own["tie_word_embeddings"] ?? false,
    ...(type.startsWith("gemma") && { audio_config: {} }),
  });
  const head = prefix === "language_model.model." ? "language_model.lm_head." : "lm_head.";
  const rename = (key: string) => key.replace(/^model\./, prefix).replace(/^lm_head\./, head);
  expect(await errorOfFolder(name, config, rename, further)).toBeLessThan(1e-5);
});

test("keys and values of layers that attend to those of earlier layers are ignored", async () => {
  const shares = ({ config }: Drawn) => Number(config["num_kv_shared_layers"]) > 0;
  const at = models["gemma3n_text"].findIndex(shares);
  const last = Number(models["gemma3n_text"][at].config["num_hidden_layers"]) - 1;
  const unused = ["k_proj", "v_proj", "k_norm"].map((part) => [`model.layers.${last}.self_attn.${part}.weight`, small]);
  expect(
    await errorOfFolder(
      "gemma3n_text",
      (own) => own,
      (key) => key,
      Object.fromEntries(unused),
      at,
    ),
  ).toBeLessThan(1e-5);
});

test("Kimi K2 and DeepSeek-V3 load with settings of published files and a multi-token prediction layer", async () => {
  const own = { scoring_func: "sigmoid", topk_method: "noaux_tc", moe_layer_freq: 1, ep_size: 1, seq_aux: true };
  const config = (given: Drawn["config"]) => ({
    ...given,
    ...own,
    model_type: "kimi_k2",
    aux_loss_alpha: 0.001,
    num_nextn_predict_layers: 1,
    auto_map: { AutoConfig: "configuration_deepseek.DeepseekV3Config" },
  });
  const layers = Number(models["deepseek_v3"][0].config["num_hidden_layers"]);
  const further = { [`model.layers.${layers}.eh_proj.weight`]: small };
  expect(await errorOfFolder("deepseek_v3", config, (key) => key, further)).toBeLessThan(1e-5);
  const softmax = (given: Drawn["config"]) => ({ ...config(given), scoring_func: "softmax" });
  writeFileSync(folder.file("deepseek_v3", "config.json"), JSON.stringify(softmax(models["deepseek_v3"][0].config)));
  await expect(nn.loadModel(folder.file("deepseek_v3"))).rejects.toThrow(
    'expected scoring_func to be "sigmoid", the only supported value, got "softmax"',
  );
});
