/** Fields that config classes share. */
import type { Json } from "../../../../io/json.ts";

/** The fields of an architecture's config class that are read, with their default values. */
export type Fields = Readonly<Record<string, Json>>;

/** Keeps the names of rows in the type, and not the rows, so that the declaration is short. */
export const rowsOf = <N extends string>(rows: Readonly<Record<N, Fields>>): Readonly<Record<N, Fields>> => rows;

/** Returns the fields except those with these names. */
export const without = (fields: Fields, ...names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));

/** Returns a function from a row of numbers to the fields with these names. "-" leaves a field out. */
function columns(names: string): (row: string) => Fields {
  const list = names.split(" ");
  const pairs = (value: string, at: number) => (value === "-" ? [] : [[list[at], JSON.parse(value) as number | null]]);
  return (row) => Object.fromEntries(row.split(" ").flatMap(pairs));
}

/** The sizes of a config class. */
export const sized = columns(
  "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads " +
    "max_position_embeddings head_dim rms_norm_eps rope_theta",
);

/** The experts of a config class. */
export const mixed = columns(
  "moe_intermediate_size num_experts_per_tok num_experts n_routed_experts n_shared_experts routed_scaling_factor " +
    "n_group topk_group first_k_dense_replace",
);

/**
 * Fields of every architecture with rotary positions, including those that predate `rope_parameters` (`transformers`
 * 5).
 */
export const decoder = {
  vocab_size: 32_000,
  hidden_size: 4096,
  intermediate_size: 11_008,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: null,
  head_dim: null,
  max_position_embeddings: 2048,
  rms_norm_eps: 1e-6,
  tie_word_embeddings: false,
  is_causal: true,
  rope_parameters: null,
  rope_scaling: null,
  rope_theta: 10_000,
  partial_rotary_factor: null,
} as const satisfies Fields;

export const llama = {
  ...decoder,
  hidden_act: "silu",
  original_max_position_embeddings: null,
} as const satisfies Fields;

export const mistral = {
  ...llama,
  intermediate_size: 14_336,
  num_key_value_heads: 8,
  max_position_embeddings: 131_072,
  sliding_window: 4096,
} as const satisfies Fields;

export const qwen = {
  ...llama,
  vocab_size: 151_936,
  max_position_embeddings: 32_768,
  use_sliding_window: false,
  sliding_window: 4096,
} as const satisfies Fields;

export const withoutNorm = without(llama, "rms_norm_eps");

export const unheaded = without(llama, "head_dim");

export const deepseek = {
  ...unheaded,
  kv_lora_rank: 512,
  q_lora_rank: 1536,
  qk_rope_head_dim: 64,
  v_head_dim: 128,
  qk_nope_head_dim: 128,
  attention_bias: false,
  qk_head_dim: null,
} as const satisfies Fields;

export const granite = {
  attention_bias: false,
  embedding_multiplier: 1,
  residual_multiplier: 1,
  attention_multiplier: 1,
  logits_scaling: 1,
} as const satisfies Fields;

export const withoutSize = without(llama, "intermediate_size");
