/** Fields of the Gemma family. */
import { decoder, type Fields, llama, rowsOf, sized, without } from "./shared.ts";

const gemma = {
  ...decoder,
  hidden_size: 2304,
  intermediate_size: 9216,
  num_hidden_layers: 26,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  head_dim: 256,
  hidden_activation: "gelu_pytorch_tanh",
  tie_word_embeddings: true,
  attention_bias: false,
  query_pre_attn_scalar: 256,
  sliding_window: 4096,
  layer_types: null,
} as const satisfies Fields;

const unscaledGemma = without(gemma, "query_pre_attn_scalar");

const gemmaNext = {
  ...unscaledGemma,
  sliding_window: 512,
  vocab_size_per_layer_input: 262_144,
  hidden_size_per_layer_input: 256,
} as const satisfies Fields;

export const gemmaFields = rowsOf({
  gemma: {
    ...llama,
    ...sized("256000 3072 24576 28 16 16 8192 256"),
    hidden_act: "gelu_pytorch_tanh",
    tie_word_embeddings: true,
    attention_bias: false,
  },
  gemma2: {
    ...gemma,
    vocab_size: 256_000,
    max_position_embeddings: 8192,
    original_max_position_embeddings: null,
    final_logit_softcapping: 30,
    attn_logit_softcapping: 50,
  },
  gemma3_text: {
    ...gemma,
    vocab_size: 262_208,
    max_position_embeddings: 131_072,
    final_logit_softcapping: null,
    rope_theta: 1e6,
    rope_local_base_freq: 10_000,
    sliding_window_pattern: 6,
    use_bidirectional_attention: false,
  },
  gemma3n_text: {
    ...gemmaNext,
    ...sized("262400 2048 16384 35 - 2 32768 - - 1e6"),
    final_logit_softcapping: 30,
    altup_active_idx: 0,
    rope_local_base_freq: 10_000,
    altup_correct_scale: true,
    altup_num_inputs: 4,
    num_kv_shared_layers: 15,
    laurel_rank: 64,
    activation_sparsity_pattern: null,
  },
  gemma4_text: {
    ...gemmaNext,
    vocab_size: 262_144,
    num_hidden_layers: 30,
    max_position_embeddings: 131_072,
    final_logit_softcapping: null,
    use_bidirectional_attention: null,
    attention_k_eq_v: false,
    num_kv_shared_layers: 0,
    enable_moe_block: false,
    use_double_wide_mlp: false,
    num_experts: null,
    top_k_experts: null,
    moe_intermediate_size: null,
    global_head_dim: 512,
    num_global_key_value_heads: null,
    per_layer_config: null,
  },
  vaultgemma: {
    ...gemma,
    vocab_size: 256_000,
    max_position_embeddings: 8192,
    original_max_position_embeddings: null,
    final_logit_softcapping: 30,
    attn_logit_softcapping: 50,
  },
});
