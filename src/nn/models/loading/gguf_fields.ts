/**
 * llama.cpp's metadata as the fields of Hugging Face's configs, as far as architectures share them. The keys are those
 * of `gguf-py/gguf/constants.py`; their meaning is that of `convert_hf_to_gguf.py`.
 */
import type { GgufReader } from "../../../io/gguf/file.ts";
import type { LayerDescription } from "../decoder/description.ts";
import type { ArchitectureName } from "./architectures.ts";
import type { Settings } from "./settings.ts";

/** The fields of a `config.json`. */
export type Fields = Readonly<Record<string, unknown>>;

/** A file, and its settings, whose keys lack the architecture's prefix. */
export interface GgufContext {
  readonly file: GgufReader;
  readonly settings: Settings;
}

/** An architecture, and how its config follows from a file. */
export interface GgufConfig {
  readonly name: ArchitectureName | ((context: GgufContext) => ArchitectureName);
  readonly config: (context: GgufContext) => Fields;
  /** Changes a layer in ways that no field of the config states. */
  readonly layer?: (layer: LayerDescription, context: GgufContext) => LayerDescription;
}

/** Whether each block has a tensor. */
export function eachHas({ file, settings }: GgufContext, tensor: string): boolean[] {
  return Array.from({ length: settings.whole("block_count") }, (_, index) => file.has(`blk.${index}.${tensor}`));
}

export const anyHas = (context: GgufContext, tensor: string): boolean => eachHas(context, tensor).includes(true);

export const expertCount = (settings: Settings): number => settings.whole("expert_count");
/** The number of experts for each token. */
export const chosenCount = (settings: Settings): number => settings.whole("expert_used_count");
export const expertWidth = (settings: Settings): number => settings.whole("expert_feed_forward_length");

/** The fields of all architectures. */
export function common({ file, settings }: GgufContext): Fields {
  return {
    vocab_size: file.has("token_embd.weight") ? file.info("token_embd.weight").shape[0] : settings.whole("vocab_size"),
    hidden_size: settings.whole("embedding_length"),
    num_hidden_layers: settings.whole("block_count"),
    max_position_embeddings: settings.whole("context_length"),
    tie_word_embeddings: !file.has("output.weight"),
  };
}

/** Returns the largest number of a setting that may have one for each layer. */
export const most = (settings: Settings, name: string): number | undefined => {
  const value = settings.get(name);
  return Array.isArray(value) ? Math.max(...value.map(Number)) : settings.wholeIfAny(name, 0);
};

/** The fields of attention and of a feed-forward with RMSNorm. */
export function llama(context: GgufContext): Fields {
  const { settings } = context;
  return {
    ...common(context),
    rms_norm_eps: settings.positive("attention.layer_norm_rms_epsilon"),
    intermediate_size: hiddenOf(context),
    ...heads(settings),
    rope_theta: settings.positiveIfAny("rope.freq_base") ?? 10_000,
  };
}

/** One size of feed-forwards, or a list if layers differ. */
export function hiddenOf({ settings }: GgufContext): unknown {
  const value = settings.get("feed_forward_length");
  return Array.isArray(value) && new Set(value).size === 1 ? value[0] : value;
}

export const heads = (settings: Settings): Fields => ({
  num_attention_heads: most(settings, "attention.head_count"),
  num_key_value_heads: most(settings, "attention.head_count_kv") ?? most(settings, "attention.head_count"),
});

export const headWidth = (settings: Settings): Fields => ({
  head_dim: settings.wholeIfAny("attention.key_length") ?? null,
});

/** Names of DeepSeek-V3's experts, which other architectures share. */
export function experts(context: GgufContext): Fields {
  const { settings } = context;
  return {
    moe_intermediate_size: expertWidth(settings),
    n_routed_experts: expertCount(settings),
    num_experts_per_tok: chosenCount(settings),
    n_shared_experts: settings.wholeIfAny("expert_shared_count", 0) ?? 0,
    ...groups(settings),
    first_k_dense_replace: settings.wholeIfAny("leading_dense_block_count", 0) ?? 0,
    routed_scaling_factor: settings.get("expert_weights_scale") ? settings.positive("expert_weights_scale") : 1,
    norm_topk_prob: settings.flag("expert_weights_norm", false),
  };
}

const groups = (settings: Settings): Fields => ({
  n_group: settings.wholeIfAny("expert_group_count", 0) || 1,
  topk_group: settings.wholeIfAny("expert_group_used_count", 0) || 1,
});

/** The sizes of latent attention. Older files have the sizes of whole heads without `_mla`. */
export function latent(context: GgufContext): Fields {
  const { settings } = context;
  const rotated = settings.whole("rope.dimension_count");
  const width = settings.wholeIfAny("attention.key_length_mla") ?? settings.whole("attention.key_length");
  const count = settings.whole("attention.head_count");
  return {
    q_lora_rank: settings.wholeIfAny("attention.q_lora_rank") ?? null,
    num_key_value_heads: count,
    kv_lora_rank: settings.whole("attention.kv_lora_rank"),
    qk_rope_head_dim: rotated,
    qk_nope_head_dim: width - rotated,
    v_head_dim:
      settings.wholeIfAny("attention.value_length_mla") ??
      settings.wholeIfAny("attention.value_length") ??
      settings.whole("embedding_length") / count,
    attention_bias: anyHas(context, "attn_kv_a_mqa.bias"),
  };
}

/** Whether experts are chosen by softmax (1, the default), as in DeepSeek-V2, or by sigmoids (2), as in V3. */
export const isSoftmax = (settings: Settings): boolean => (settings.wholeIfAny("expert_gating_func", 0) || 1) === 1;

export function deepseek(context: GgufContext): Fields {
  const { settings } = context;
  const shared = { ...llama(context), ...latent(context) };
  if (!settings.get("expert_count")) return { ...shared, rope_interleave: true };
  const all = { ...shared, ...experts(context) };
  if (!isSoftmax(settings)) return { ...all, rope_interleave: true };
  return { ...all, topk_method: all["n_group"] === 1 ? "greedy" : "group_limited_greedy" };
}

export const layerNorm = (context: GgufContext): number => context.settings.positive("attention.layer_norm_epsilon");

/** The parts of Mamba 2's layers. */
export function mamba(context: GgufContext) {
  const { settings } = context;
  const inner = settings.whole("ssm.inner_size");
  const count = settings.whole("ssm.time_step_rank");
  return {
    inner,
    count,
    state: settings.whole("ssm.state_size"),
    kernel: settings.whole("ssm.conv_kernel"),
    groups: settings.whole("ssm.group_count"),
    hasBias: anyHas(context, "ssm_in.bias"),
    hasConvolutionBias: anyHas(context, "ssm_conv1d.bias"),
    hasNorm: anyHas(context, "ssm_norm.weight"),
  };
}
