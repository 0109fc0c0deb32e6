/**
 * The keys of a `config.json`. Each key is read, has no effect on results, or is rejected with an error that names it.
 * Fields and defaults are those of the config classes of Hugging Face's `transformers` 5.23.0.
 * test/fixtures/decoders/configs.json lists them, with what `transformers` computes for other values.
 */
import type { Json } from "../../../io/json.ts";
import type { ArchitectureName } from "./architectures.ts";
import type { Settings } from "./settings.ts";

/** The fields of an architecture's config class that are read, with their default values. */
type Fields = Readonly<Record<string, Json>>;

/**
 * Fields of every architecture with rotary positions, including those that predate `rope_parameters` (`transformers`
 * 5).
 */
const decoder = {
  ...{ vocab_size: 32_000, hidden_size: 4096, intermediate_size: 11_008, num_hidden_layers: 32 },
  ...{ num_attention_heads: 32, num_key_value_heads: null, head_dim: null, max_position_embeddings: 2048 },
  ...{ rms_norm_eps: 1e-6, tie_word_embeddings: false, is_causal: true },
  ...{ rope_parameters: null, rope_scaling: null, rope_theta: 10_000, partial_rotary_factor: null },
} as const satisfies Fields;

const llama = { ...decoder, hidden_act: "silu", original_max_position_embeddings: null } as const satisfies Fields;

const mistral = {
  ...{ ...llama, intermediate_size: 14_336, num_key_value_heads: 8, max_position_embeddings: 131_072 },
  sliding_window: 4096,
} as const satisfies Fields;

const qwen = {
  ...{ ...llama, vocab_size: 151_936, max_position_embeddings: 32_768 },
  ...{ use_sliding_window: false, sliding_window: 4096 },
} as const satisfies Fields;

const qwen2 = {
  ...{ ...qwen, intermediate_size: 22_016, num_key_value_heads: 32, max_window_layers: 28, layer_types: null },
} as const satisfies Fields;

const gemma = {
  ...{ ...decoder, hidden_size: 2304, intermediate_size: 9216, num_hidden_layers: 26, num_attention_heads: 8 },
  ...{ num_key_value_heads: 4, head_dim: 256, hidden_activation: "gelu_pytorch_tanh", tie_word_embeddings: true },
  ...{ attention_bias: false, query_pre_attn_scalar: 256, sliding_window: 4096, layer_types: null },
} as const satisfies Fields;

/** The fields by the `model_type` of a config. */
export const fieldsOf: Readonly<Record<ArchitectureName, Fields>> = {
  gpt2: {
    ...{ vocab_size: 50_257, n_positions: 1024, n_embd: 768, n_layer: 12, n_head: 12, n_inner: null },
    ...{ activation_function: "gelu_new", layer_norm_epsilon: 1e-5, tie_word_embeddings: true, is_causal: true },
    ...{ scale_attn_weights: true, scale_attn_by_inverse_layer_idx: false },
  },
  llama: { ...llama, attention_bias: false, mlp_bias: false },
  mistral,
  mixtral: {
    ...{ ...mistral, rms_norm_eps: 1e-5, sliding_window: null, rope_theta: 1e6 },
    ...{ num_experts_per_tok: 2, num_local_experts: 8 },
  },
  qwen2,
  qwen3: { ...qwen2, head_dim: 128, attention_bias: false },
  qwen3_moe: {
    ...{ ...qwen, hidden_size: 2048, intermediate_size: 6144, num_hidden_layers: 24, num_key_value_heads: 4 },
    ...{ attention_bias: false, moe_intermediate_size: 768, num_experts_per_tok: 8, num_experts: 128 },
    ...{ norm_topk_prob: false, decoder_sparse_step: 1, mlp_only_layers: null },
  },
  gemma2: {
    ...{ ...gemma, vocab_size: 256_000, max_position_embeddings: 8192, original_max_position_embeddings: null },
    ...{ final_logit_softcapping: 30, attn_logit_softcapping: 50 },
  },
  gemma3_text: {
    ...{ ...gemma, vocab_size: 262_208, max_position_embeddings: 131_072, final_logit_softcapping: null },
    ...{ rope_theta: 1e6, rope_local_base_freq: 10_000, sliding_window_pattern: 6, use_bidirectional_attention: false },
  },
  phi3: {
    ...{ ...llama, vocab_size: 32_064, hidden_size: 3072, intermediate_size: 8192, max_position_embeddings: 4096 },
    ...{ original_max_position_embeddings: 4096, rms_norm_eps: 1e-5, sliding_window: null },
  },
  olmo2: { ...llama, vocab_size: 50_304, rms_norm_eps: 1e-5, attention_bias: false },
};

/** Alternative names of fields, which take precedence. */
const otherNames: Readonly<Partial<Record<ArchitectureName, Readonly<Record<string, string>>>>> = {
  gpt2: {
    ...{ hidden_size: "n_embd", max_position_embeddings: "n_positions" },
    ...{ num_attention_heads: "n_head", num_hidden_layers: "n_layer" },
  },
  mixtral: { num_experts: "num_local_experts" },
  qwen3_moe: { num_local_experts: "num_experts" },
};

/** Keys with the settings of quantized weights. */
export const quantizationKeys = ["quantization", "quantization_config", "compression_config"] as const;

/** Keys that have no effect on the results of a model in evaluation mode, whatever their values are. */
export const withoutEffect: ReadonlySet<string> = new Set([
  // identity of the checkpoint
  ...["model_type", "architectures", "transformers_version", "name_or_path", "auto_map", "custom_pipelines"],
  ...["tokenizer_class", "dtype", "torch_dtype", "use_bfloat16", "fp16", "bf16", "fp32", "torchscript"],
  ...["transformers.js_config", "is_llama_config", "unsloth_fixed", "finetuned", "finetuning_task", "language", "tags"],
  ...quantizationKeys,
  // output formats and implementations
  ...["output_hidden_states", "output_attentions", "output_past", "return_dict", "use_return_dict", "use_cache"],
  ...["chunk_size_feed_forward", "pretraining_tp", "attn_implementation", "experts_implementation"],
  ...["reorder_and_upcast_attn", "cache_implementation", "use_flash_attn", "use_flash_attention"],
  // training
  ...["initializer_range", "gradient_checkpointing", "output_router_logits", "router_aux_loss_coef"],
  ...["router_jitter_noise", "neftune_noise_alpha"],
  // other heads than the language model's
  ...["id2label", "label2id", "num_labels", "problem_type", "task_specific_params"],
  ...["summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels"],
  // lengths that nothing reads, and settings of encoders
  ...["n_ctx", "seq_length", "max_seq_len", "max_sequence_length", "model_max_length"],
  ...["is_decoder", "tie_encoder_decoder"],
  ...["cross_attention_hidden_size", "prefix", "padding_side"],
  // generation settings in files of older versions
  ...["max_length", "min_length", "max_new_tokens", "do_sample", "early_stopping", "num_beams", "temperature", "top_k"],
  ...["top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size", "bad_words_ids"],
  ...["encoder_no_repeat_ngram_size", "num_return_sequences", "output_scores", "return_dict_in_generate"],
  ...["remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens"],
  ...["epsilon_cutoff", "eta_cutoff", "encoder_repetition_penalty", "num_assistant_tokens", "num_beam_groups"],
  ...["num_assistant_tokens_schedule", "assistant_confidence_threshold", "assistant_lookbehind", "target_lookbehind"],
  "diversity_penalty",
]);

/** `transformers`' private fields, token ids, dropout probabilities, and versions of programs that wrote the file. */
const patternsWithoutEffect = [/^_/, /_token(_ids?)?$/, /dropout|_pdrop$/, /_version$/];

/** Keys that have no effect in one architecture, though they have in others. */
const unused: Readonly<Partial<Record<ArchitectureName, readonly string[]>>> = {
  qwen3_moe: ["max_window_layers"],
  gemma2: ["hidden_act", "sliding_window_size"],
  // The implementation of Gemma 3 ignores its softcap.
  gemma3_text: ["hidden_act", "attn_logit_softcapping"],
};

/** Keys for which only one value is supported. */
const onlyValues: Fields = {
  ...{ add_cross_attention: false, is_encoder_decoder: false, pruned_heads: {}, use_bidirectional_attention: false },
  ...{ attention_bias: false, mlp_bias: false, lm_head_bias: false, qkv_bias: false, use_qk_norm: false },
  ...{ use_mrope: false, rope_interleaved: false, full_attn_mod: 1, interpolate_factor: 1 },
  ...{ embedding_multiplier: 1, residual_multiplier: 1, logits_scaling: 1, logit_scale: 1 },
};

/** The settings of rotary positions, for any type of scaling. `type` is the older name of `rope_type`. */
export const rotationKeys: ReadonlySet<string> = new Set([
  ...["rope_type", "type", "rope_theta", "partial_rotary_factor", "factor", "original_max_position_embeddings"],
  ...["attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"],
  ...["short_factor", "long_factor", "low_freq_factor", "high_freq_factor", "finetuned"],
]);

/** Keys of a vision-language model outside of its text part. */
const otherParts: ReadonlySet<string> = new Set([
  ...["text_config", "vision_config", "tie_word_embeddings", "mm_tokens_per_image", "boi_token_index"],
  ...["eoi_token_index", "image_token_index", "image_seq_length"],
]);

/**
 * Returns the settings of a config, with the defaults of its class.
 *
 * @throws {ArgumentError} `unsupportedConfig` for unknown keys, naming them.
 */
export function completed(name: ArchitectureName, config: Settings): Settings {
  const [fields, names] = [fieldsOf[name], otherNames[name] ?? {}];
  const isRead = (key: string) => Object.hasOwn(fields, key) || Object.hasOwn(names, key);
  checkKeys(config, (key) => isRead(key) || hasNoEffect(name, key), `is not a setting of ${name}`);
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
    (key) => otherParts.has(key) || hasNoEffect(name, key),
    "is not a setting of a vision-language model",
  );

/** Whether a key has no effect in any architecture. */
export const hasNoEffectAnywhere = (key: string): boolean =>
  withoutEffect.has(key) || patternsWithoutEffect.some((pattern) => pattern.test(key));

const hasNoEffect = (name: ArchitectureName, key: string): boolean =>
  hasNoEffectAnywhere(key) || (unused[name]?.includes(key) ?? false);

/**
 * @throws {ArgumentError} `unsupportedConfig` for keys that are unknown, unless they have their only supported value.
 */
export function checkKeys(config: Settings, isKnown: (key: string) => boolean, problem: string): void {
  const problems = config.names.flatMap((key): string[] => {
    const value = config.get(key);
    if (value === undefined || isKnown(key)) return [];
    const [name, got] = [config.nameOf(key), JSON.stringify(value)];
    if (!Object.hasOwn(onlyValues, key)) return [`${name} ${problem} (got ${got.slice(0, 100)})`];
    const only = JSON.stringify(onlyValues[key]);
    return only === got ? [] : [`expected ${name} to be ${only}, the only supported value, got ${got.slice(0, 100)}`];
  });
  if (problems.length === 0) return;
  throw config.refused("unsupportedConfig", `${problems.join("; ")}; delete keys that have no effect on results`);
}
