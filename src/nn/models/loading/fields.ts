/**
 * The fields of Hugging Face's config classes that are read, with the defaults of `transformers` 5.23.0.
 * test/fixtures/decoders/configs.json and rows.json list them.
 */
import type { Json } from "../../../io/json.ts";
import type { ArchitectureName } from "./architectures.ts";

/** The fields of an architecture's config class that are read, with their default values. */
export type Fields = Readonly<Record<string, Json>>;

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

const { query_pre_attn_scalar: ______, ...unscaledGemma } = gemma;

const gemmaNext = {
  ...{ ...unscaledGemma, sliding_window: 512, vocab_size_per_layer_input: 262_144, hidden_size_per_layer_input: 256 },
} as const satisfies Fields;

const { rms_norm_eps: _, ...withoutNorm } = llama;

/** Fields of architectures whose fields for head sizes and rotations have other names. */
const headless = {
  ...{ num_hidden_layers: 32, max_position_embeddings: 2048, tie_word_embeddings: false, is_causal: true },
  ...{ rope_parameters: null, rope_scaling: null, original_max_position_embeddings: null },
} as const satisfies Fields;

const glm = {
  ...{ ...llama, vocab_size: 151_552, intermediate_size: 13_696, num_hidden_layers: 40, num_key_value_heads: 2 },
  ...{ head_dim: 128, max_position_embeddings: 131_072, rms_norm_eps: 1.5625e-7, attention_bias: true },
} as const satisfies Fields;

const { head_dim: __, ...unheaded } = llama;

const deepseek = {
  ...{ ...unheaded, kv_lora_rank: 512, q_lora_rank: 1536, qk_rope_head_dim: 64, v_head_dim: 128 },
  ...{ qk_nope_head_dim: 128, attention_bias: false, qk_head_dim: null },
} as const satisfies Fields;

const cohere = {
  ...{ ...withoutNorm, vocab_size: 256_000, hidden_size: 8192, intermediate_size: 22_528, logit_scale: 0.0625 },
  ...{ num_hidden_layers: 40, num_attention_heads: 64, max_position_embeddings: 8192, layer_norm_eps: 1e-5 },
  ...{ tie_word_embeddings: true, attention_bias: false },
} as const satisfies Fields;

const { rms_norm_eps: ___, head_dim: ____, ...unheadedBase } = decoder;

const granite = {
  ...{ attention_bias: false, embedding_multiplier: 1, residual_multiplier: 1, attention_multiplier: 1 },
  logits_scaling: 1,
} as const satisfies Fields;

const graniteShared = {
  ...{ ...llama, ...granite, num_local_experts: 8, num_experts_per_tok: 2, shared_intermediate_size: 0 },
} as const satisfies Fields;

const qwenDelta = {
  ...{ max_position_embeddings: 32_768, attention_bias: false, head_dim: 256, linear_conv_kernel_dim: 4 },
  ...{ linear_key_head_dim: 128, linear_value_head_dim: 128, linear_num_key_heads: 16 },
  ...{ linear_num_value_heads: 32, layer_types: null, full_attention_interval: 4 },
} as const satisfies Fields;

const { intermediate_size: _____, ...withoutSize } = llama;

/** Returns a function from a row of numbers to the fields with these names. "-" leaves a field out. */
function columns(names: string): (row: string) => Fields {
  const list = names.split(" ");
  const pairs = (value: string, at: number) => (value === "-" ? [] : [[list[at], JSON.parse(value) as number | null]]);
  return (row) => Object.fromEntries(row.split(" ").flatMap(pairs));
}

/** The sizes of a config class. */
const sized = columns(
  "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads " +
    "max_position_embeddings head_dim rms_norm_eps rope_theta",
);

/** The experts of a config class. */
const mixed = columns(
  "moe_intermediate_size num_experts_per_tok num_experts n_routed_experts n_shared_experts routed_scaling_factor " +
    "n_group topk_group first_k_dense_replace",
);

/** The fields by the `model_type` of a config. */
export const fieldsOf: Readonly<Record<ArchitectureName, Fields>> = {
  gpt2: {
    ...{ vocab_size: 50_257, n_positions: 1024, n_embd: 768, n_layer: 12, n_head: 12, n_inner: null },
    ...{ activation_function: "gelu_new", layer_norm_epsilon: 1e-5, tie_word_embeddings: true, is_causal: true },
    ...{ scale_attn_weights: true, scale_attn_by_inverse_layer_idx: false },
  },
  gpt_bigcode: {
    ...{ vocab_size: 50_257, n_positions: 1024, n_embd: 768, n_layer: 12, n_head: 12, n_inner: null },
    ...{ activation_function: "gelu_pytorch_tanh", layer_norm_epsilon: 1e-5, tie_word_embeddings: true },
    ...{ is_causal: true, scale_attn_weights: true, multi_query: true },
  },
  gpt_neo: {
    ...{ ...sized("50257 2048 null - - - 2048"), num_layers: 24, num_heads: 16, attention_types: null },
    ...{ attention_layers: null, window_size: 256, activation_function: "gelu_new", layer_norm_epsilon: 1e-5 },
    ...{ tie_word_embeddings: true, is_causal: true },
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
    ...{ ...qwen, ...sized("- 2048 6144 24 - 4"), ...mixed("768 8 128"), attention_bias: false },
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
    ...{ ...llama, ...sized("32064 3072 8192 - - - 4096 - 1e-5"), original_max_position_embeddings: 4096 },
    ...{ sliding_window: null },
  },
  olmo2: { ...llama, vocab_size: 50_304, rms_norm_eps: 1e-5, attention_bias: false },
  smollm3: {
    ...{ ...llama, ...sized("128256 2048 - 36 16 4 32768 - - 2e6"), tie_word_embeddings: true },
    ...{ attention_bias: false, mlp_bias: false, use_sliding_window: false, sliding_window: null },
    ...{ layer_types: null, no_rope_layers: null, no_rope_layer_interval: 4 },
  },
  ministral: { ...mistral, layer_types: null },
  ministral3: { ...mistral, ...sized("131072 - - 34 - - 262144 128 1e-5"), sliding_window: null },
  olmo: { ...withoutNorm, attention_bias: false, clip_qkv: null, vocab_size: 50_304 },
  olmo3: {
    ...{ ...llama, vocab_size: 50_304, rms_norm_eps: 1e-5, attention_bias: false, rope_theta: 500_000 },
    ...{ sliding_window: 4096, layer_types: null },
  },
  granite: {
    ...{ ...llama, attention_bias: false, mlp_bias: false, embedding_multiplier: 1, residual_multiplier: 1 },
    ...{ attention_multiplier: 1, logits_scaling: 1 },
  },
  gemma: {
    ...{ ...llama, ...sized("256000 3072 24576 28 16 16 8192 256"), hidden_act: "gelu_pytorch_tanh" },
    ...{ tie_word_embeddings: true, attention_bias: false },
  },
  phi: {
    ...{ ...withoutNorm, ...sized("51200 2048 8192 24"), hidden_act: "gelu_new", layer_norm_eps: 1e-5 },
    ...{ qk_layernorm: false },
  },
  glm,
  glm4: glm,
  cohere: { ...cohere, rope_theta: 500_000, use_qk_norm: false },
  cohere2: { ...cohere, sliding_window: 4096, layer_types: null, sliding_window_pattern: 4 },
  nemotron: {
    ...{ ...withoutNorm, ...sized("256000 6144 24576 - 48 - 4096"), hidden_act: "relu2", norm_eps: 1e-5 },
    ...{ attention_bias: false, mlp_bias: false },
  },
  seed_oss: {
    ...{ ...llama, ...sized("155136 - 27648 64 80 8 524288 128"), attention_bias: true },
    ...{ attention_out_bias: false, mlp_bias: false },
  },
  ernie4_5: {
    ...{ ...llama, ...sized("103424 1024 3072 18 16 2 131072 128 1e-5 500000"), tie_word_embeddings: true },
    ...{ use_bias: false },
  },
  stablelm: {
    ...{ ...headless, ...sized("50304 2560 6912 - 32 32 4096 - - 10000"), partial_rotary_factor: null },
    ...{ hidden_act: "silu", layer_norm_eps: 1e-5, use_qkv_bias: false, use_parallel_residual: false },
    ...{ qk_layernorm: false },
  },
  starcoder2: {
    ...{ ...withoutNorm, ...sized("49152 3072 12288 30 24 2 4096"), hidden_act: "gelu_pytorch_tanh" },
    ...{ norm_epsilon: 1e-5, sliding_window: null, use_bias: true, tie_word_embeddings: true },
  },
  arcee: {
    ...{ ...llama, ...sized("- 2560 18432 - - - 4096 - 1e-5"), hidden_act: "relu2", attention_bias: false },
    ...{ mlp_bias: false },
  },
  exaone4: {
    ...{ ...llama, ...sized("102400 - 16384 - - 32 - - 1e-5"), sliding_window: 4096 },
    ...{ sliding_window_pattern: 4, layer_types: null },
  },
  gpt_oss: {
    ...{ ...llama, ...sized("201088 2880 2880 36 64 8 131072 64 1e-5 150000"), sliding_window: 128 },
    ...{ layer_types: null, attention_bias: true, num_local_experts: 128, num_experts_per_tok: 4 },
    ...{ swiglu_alpha: 1.702, swiglu_limit: 7 },
  },
  olmoe: {
    ...{ ...llama, ...sized("50304 2048 2048 16 16 - 4096 - 1e-5"), attention_bias: false, clip_qkv: null },
    ...{ num_experts_per_tok: 8, num_experts: 64, norm_topk_prob: false },
  },
  granitemoe: {
    ...{ ...llama, attention_bias: false, embedding_multiplier: 1, residual_multiplier: 1, attention_multiplier: 1 },
    ...{ logits_scaling: 1, num_local_experts: 8, num_experts_per_tok: 2 },
  },
  granitemoehybrid: {
    ...{ ...unheaded, attention_bias: false, embedding_multiplier: 1, residual_multiplier: 1, attention_multiplier: 1 },
    ...{ logits_scaling: 1, num_local_experts: 8, num_experts_per_tok: 2, shared_intermediate_size: 1024 },
    ...{ position_embedding_type: null, layer_types: null, mamba_n_heads: 128, mamba_n_groups: 1 },
    ...{ mamba_d_state: 256, mamba_d_head: "auto", mamba_d_conv: 4, mamba_expand: 2, mamba_conv_bias: true },
    ...{ mamba_proj_bias: false, time_step_limit: null, head_dim: null },
  },
  qwen2_moe: {
    ...{ ...llama, ...sized("151936 2048 5632 24 16 16 32768"), ...mixed("1408 4 60"), qkv_bias: true },
    ...{ decoder_sparse_step: 1, shared_expert_intermediate_size: 5632, norm_topk_prob: false },
    ...{ mlp_only_layers: null, use_sliding_window: false, sliding_window: 4096, max_window_layers: 28 },
    ...{ layer_types: null },
  },
  glm4_moe: {
    ...{ ...llama, ...sized("151552 - 10944 46 96 8 131072 - 1e-5"), ...mixed("1408 8 - 128 1 1 1 1 1") },
    ...{ attention_bias: false, norm_topk_prob: true, use_qk_norm: false },
  },
  deepseek_v2: { ...deepseek, ...mixed("1407 null - 64 2 1 null null 0"), vocab_size: 102_400, topk_method: "greedy" },
  deepseek_v3: {
    ...{ ...deepseek, ...sized("129280 7168 18432 61 128 128 4096 null") },
    ...{ ...mixed("2048 8 - 256 1 2.5 8 4 3"), norm_topk_prob: true, rope_interleave: true },
  },
  gpt_neox: {
    ...{ ...headless, ...sized("50432 6144 24576 44 64"), hidden_act: "gelu", layer_norm_eps: 1e-5 },
    ...{ use_parallel_residual: true, attention_bias: true, rotary_pct: 0.25, rotary_emb_base: 10_000 },
  },
  falcon: {
    ...{ ...headless, ...sized("65024 4544 - - 71 - - - - 10000"), partial_rotary_factor: null },
    ...{ num_kv_heads: null, num_ln_in_parallel_attn: null, layer_norm_epsilon: 1e-5 },
    ...{ new_decoder_architecture: false, multi_query: true, parallel_attn: true, bias: false },
    ...{ ffn_hidden_size: null, activation: "gelu", tie_word_embeddings: true },
  },
  opt: {
    ...{ ...sized("50272 768 - 12 12 - 2048"), ffn_dim: 3072, do_layer_norm_before: true },
    ...{ _remove_final_layer_norm: false, word_embed_proj_dim: null, activation_function: "relu" },
    ...{ enable_bias: true, tie_word_embeddings: true, layer_norm_elementwise_affine: true, is_causal: true },
  },
  bloom: {
    ...{ vocab_size: 250_880, hidden_size: 64, n_layer: 2, n_head: 8, layer_norm_epsilon: 1e-5 },
    ...{ tie_word_embeddings: true, is_causal: true },
  },
  lfm2: {
    ...{ ...unheadedBase, ...sized("65536 2560 12288 - - 8 128000 null - 1e6"), norm_eps: 1e-5 },
    ...{ tie_word_embeddings: true, conv_bias: false, conv_L_cache: 3, block_multiple_of: 256 },
    ...{ block_ffn_dim_multiplier: 1, block_auto_adjust_ff_dim: true, full_attn_idxs: null, layer_types: null },
  },
  mamba2: {
    ...{ ...sized("32768 4096 - 64 - - - 64"), num_heads: 128, state_size: 128, layer_norm_epsilon: 1e-5 },
    ...{ expand: 2, conv_kernel: 4, n_groups: 8, use_bias: false, use_conv_bias: true, hidden_act: "silu" },
    ...{ time_step_limit: null, tie_word_embeddings: false, is_causal: true },
  },
  qwen3_next: {
    ...{ ...llama, ...sized("151936 2048 5632 48 16 2 32768 256"), ...mixed("512 10 512") },
    ...{ attention_bias: false, linear_conv_kernel_dim: 4, linear_key_head_dim: 128 },
    ...{ linear_value_head_dim: 128, linear_num_key_heads: 16, linear_num_value_heads: 32 },
    ...{ decoder_sparse_step: 1, shared_expert_intermediate_size: 512, norm_topk_prob: true },
    ...{ mlp_only_layers: null, layer_types: null, full_attention_interval: 4 },
  },
  mpt: {
    ...{ d_model: 2048, n_heads: 16, n_layers: 24, max_seq_len: 2048, vocab_size: 50_368, layer_norm_epsilon: 1e-5 },
    ...{ attn_config: null, tie_word_embeddings: true, is_causal: true },
  },
  gptj: {
    ...{ vocab_size: 50_400, n_positions: 2048, n_embd: 4096, n_layer: 28, n_head: 16, rotary_dim: 64, n_inner: null },
    ...{ activation_function: "gelu_new", layer_norm_epsilon: 1e-5, tie_word_embeddings: false, is_causal: true },
  },
  codegen: {
    ...{ vocab_size: 50_400, n_positions: 2048, n_embd: 4096, n_layer: 28, n_head: 16, rotary_dim: 64, n_inner: null },
    ...{ activation_function: "gelu_new", layer_norm_epsilon: 1e-5, tie_word_embeddings: false, is_causal: true },
  },
  hunyuan_v1_dense: { ...llama, vocab_size: 290_943, rms_norm_eps: 1e-5, attention_bias: false },
  hunyuan_v1_moe: {
    ...{ ...llama, vocab_size: 290_943, rms_norm_eps: 1e-5, attention_bias: false },
    ...{ num_experts: 1, moe_topk: 1, moe_intermediate_size: null },
  },
  minicpm3: {
    ...{ ...deepseek, ...sized("73448 2560 6400 62 40 40 32768 null 1e-5"), tie_word_embeddings: true },
    ...{ kv_lora_rank: 256, q_lora_rank: 768, qk_nope_head_dim: 64, qk_rope_head_dim: 32, v_head_dim: null },
    ...{ scale_emb: 12, scale_depth: 1.4, dim_model_base: 256, mlp_bias: false },
  },
  llama4_text: {
    ...{ ...llama, ...sized("202048 5120 8192 48 40 8 131072 128 1e-5 500000"), intermediate_size_mlp: 16_384 },
    ...{ num_experts_per_tok: 1, num_local_experts: 16, moe_layers: null, interleave_moe_layer_step: 1 },
    ...{ use_qk_norm: true, no_rope_layers: null, no_rope_layer_interval: 4, attention_chunk_size: 8192 },
    ...{ layer_types: null, attn_temperature_tuning: true, floor_scale: 8192, attn_scale: 0.1 },
    ...{ attention_bias: false },
  },
  falcon_h1: {
    ...{ ...unheaded, ...sized("128000 - 14336 - - 8 8192 null 1e-5"), mamba_d_ssm: 1024, mamba_n_heads: 128 },
    ...{ mamba_d_head: "auto", mamba_n_groups: 1, mamba_d_state: 256, mamba_d_conv: 4, mamba_expand: 2 },
    ...{ mamba_conv_bias: true, mamba_proj_bias: false, mamba_norm_before_gate: true, mamba_rms_norm: false },
    ...{ time_step_limit: null, projectors_bias: false, lm_head_multiplier: 1, embedding_multiplier: 1 },
    ...{ mlp_multipliers: null, key_multiplier: 1, attention_out_multiplier: 1, attention_in_multiplier: 1 },
    ...{ ssm_multipliers: null, ssm_in_multiplier: 1, ssm_out_multiplier: 1, attention_bias: false },
    ...{ mlp_bias: false },
  },
  helium: {
    ...{ ...llama, ...sized("48000 2560 7040 24 20 20 4096 128 1e-8 100000"), attention_bias: false },
    ...{ mlp_bias: false },
  },
  cwm: {
    ...{ ...llama, ...sized("128256 6144 21504 64 48 8 131072 128 1e-5 1e6"), mlp_bias: false },
    ...{ sliding_window: 8192, layer_types: null },
  },
  internlm3: { ...llama, ...sized("128512 - 10240 48 - 2 32768 128 1e-5"), attention_bias: false, mlp_bias: false },
  iquestcoder: {
    ...{ ...llama, ...sized("76800 5120 27648 80 40 8 131072 128 1e-5"), attention_bias: false },
    ...{ mlp_bias: false },
  },
  granite_swa: {
    ...{ ...llama, ...granite, ...sized("100352 2560 8192 24 20 4 8192 - 1e-5"), tie_word_embeddings: true },
    ...{ mlp_bias: false, sliding_window: 128, layer_types: null, layer_rope_theta: null },
  },
  granitemoeshared: graniteShared,
  granitemoe_swa: { ...graniteShared, sliding_window: 128, layer_types: null, layer_rope_theta: null },
  vaultgemma: {
    ...{ ...gemma, vocab_size: 256_000, max_position_embeddings: 8192, original_max_position_embeddings: null },
    ...{ final_logit_softcapping: 30, attn_logit_softcapping: 50 },
  },
  dots1: {
    ...{ ...unheaded, ...sized("152064 4608 10944 62 - 32 - null"), ...mixed("1408 null - null null 1 1 1 0") },
    ...{ attention_bias: false, norm_topk_prob: false, sliding_window: 4096, max_window_layers: 62 },
    ...{ layer_types: null },
  },
  solar_open: {
    ...{ ...withoutSize, ...sized("196608 - - 48 64 8 131072 128 1e-5 1e6"), ...mixed("1280 8 - 128 1 1 1 1") },
    ...{ attention_bias: false, norm_topk_prob: true },
  },
  minimax_m2: {
    ...{ ...llama, ...sized("200064 3072 1536 62 48 8 196608 128 - 5e6"), num_experts_per_tok: 8 },
    ...{ num_local_experts: 256, rotary_dim: null },
  },
  glm4_moe_lite: {
    ...{ ...deepseek, ...sized("154880 2048 10240 47 20 20 202752 - 1e-5"), ...mixed("1536 4 - 64 1 1.8 1 1") },
    ...{ q_lora_rank: 768, v_head_dim: 256, qk_nope_head_dim: 192, norm_topk_prob: true },
    ...{ rope_interleave: true, mlp_layer_types: null },
  },
  youtu: {
    ...{ ...deepseek, ...sized("128256 2048 6144 - 16 16 131072 null"), tie_word_embeddings: true },
    ...{ rope_interleave: true },
  },
  ernie4_5_moe: {
    ...{ ...llama, ...sized("103424 2560 12288 28 20 4 131072 - 1e-5 500000"), tie_word_embeddings: true },
    ...{ moe_intermediate_size: 1536, moe_k: 6, moe_num_experts: 64, moe_num_shared_experts: 2 },
    ...{ moe_layer_start_index: 1, moe_layer_end_index: -1, moe_layer_interval: 1, moe_norm_min: 1e-12 },
  },
  flex_olmo: {
    ...{ ...llama, vocab_size: 100_352, max_position_embeddings: 4096, attention_bias: false, rope_theta: 500_000 },
    ...{ num_experts_per_tok: 5, num_experts: 7, norm_topk_prob: false },
  },
  lfm2_moe: {
    ...{ ...unheadedBase, ...sized("65536 2048 7168 - - 8 128000 null - 1e6"), ...mixed("1792 4 32 - - 1") },
    ...{ norm_eps: 1e-5, tie_word_embeddings: true, conv_bias: false, conv_L_cache: 3, num_dense_layers: 2 },
    ...{ use_expert_bias: true, norm_topk_prob: true, layer_types: null },
  },
  jais2: {
    ...{ ...withoutNorm, ...sized("150272 3328 26624 - 26 - 8192"), hidden_act: "relu2", attention_bias: true },
    ...{ mlp_bias: true, layer_norm_eps: 1e-5 },
  },
  hyperclovax: {
    ...{ ...llama, ...granite, attention_multiplier: null, mlp_bias: false, use_post_norm: true },
  },
  exaone_moe: {
    ...{ ...llama, ...sized("102400 - 16384 - - 32 - - 1e-5"), ...mixed("1024 8 64 - - 2.5 1 1 1") },
    ...{ sliding_window: 4096, sliding_window_pattern: 4, layer_types: null, mlp_layer_types: null },
    ...{ num_shared_experts: 1, norm_topk_prob: true },
  },
  hy_v3: {
    ...{ ...llama, ...sized("120832 - 13312 80 64 8 131072 128 1e-5 11158840"), ...mixed("1536 8 192") },
    ...{ attention_bias: false, num_shared_experts: 1, router_scaling_factor: 2.826, mlp_layer_types: null },
  },
  gemma3n_text: {
    ...{ ...gemmaNext, ...sized("262400 2048 16384 35 - 2 32768 - - 1e6"), final_logit_softcapping: 30 },
    ...{ altup_active_idx: 0, rope_local_base_freq: 10_000, altup_correct_scale: true, altup_num_inputs: 4 },
    ...{ num_kv_shared_layers: 15, laurel_rank: 64, activation_sparsity_pattern: null },
  },
  gemma4_text: {
    ...{ ...gemmaNext, vocab_size: 262_144, num_hidden_layers: 30, max_position_embeddings: 131_072 },
    ...{ final_logit_softcapping: null, use_bidirectional_attention: null, attention_k_eq_v: false },
    ...{ num_kv_shared_layers: 0, enable_moe_block: false, use_double_wide_mlp: false, num_experts: null },
    ...{ top_k_experts: null, moe_intermediate_size: null, global_head_dim: 512, num_global_key_value_heads: null },
    per_layer_config: null,
  },
  kimi_linear: {
    ...{ ...sized("163840 2304 9216 27 32 32 1048576 - 1e-5"), ...mixed("1024 8 256 - 1 2.446 1 1 1") },
    ...{ tie_word_embeddings: false, is_causal: true, hidden_act: "silu", norm_topk_prob: true },
    ...{ kv_lora_rank: 512, q_lora_rank: null, v_head_dim: 128, qk_rope_head_dim: 64, qk_nope_head_dim: 128 },
    ...{ qk_head_dim: null, attention_bias: false, layer_types: null, mlp_layer_types: null },
    ...{ linear_attn_config: null, linear_head_dim: 128, linear_num_heads: 32, linear_conv_kernel_dim: 4 },
  },
  mamba: {
    ...{ ...sized("50280 768 - 32"), state_size: 16, layer_norm_epsilon: 1e-5, expand: 2, conv_kernel: 4 },
    ...{ use_bias: false, use_conv_bias: true, hidden_act: "silu", time_step_rank: "auto" },
    ...{ tie_word_embeddings: true, is_causal: true },
  },
  jamba: {
    ...{ ...sized("65536 4096 14336 32 32 8 262144 null 1e-6"), tie_word_embeddings: false, is_causal: true },
    ...{ hidden_act: "silu", num_experts_per_tok: 2, num_experts: 16, expert_layer_period: 2 },
    ...{ expert_layer_offset: 1, attn_layer_period: 8, attn_layer_offset: 4, mamba_d_state: 16 },
    ...{ mamba_d_conv: 4, mamba_expand: 2, mamba_dt_rank: "auto", mamba_conv_bias: true, mamba_proj_bias: false },
  },
  bitnet: {
    ...{ ...llama, ...sized("128256 2560 6912 30 20 5 - - 1e-5 500000"), hidden_act: "relu2" },
    ...{ attention_bias: false },
  },
  glm_moe_dsa: {
    ...{ ...deepseek, ...sized("154880 6144 12288 78 64 64 202752 - 1e-5") },
    ...{ ...mixed("2048 8 - 256 1 2.5 1 1 3"), q_lora_rank: 2048, v_head_dim: 256, qk_nope_head_dim: 192 },
    ...{ norm_topk_prob: true, index_topk: 2048, mlp_layer_types: null },
  },
  apertus: {
    ...{ ...llama, ...sized("131072 - 14336 - - - 65536 - 1e-5 12e6"), hidden_act: "xielu" },
    ...{ attention_bias: false },
  },
  nemotron_h: {
    ...{ ...sized("131072 4096 21504 null 32 8 4096 128"), ...mixed("7688 2 - 8 - 1 1 1"), layer_types: null },
    ...{ hybrid_override_pattern: null, tie_word_embeddings: false, attention_bias: false },
    ...{ mlp_hidden_act: "relu2", mlp_bias: false, ssm_state_size: 128, mamba_num_heads: 128 },
    ...{ mamba_head_dim: 64, mamba_hidden_act: "silu", n_groups: 8, conv_kernel: 4, time_step_min: 0.001 },
    ...{ use_conv_bias: true, use_bias: false, layer_norm_epsilon: 1e-5 },
    ...{ moe_shared_expert_intermediate_size: 7688, norm_topk_prob: true, is_causal: true },
  },
  qwen3_5_text: { ...llama, ...qwenDelta, ...sized("248320 - 12288 - 16 4") },
  qwen3_5_moe_text: {
    ...{ ...withoutSize, ...qwenDelta, ...sized("248320 2048 - 40 16 2"), ...mixed("512 8 256") },
    ...{ shared_expert_intermediate_size: 512 },
  },
};
