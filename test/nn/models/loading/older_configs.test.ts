/** Configs as `transformers` 4 writes them, with every attribute of its `PretrainedConfig`. */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { Generator, io, nn, noGrad, randn, zeros } from "../../../../src/index.ts";
import { testFolder } from "../../../support/folder.ts";

const folder = testFolder("older configs");

type Config = Readonly<Record<string, unknown>>;

/** The attributes with their defaults. Source: `configuration_utils.py` of `transformers` 4.24 and 4.57. */
const attributes: Config = {
  return_dict: true,
  output_hidden_states: false,
  output_attentions: false,
  torchscript: false,
  torch_dtype: null,
  use_bfloat16: false,
  tf_legacy_loss: false,
  pruned_heads: {},
  is_encoder_decoder: false,
  is_decoder: false,
  cross_attention_hidden_size: null,
  add_cross_attention: false,
  tie_encoder_decoder: false,
  max_length: 20,
  min_length: 0,
  do_sample: false,
  early_stopping: false,
  num_beams: 1,
  num_beam_groups: 1,
  diversity_penalty: 0,
  temperature: 1,
  top_k: 50,
  top_p: 1,
  typical_p: 1,
  repetition_penalty: 1,
  length_penalty: 1,
  no_repeat_ngram_size: 0,
  encoder_no_repeat_ngram_size: 0,
  bad_words_ids: null,
  num_return_sequences: 1,
  chunk_size_feed_forward: 0,
  output_scores: false,
  return_dict_in_generate: false,
  forced_bos_token_id: null,
  forced_eos_token_id: null,
  remove_invalid_values: false,
  exponential_decay_length_penalty: null,
  suppress_tokens: null,
  begin_suppress_tokens: null,
  finetuning_task: null,
  tokenizer_class: null,
  prefix: null,
  bos_token_id: null,
  sep_token_id: null,
  decoder_start_token_id: null,
  task_specific_params: null,
  problem_type: null,
  _name_or_path: "",
  transformers_version: "4.24.0",
  xla_device: null,
  loss_type: null,
  _attn_implementation_autoset: true,
};

/** Adds the attributes to a config and to the configs of its parts. */
function older(config: Config): Config {
  const parts = Object.entries(config).map(([key, value]) => {
    const isPart = /_config$/.test(key) && typeof value === "object" && value !== null && "model_type" in value;
    return [key, isPart ? older(value as Config) : value] as const;
  });
  return { ...attributes, ...Object.fromEntries(parts) };
}

/** Returns the first config of each architecture in a file of test/fixtures, however deep it is. */
function configsIn(...path: readonly string[]): (readonly [name: string, config: Config])[] {
  const found = new Map<string, Config>();
  const search = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const config = (value as { readonly config?: Config }).config;
    const type = config?.["model_type"];
    if (config && typeof type === "string" && !found.has(type)) found.set(type, config);
    for (const inner of Object.values(value)) if (inner !== config) search(inner);
  };
  search(JSON.parse(readFileSync(join(packageRoot, "test", "fixtures", ...path), "utf8")));
  return [...found];
}

/** Architectures that `createModel` supports. */
const configs = [
  ...configsIn("decoders", "configs.json"),
  ...configsIn("decoders", "rows.json"),
  ...configsIn("encoders", "configs.json"),
  ...configsIn("vision", "models.json"),
  ...configsIn("vision", "dense.json"),
  ...configsIn("vision", "sam.json"),
  ...configsIn("vision", "sam2.json"),
];
const furtherConfigs: (readonly [name: string, config: Config])[] = [
  ...configsIn("encoder_decoders", "models.json").map(([name, config]): readonly [string, Config] => [
    name,
    { ...config, is_encoder_decoder: true },
  ]),
  ...configsIn("vision_language", "models.json"),
  ...configsIn("speech", "speech.json"),
  ...configsIn("speech", "ctc.json"),
];

test.each(configs)("%s accepts the attributes of all configs", (_, config) => {
  expect(String(nn.createModel(older(config)))).toBe(String(nn.createModel(config)));
});

test.each(furtherConfigs)("loading %s accepts the attributes of all configs", async (name, config) => {
  const path = folder.file(name);
  mkdirSync(path, { recursive: true });
  await io.saveSafetensors(join(path, "model.safetensors"), { other: zeros([1]) });
  writeFileSync(join(path, "config.json"), JSON.stringify(older(config)));
  // the config is read first, then the weights are missing
  await expect(nn.loadModel(path)).rejects.toThrow("missing from the files");
});

/** Keys in published files that `transformers` ignores, with their values. */
const published: Readonly<Record<string, Config>> = {
  smollm3: { max_window_layers: 28 },
  cohere2: {
    layer_switch: 4,
    order_of_interleaved_layers: "local_attn_first",
    position_embedding_type: "rope_gptj",
    rotary_pct: 1,
    use_embedding_sharing: true,
    use_gated_activation: true,
    use_parallel_block: true,
    use_parallel_embedding: true,
  },
  ernie4_5: { use_rmsnorm: true },
  granitemoehybrid: { init_method: "mup", normalization_function: "rmsnorm" },
  lfm2: {
    block_dim: 16,
    block_mlp_init_scale: 1,
    block_norm_eps: 1e-5,
    block_out_init_scale: 1,
    num_heads: 4,
    block_use_swiglu: true,
    block_use_xavier_init: true,
    conv_dim: 16,
    conv_dim_out: 16,
    use_pos_enc: true,
    conv_use_xavier_init: true,
  },
  falcon_h1: { mlp_expansion_factor: 8 },
  mamba2: {
    intermediate_size: 32,
    norm_before_gate: true,
    rms_norm: true,
    time_step_scale: 1,
    time_step_init_scheme: "random",
  },
  llama4_text: { for_llm_compressor: false },
  gemma3n_text: { altup_lr_multiplier: 1 },
  qwen3_5_text: { mlp_only_layers: [] },
  glm4_moe_lite: { topk_method: "noaux_tc", first_k_dense_replace: 1, num_nextn_predict_layers: 1 },
};

test.each(Object.entries(published))("%s accepts keys of its published config", (name, keys) => {
  const config = configs.find(([type]) => type === name)![1];
  expect(String(nn.createModel({ ...keys, ...config }))).toBe(String(nn.createModel(config)));
});

test.each([
  ["cohere2", { use_parallel_block: false }],
  ["lfm2", { use_pos_enc: false }],
  ["mamba2", { rms_norm: false }],
  ["glm4_moe_lite", { first_k_dense_replace: 2 }],
] as const)("%s rejects another value of such a key", (name, keys) => {
  const config = configs.find(([type]) => type === name)![1];
  expect(() => nn.createModel({ ...config, ...keys })).toThrow(Object.keys(keys)[0]);
});

test("a config may have Python's Infinity", async () => {
  const config = configs.find(([type]) => type === "mamba2")![1];
  const path = folder.file("infinity");
  mkdirSync(path, { recursive: true });
  await io.saveSafetensors(join(path, "model.safetensors"), { other: zeros([1]) });
  const text = JSON.stringify({ ...config, time_step_limit: [0, "∞"], eos_token_id: 7 }).replace('"∞"', "Infinity");
  writeFileSync(join(path, "config.json"), text);
  await expect(nn.loadModel(path)).rejects.toThrow("missing from the files");
});

test("CLIP accepts the sizes of projections in the configs of its parts", () => {
  const part = { hidden_size: 8, intermediate_size: 12, num_hidden_layers: 1, num_attention_heads: 2 };
  const text = { ...part, vocab_size: 20, max_position_embeddings: 7 };
  const vision = { ...part, image_size: 8, patch_size: 4 };
  const whole = { model_type: "clip", projection_dim: 6 };
  const published = {
    ...whole,
    text_config_dict: null,
    vision_config_dict: null,
    text_config: { ...attributes, tie_word_embeddings: true, ...text, projection_dim: 512 },
    vision_config: { ...attributes, tie_word_embeddings: true, ...vision, projection_dim: 512 },
  };
  const made = nn.createModel<nn.DualEncoder>(published);
  expect(String(made)).toBe(String(nn.createModel({ ...whole, text_config: text, vision_config: vision })));
});

test("SAM accepts the settings of its published config", () => {
  const part = { ...attributes, model_type: "", tie_word_embeddings: true };
  const published = {
    model_type: "sam",
    initializer_range: 0.02,
    torch_dtype: "float32",
    vision_config: {
      ...part,
      hidden_size: 16,
      num_attention_heads: 2,
      num_hidden_layers: 1,
      mlp_dim: 24,
      image_size: 32,
      global_attn_indexes: [0],
      patch_size: 8,
      output_channels: 16,
      num_pos_feats: 8,
      window_size: 2,
      intermediate_size: 6144,
      projection_dim: 512,
      initializer_factor: 1,
      dropout: 0,
      mlp_ratio: 4,
    },
    prompt_encoder_config: {
      ...part,
      hidden_size: 16,
      image_size: 32,
      patch_size: 8,
      image_embedding_size: 4,
      hidden_act: "gelu",
      layer_norm_eps: 1e-6,
      mask_input_channels: 16,
      num_point_embeddings: 4,
    },
    mask_decoder_config: { ...part, hidden_size: 16, mlp_dim: 24, iou_head_hidden_dim: 16, num_attention_heads: 2 },
  };
  expect(nn.createModel<nn.Sam>(published).description.encoder).toMatchObject({ layers: 1, width: 16 });
});

test("the final norm of InternVL's image encoder is a LayerNorm beside RMSNorms", () => {
  const sizes = { hidden_size: 16, intermediate_size: 20, num_hidden_layers: 1, num_attention_heads: 2 };
  const norms = { norm_type: "rms_norm", use_mean_pooling: false };
  const model = nn.createModel<nn.VisionEncoder>({
    model_type: "internvl_vision",
    ...sizes,
    ...norms,
    image_size: 4,
    patch_size: 2,
  });
  const states = noGrad(() => model.hiddenStates(randn([1, 3, 4, 4], { generator: new Generator(3) })));
  // with the initial weights 1 and biases 0, each state has the mean 0; an RMSNorm would not subtract the mean
  expect(Number(states.mean({ dim: -1 }).abs().amax().item())).toBeLessThan(1e-6);
});
