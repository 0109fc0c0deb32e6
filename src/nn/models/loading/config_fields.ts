/**
 * The keys of a `config.json`. Each key is read, has no effect on results, or is rejected with an error that names it.
 * Fields and defaults match the config classes of Hugging Face's `transformers` 5.23.0.
 * test/fixtures/decoders/configs.json lists them, with the results of `transformers` for other values.
 */
import type { Json } from "../../../io/json.ts";
import type { ArchitectureName } from "./architectures.ts";
import { fieldsOf } from "./fields.ts";
import type { Settings } from "./settings.ts";

type Fields = Readonly<Record<string, Json>>;

const gptNames = {
  hidden_size: "n_embd",
  max_position_embeddings: "n_positions",
  num_attention_heads: "n_head",
  num_hidden_layers: "n_layer",
} as const;
const routedNames = { num_local_experts: "n_routed_experts" } as const;
const localNames = { num_local_experts: "num_experts" } as const;
const allNames = { num_experts: "num_local_experts" } as const;

/** Alternative names of fields, which take precedence. */
const otherNames: Readonly<Partial<Record<ArchitectureName, Readonly<Record<string, string>>>>> = {
  gpt2: gptNames,
  falcon: { n_embed: "hidden_size" },
  lfm2: { tie_embedding: "tie_word_embeddings", block_ff_dim: "intermediate_size" },
  qwen3_next: localNames,
  granitemoehybrid: { layers_block_type: "layer_types" },
  gpt_bigcode: gptNames,
  gpt_neo: { num_attention_heads: "num_heads", num_hidden_layers: "num_layers" },
  codegen: gptNames,
  hunyuan_v1_moe: { num_experts_per_tok: "moe_topk", num_local_experts: "num_experts" },
  bloom: { n_embed: "hidden_size", num_hidden_layers: "n_layer", num_attention_heads: "n_head" },
  mpt: { num_attention_heads: "n_heads", hidden_size: "d_model", num_hidden_layers: "n_layers" },
  mixtral: allNames,
  qwen3_moe: localNames,
  gpt_oss: allNames,
  deepseek_v2: { num_experts: "n_routed_experts" },
  deepseek_v3: routedNames,
  olmoe: localNames,
  glm4_moe: routedNames,
  gptj: gptNames,
  internlm3: { qkv_bias: "attention_bias", bias: "mlp_bias" },
  dots1: routedNames,
  solar_open: routedNames,
  minimax_m2: allNames,
  glm4_moe_lite: { num_local_experts: "n_routed_experts", head_dim: "qk_rope_head_dim" },
  ernie4_5_moe: { num_experts: "moe_num_experts", num_experts_per_tok: "moe_k" },
  flex_olmo: localNames,
  hy_v3: localNames,
  glm_moe_dsa: { num_local_experts: "n_routed_experts", num_experts: "n_routed_experts" },
  deepseek_v32: { num_local_experts: "n_routed_experts", num_experts: "n_routed_experts" },
  jamba: localNames,
  phimoe: { num_experts: "num_local_experts" },
  dbrx: {
    num_attention_heads: "n_heads",
    hidden_size: "d_model",
    num_hidden_layers: "n_layers",
    max_position_embeddings: "max_seq_len",
  },
  afmoe: localNames,
  mellum: localNames,
  nemotron_h: {
    layers_block_type: "layer_types",
    num_local_experts: "n_routed_experts",
    mamba_n_groups: "n_groups",
    mamba_d_conv: "conv_kernel",
    mamba_dt_min: "time_step_min",
    mamba_conv_bias: "use_conv_bias",
  },
  kimi_linear: {
    model_max_length: "max_position_embeddings",
    moe_renormalize: "norm_topk_prob",
    num_local_experts: "num_experts",
    num_expert_group: "n_group",
    num_experts_per_token: "num_experts_per_tok",
    num_shared_experts: "n_shared_experts",
  },
};

/** Returns the words of a text, a short way to write a list of names. */
const words = (text: string): readonly string[] => text.split(" ");

/** Keys with the settings of quantized weights. */
export const quantizationKeys = ["quantization", "quantization_config", "compression_config"] as const;

/** Keys that have no effect on the results of a model in evaluation mode, regardless of their values. */
export const withoutEffect: ReadonlySet<string> = new Set([
  // identity of the checkpoint
  ...words(
    "model_type architectures transformers_version name_or_path auto_map custom_pipelines tokenizer_class " +
      "dtype torch_dtype use_bfloat16 fp16 bf16 fp32 torchscript transformers.js_config is_llama_config " +
      "unsloth_fixed finetuned finetuning_task language name tags",
  ),
  ...quantizationKeys,
  // output formats and implementations
  ...words(
    "output_hidden_states output_attentions output_past return_dict use_return_dict use_cache " +
      "chunk_size_feed_forward pretraining_tp attn_implementation experts_implementation " +
      "reorder_and_upcast_attn cache_implementation use_flash_attn use_flash_attention xla_device " +
      "use_memory_efficient_attention unpad_inputs",
  ),
  // notes of sentence encoders: sizes to which vectors may be cut, and a part that no result uses
  ...words("matryoshka_dimensions add_pooling_layer"),
  // training
  ...words(
    "initializer_range gradient_checkpointing output_router_logits router_aux_loss_coef " +
      "router_jitter_noise neftune_noise_alpha tf_legacy_loss loss_type use_reentrant_checkpointing",
  ),
  // heads other than the language model's
  ...words(
    "id2label label2id num_labels problem_type task_specific_params summary_type summary_use_proj " +
      "summary_activation summary_proj_to_labels",
  ),
  // lengths that nothing reads, and settings of encoders
  ...words(
    "n_ctx seq_length max_seq_len max_sequence_length model_max_length is_decoder tie_encoder_decoder " +
      "cross_attention_hidden_size prefix padding_side",
  ),
  // generation settings in files of older versions
  ...words(
    "max_length min_length max_new_tokens do_sample early_stopping num_beams temperature top_k top_p " +
      "typical_p repetition_penalty length_penalty no_repeat_ngram_size bad_words_ids " +
      "encoder_no_repeat_ngram_size num_return_sequences output_scores return_dict_in_generate " +
      "remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens " +
      "epsilon_cutoff eta_cutoff encoder_repetition_penalty num_assistant_tokens num_beam_groups " +
      "num_assistant_tokens_schedule assistant_confidence_threshold assistant_lookbehind target_lookbehind " +
      "diversity_penalty penalty_alpha renormalize_logits guidance_scale low_memory constraints min_p " +
      "max_time sequence_bias forced_decoder_ids output_logits watermarking_config",
  ),
]);

/** `transformers`' private fields, token ids, dropout probabilities, and versions of programs that wrote the file. */
const patternsWithoutEffect = [/^_/, /_token(_ids?)?$/, /dropout|_pdrop$/, /_version$/];

/** Keys of published files of LFM2. */
const lfm2Notes = words(
  "block_dim block_mlp_init_scale block_norm_eps block_out_init_scale block_use_xavier_init conv_dim " +
    "conv_dim_out conv_use_xavier_init num_heads theta",
);

/** Keys of published files of Hunyuan for parts that its models lack, such as images. */
const hunyuanNotes = words(
  "add_classification_head attention_head_dim cla_share_factor class_num dense_list num_experts im_end_id " +
    "im_newline_id im_start_id image_token_id mask_init_id norm_type org_vocab_size pad_id pool_type " +
    "position_embedding_xdrope text_end_id text_start_id use_rotary_pos_emb video_end_id video_start_id " +
    "mlp_bias moe_drop_tokens num_media_embeds moe_random_routing_dropped_token moe_layer_num_skipped " +
    "use_mixed_mlp_moe num_shared_expert enable_lm_head_fp32 enable_moe_fp32_combine " +
    "enable_attention_fp32_softmax",
);

/** Keys that have no effect in one architecture, but do in others. */
const unused: Readonly<Partial<Record<ArchitectureName, readonly string[]>>> = {
  qwen3_moe: ["max_window_layers"],
  // OpenAI's notes, which repeat other fields
  gpt_oss: ["initial_context_length", "experts_per_token"],
  // multi-token prediction, which generation does not use; and settings of training and parallelism
  deepseek_v3: words("num_mtp_layers num_nextn_predict_layers aux_loss_alpha seq_aux ep_size"),
  // transformers ignores norm_topk_prob of DeepSeek-V2
  deepseek_v2: words("norm_topk_prob head_dim aux_loss_alpha seq_aux ep_size"),
  glm4_moe: ["num_mtp_layers", "num_nextn_predict_layers"],
  gpt_neox: ["rope_theta", "partial_rotary_factor"],
  // the precision of the softmax
  gpt_bigcode: words(
    "max_batch_size pad_key_length validate_runner_input attention_softmax_in_fp32 " +
      "scale_attention_softmax_in_fp32 inference_runner pre_allocate_kv_cache",
  ),
  hunyuan_v1_dense: hunyuanNotes,
  hunyuan_v1_moe: hunyuanNotes,
  // notes of Megatron, in which Bloom was trained
  bloom: words(
    "attention_softmax_in_fp32 masked_softmax_fusion bias_dropout_fusion offset_alibi skip_bias_add " +
      "skip_bias_add_qkv",
  ),
  // repeats partial_rotary_factor
  stablelm: ["rope_pct"],
  // training
  opt: ["layerdrop", "init_std"],
  granitemoehybrid: ["mamba_chunk_size", "init_method", "logits_to_keep"],
  // in published files; transformers ignores them
  mamba2: words(
    "time_step_rank time_step_min time_step_max time_step_floor residual_in_fp32 chunk_size " +
      "intermediate_size norm_before_gate time_step_init_scheme time_step_scale",
  ),
  // MPT's classes have no learned positions, and a hidden size of four times the width
  mpt: words("expansion_ratio learned_pos_emb embedding_fraction init_config init_device tokenizer_name verbose"),
  // multi-token prediction and the precision of states, in files from the hub
  qwen3_5_text: ["mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mamba_ssm_dtype"],
  qwen3_5_moe_text: ["mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mamba_ssm_dtype"],
  falcon_h1: words("mamba_chunk_size num_logits_to_keep mamba_use_mlp mlp_expansion_factor"),
  youtu: ["embedding_initializer_range"],
  // Kimi Linear has no rotation, and generation does not use multi-token prediction
  kimi_linear: words("head_dim rope_theta rope_scaling mla_use_nope num_nextn_predict_layers num_mtp_layers"),
  // changes only the precision of a sum
  hy_v3: ["enable_moe_fp32_combine"],
  solar_open: ["num_mtp_layers", "num_nextn_predict_layers"],
  gemma: ["hidden_activation"],
  glm_moe_dsa: words("head_dim layer_types num_mtp_layers num_nextn_predict_layers ep_size"),
  deepseek_v32: words(
    "head_dim layer_types num_mtp_layers num_nextn_predict_layers aux_loss_alpha seq_aux ep_size rope_interleave",
  ),
  mamba: words(
    "time_step_scale time_step_min time_step_max time_step_init_scheme time_step_floor residual_in_fp32 " +
      "use_mambapy use_associative_scan intermediate_size d_inner d_model n_layer " +
      "fused_add_norm pad_vocab_size_multiple rms_norm ssm_cfg",
  ),
  phimoe: ["input_jitter_noise"],
  bamba: words("mamba_chunk_size num_logits_to_keep z_loss_coefficient layer_types"),
  falcon_mamba: words(
    "time_step_scale time_step_min time_step_max time_step_init_scheme time_step_floor residual_in_fp32 " +
      "use_mambapy use_falcon_mambapy use_associative_scan intermediate_size",
  ),
  // multi-token prediction, and a key of older rotations, which the class ignores
  mellum: words("mtp_layer_types mtp_mlp_layer_types partial_rotary_factor"),
  jamba: words(
    "use_mamba_kernels use_mambapy use_associative_scan num_logits_to_keep sliding_window " +
      "calc_logits_for_entire_prompt",
  ),
  // implementations, training, multi-token prediction, and notes that repeat other fields
  nemotron_h: words(
    "num_logits_to_keep use_mamba_kernels expand mamba_expand time_step_limit mamba_dt_limit time_step_max " +
      "time_step_floor time_step_rank chunk_size mamba_chunk_size mamba_proj_bias rms_norm_eps " +
      "mamba_ssm_cache_dtype n_shared_experts moe_shared_expert_overlap num_nextn_predict_layers " +
      "mtp_layers_block_type mtp_hybrid_override_pattern residual_in_fp32 rescale_prenorm_residual mamba_dt_max " +
      "mamba_dt_init_floor attention_bias sliding_window rope_theta partial_rotary_factor",
  ),
  // keys in published files: some repeat other fields, the others matter only for training
  smollm3: ["max_window_layers"],
  cohere2: ["layer_switch", "use_parallel_embedding"],
  llama4_text: ["for_llm_compressor"],
  lfm2: lfm2Notes,
  lfm2_moe: lfm2Notes,
  glm4_moe_lite: words("num_mtp_layers num_nextn_predict_layers aux_loss_alpha seq_aux ep_size"),
  // training
  gemma3n_text: words("altup_coef_clip altup_lr_multiplier hidden_act query_pre_attn_scalar"),
  gemma4_text: ["hidden_act", "query_pre_attn_scalar"],
  gemma2: ["hidden_act", "sliding_window_size"],
  // The implementation of Gemma 3 ignores its softcap.
  gemma3_text: ["hidden_act", "attn_logit_softcapping"],
};

/** Keys for which only one value is supported. */
const onlyValues: Fields = {
  add_cross_attention: false,
  is_encoder_decoder: false,
  pruned_heads: {},
  use_bidirectional_attention: false,
  attention_bias: false,
  mlp_bias: false,
  lm_head_bias: false,
  qkv_bias: false,
  use_qk_norm: false,
  qk_layernorm: false,
  alibi: false,
  use_sliding_window: false,
  use_mrope: false,
  rope_interleaved: false,
  full_attn_mod: 1,
  interpolate_factor: 1,
  apply_residual_connection_post_layernorm: false,
  slow_but_exact: false,
  rescale_prenorm_residual: false,
  no_bias: true,
  norm_type: "low_precision_layernorm",
  embedding_multiplier: 1,
  residual_multiplier: 1,
  logits_scaling: 1,
  logit_scale: 1,
};

/** Keys in the authors' files that `transformers` ignores. Only one value of each is supported. */
const onlyValuesOf: Readonly<Partial<Record<ArchitectureName, Fields>>> = {
  deepseek_v2: { scoring_func: "softmax", moe_layer_freq: 1 },
  kimi_linear: { moe_router_activation_func: "sigmoid", moe_layer_freq: 1, use_grouped_topk: true },
  ernie4_5: { use_rmsnorm: true },
  hunyuan_v1_dense: { use_qk_norm: true, use_cla: false },
  hunyuan_v1_moe: { use_qk_norm: true, use_cla: false, use_mla: false },
  gptj: { rotary: true, scale_attn_weights: true },
  codegen: { rotary: true, scale_attn_weights: true },
  ernie4_5_moe: { use_bias: false, use_rmsnorm: true },
  granitemoehybrid: { normalization_function: "rmsnorm" },
  cohere2: {
    order_of_interleaved_layers: "local_attn_first",
    position_embedding_type: "rope_gptj",
    rotary_pct: 1,
    use_embedding_sharing: true,
    use_gated_activation: true,
    use_parallel_block: true,
  },
  lfm2: { block_use_swiglu: true, use_pos_enc: true },
  lfm2_moe: { block_use_swiglu: true, use_pos_enc: true },
  mamba2: { rms_norm: true },
  jamba: { mamba_inner_layernorms: true },
  glm4_moe_lite: { first_k_dense_replace: 1, topk_method: "noaux_tc", scoring_func: "sigmoid", moe_layer_freq: 1 },
  qwen3_5_text: { attn_output_gate: true, mlp_only_layers: [] },
  qwen3_5_moe_text: { attn_output_gate: true, mlp_only_layers: [] },
  deepseek_v3: { scoring_func: "sigmoid", topk_method: "noaux_tc", moe_layer_freq: 1 },
  glm_moe_dsa: { scoring_func: "sigmoid", topk_method: "noaux_tc", moe_layer_freq: 1 },
  deepseek_v32: { scoring_func: "sigmoid", topk_method: "noaux_tc", moe_layer_freq: 1 },
};

/** The settings of rotary positions, for any type of scaling. `type` is the older name of `rope_type`. */
export const rotationKeys: ReadonlySet<string> = new Set([
  "rope_type",
  "type",
  "rope_theta",
  "partial_rotary_factor",
  "factor",
  "original_max_position_embeddings",
  "attention_factor",
  "beta_fast",
  "beta_slow",
  "mscale",
  "mscale_all_dim",
  "truncate",
  "short_factor",
  "long_factor",
  "low_freq_factor",
  "high_freq_factor",
  "finetuned",
]);

/** Further settings of rotary positions of Ministral 3, whose context length `max_position_embeddings` repeats. */
export const temperKeys: ReadonlySet<string> = new Set(["llama_4_scaling_beta", "max_position_embeddings"]);

/** Additional rotary settings of vision-language models, which have no effect on text. */
export const axesKeys: ReadonlySet<string> = new Set(["mrope_section", "mrope_interleaved"]);

/** Keys of a vision-language model outside of its text part. */
const otherParts: ReadonlySet<string> = new Set([
  "text_config",
  "vision_config",
  "tie_word_embeddings",
  "mm_tokens_per_image",
  "boi_token_index",
  "eoi_token_index",
  "image_token_index",
  "image_seq_length",
]);

/** Further keys outside of the text part of Gemma 3n and Gemma 4. */
const gemmaParts: ReadonlySet<string> = new Set([
  "audio_config",
  "eoa_token_index",
  "audio_soft_tokens_per_image",
  "vision_soft_tokens_per_image",
]);

/**
 * Returns the settings of a config, with the defaults of its class.
 *
 * @throws {ArgumentError} `unsupportedConfig` for unknown keys, naming them.
 */
export function completed(name: ArchitectureName, config: Settings): Settings {
  const [fields, names] = [fieldsOf[name], otherNames[name] ?? {}];
  const isRead = (key: string) => Object.hasOwn(fields, key) || Object.hasOwn(names, key);
  checkKeys(config, (key) => isRead(key) || hasNoEffect(name, key), `is not a setting of ${name}`, onlyValuesOf[name]);
  const entryOf = (key: string, field = key) => [field, config.get(key)] as const;
  const renamed = Object.entries(names).filter(([key]) => config.get(key) !== undefined);
  return config.with(
    new Map([
      ...Object.entries(fields),
      ...config.names.map((key) => entryOf(key)),
      ...renamed.map(([key, field]) => entryOf(key, field)),
    ]),
  );
}

/**
 * Checks the keys around the text part of a vision-language model. @throws {ArgumentError} `unsupportedConfig` for
 * unknown keys.
 */
export const checkAround = (name: ArchitectureName, config: Settings): void =>
  checkKeys(
    config,
    (key) => otherParts.has(key) || (isOfGemma(name) && gemmaParts.has(key)) || hasNoEffect(name, key),
    "is not a setting of a vision-language model",
  );

const isOfGemma = (name: ArchitectureName): boolean => name === "gemma3n_text" || name === "gemma4_text";

/** Whether a key has no effect in any architecture. */
export const hasNoEffectAnywhere = (key: string): boolean =>
  withoutEffect.has(key) || patternsWithoutEffect.some((pattern) => pattern.test(key));

const hasNoEffect = (name: ArchitectureName, key: string): boolean =>
  hasNoEffectAnywhere(key) || (unused[name]?.includes(key) ?? false);

/**
 * Checks the keys of a config. @throws {ArgumentError} `unsupportedConfig` for keys that are unknown, unless they have
 * their only supported value.
 */
export function checkKeys(
  config: Settings,
  isKnown: (key: string) => boolean,
  problem: string,
  others: Fields = {},
): void {
  const only = { ...onlyValues, ...others };
  const problems = config.names.flatMap((key): string[] => {
    const value = config.get(key);
    if (value === undefined || isKnown(key)) return [];
    const [name, got] = [config.nameOf(key), JSON.stringify(value)];
    if (!Object.hasOwn(only, key)) return [`${name} ${problem} (got ${got.slice(0, 100)})`];
    const wanted = JSON.stringify(only[key]);
    return wanted === got
      ? []
      : [`expected ${name} to be ${wanted}, the only supported value, got ${got.slice(0, 100)}`];
  });
  if (problems.length === 0) return;
  throw config.refused("unsupportedConfig", `${problems.join("; ")}; delete keys that have no effect on results`);
}
