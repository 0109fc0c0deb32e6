/**
 * Architectures of GGUF files that equal an architecture of Hugging Face with certain settings. Sources: llama.cpp's
 * `convert_hf_to_gguf.py` and `llama-model.cpp`.
 */
import type { LayerDescription } from "../decoder/description.ts";
import {
  anyHas,
  chosenCount,
  common,
  expertCount,
  expertWidth,
  type Fields,
  type GgufConfig,
  type GgufContext,
  heads,
  headWidth,
  hiddenOf,
  layerNorm,
  llama,
} from "./gguf_fields.ts";
import { alibiSlopes } from "./unrotated.ts";

const likeLlama = (context: GgufContext): Fields => ({
  ...llama(context),
  ...headWidth(context.settings),
  attention_bias: anyHas(context, "attn_q.bias"),
  mlp_bias: anyHas(context, "ffn_up.bias"),
});

const withAttention = (
  { attention, ...others }: LayerDescription,
  change: Partial<LayerDescription["attention"]>,
): LayerDescription => ({ ...others, attention: { ...attention, ...change } });

/** Replaces the rotation by ALiBi. */
const withAlibi = (layer: LayerDescription): LayerDescription =>
  withAttention(layer, { rope: undefined, alibi: alibiSlopes(layer.attention.heads) });

/** Baichuan's 13B models have 40 layers and ALiBi. */
const baichuanLayer: GgufConfig["layer"] = (layer, { settings }) =>
  settings.whole("block_count") === 40 ? withAlibi(layer) : layer;

/** Hunyuan normalizes queries and keys after their rotation. */
const hunyuanLayer: GgufConfig["layer"] = (layer) => withAttention(layer, { queryKeyNorm: "rotatedHead" });

function mixture(context: GgufContext): Fields {
  const { settings } = context;
  return {
    num_experts_per_tok: chosenCount(settings),
    moe_intermediate_size: expertWidth(settings),
  };
}

function qwen3Moe(context: GgufContext): Fields {
  const { mlp_bias: _, ...fields } = likeLlama(context);
  const count = expertCount(context.settings);
  return { ...fields, ...mixture(context), num_experts: count, norm_topk_prob: true };
}

/** The rows of the shared experts, whose number is not in all files. */
function sharedRows({ file, settings }: GgufContext): number {
  const blocks = Array.from({ length: settings.whole("block_count") }, (_, index) => `blk.${index}`);
  const block = blocks.find((each) => file.has(`${each}.ffn_up_shexp.weight`));
  return block === undefined ? 0 : file.info(`${block}.ffn_up_shexp.weight`).shape[0];
}

/** DeepSeek-MoE and Ling: Qwen2-MoE without a gate for the shared experts. */
function sharedMoe(context: GgufContext): Fields {
  const { settings } = context;
  const dense = settings.wholeIfAny("leading_dense_block_count", 0) ?? 0;
  return {
    ...llama(context),
    ...mixture(context),
    num_experts: expertCount(settings),
    shared_expert_intermediate_size: sharedRows(context),
    qkv_bias: anyHas(context, "attn_q.bias"),
    mlp_only_layers: Array.from({ length: dense }, (_, index) => index),
    norm_topk_prob: settings.flag("expert_weights_norm", false),
  };
}

/** The converter reorders rows of queries and keys, so that adjacent elements rotate. */
function sharedMoeLayer(layer: LayerDescription, { settings }: GgufContext): LayerDescription {
  const { attention, feedForward } = layer;
  const { experts } = feedForward;
  const scale = settings.positiveIfAny("expert_weights_scale");
  const rope = attention.rope && { ...attention.rope, interleaved: true };
  const shared = experts?.shared && { ...experts.shared, gated: false };
  return {
    ...withAttention(layer, { rope }),
    feedForward: { ...feedForward, experts: experts && { ...experts, scale, shared } },
  };
}

/** Granite's experts with factors of 1, beside a shared expert. */
function hunyuanMoe(context: GgufContext): Fields {
  const { settings } = context;
  const width = settings.wholeIfAny("attention.key_length") ?? 1;
  return {
    ...llama(context),
    ...headWidth(settings),
    attention_multiplier: 1 / Math.sqrt(width),
    embedding_multiplier: 1,
    residual_multiplier: 1,
    logits_scaling: 1,
    attention_bias: anyHas(context, "attn_q.bias"),
    num_local_experts: expertCount(settings),
    num_experts_per_tok: chosenCount(settings),
    intermediate_size: settings.wholeIfAny("expert_feed_forward_length") ?? hiddenOf(context),
    shared_intermediate_size: sharedRows(context),
  };
}

/** MiniCPM has Granite's factors. Files of early 2024 lack them. */
function miniCpm(context: GgufContext): Fields {
  const { settings } = context;
  const [width, count] = [settings.whole("embedding_length"), settings.whole("block_count")];
  const perHead = settings.wholeIfAny("attention.key_length") ?? width / settings.whole("attention.head_count");
  return {
    ...likeLlama(context),
    attention_multiplier: 1 / Math.sqrt(perHead),
    embedding_multiplier: settings.positiveIfAny("embedding_scale") ?? 12,
    residual_multiplier: settings.positiveIfAny("residual_scale") ?? 1.4 / Math.sqrt(count),
    logits_scaling: settings.positiveIfAny("logit_scale") ?? width / 256,
  };
}

/** The layers without a window, whose rotation has another base, are every sixth. */
function gemmaEmbedding(context: GgufContext): Fields {
  const { settings } = context;
  const { rope_theta, ...fields } = llama(context);
  const width = settings.whole("attention.key_length");
  const base = settings.positiveIfAny("rope.freq_base_swa") ?? 10_000;
  return {
    ...fields,
    head_dim: width,
    query_pre_attn_scalar: width,
    use_bidirectional_attention: true,
    sliding_window: settings.whole("attention.sliding_window"),
    sliding_window_pattern: 6,
    rope_theta,
    rope_local_base_freq: base,
  };
}

/** Names by which llama.cpp has further architectures. */
export const ggufAliases: Readonly<Record<string, GgufConfig>> = {
  internlm2: { name: "llama", config: likeLlama },
  xverse: { name: "llama", config: likeLlama },
  baichuan: { name: "llama", config: likeLlama, layer: baichuanLayer },
  refact: { name: "llama", config: likeLlama, layer: withAlibi },
  exaone: { name: "iquestcoder", config: likeLlama },
  "pangu-embedded": { name: "iquestcoder", config: likeLlama },
  "llama-embed": { name: "llama", config: (context) => ({ ...likeLlama(context), is_causal: false }) },
  "gemma-embedding": { name: "gemma3_text", config: gemmaEmbedding },
  minicpm: { name: "granite", config: miniCpm },
  qwen: {
    name: "qwen2",
    // the setting counts the rows of gate and up together
    config: (context) => ({ ...llama(context), intermediate_size: context.settings.whole("feed_forward_length") / 2 }),
  },
  qwen3vlmoe: { name: "qwen3_moe", config: qwen3Moe },
  deepseek: { name: "qwen2_moe", config: sharedMoe, layer: sharedMoeLayer },
  bailingmoe: { name: "qwen2_moe", config: sharedMoe, layer: sharedMoeLayer },
  "hunyuan-dense": { name: "iquestcoder", config: likeLlama, layer: hunyuanLayer },
  "hunyuan-moe": { name: "granitemoeshared", config: hunyuanMoe, layer: hunyuanLayer },
  orion: {
    name: "stablelm",
    config: (context) => ({
      ...common(context),
      ...heads(context.settings),
      intermediate_size: hiddenOf(context),
      layer_norm_eps: layerNorm(context),
      partial_rotary_factor: 1,
      rope_theta: context.settings.positiveIfAny("rope.freq_base") ?? 10_000,
    }),
  },
  codeshell: {
    name: "starcoder2",
    config: (context) => ({
      ...common(context),
      ...heads(context.settings),
      intermediate_size: hiddenOf(context),
      norm_epsilon: layerNorm(context),
      use_bias: true,
      sliding_window: null,
      rope_theta: context.settings.positiveIfAny("rope.freq_base") ?? 10_000,
    }),
  },
  // GPT-2 whose heads share one key and value
  starcoder: {
    name: "gpt2",
    config(context) {
      const { hidden_size, num_hidden_layers, max_position_embeddings, ...sizes } = common(context);
      return {
        ...sizes,
        n_embd: hidden_size,
        n_layer: num_hidden_layers,
        n_positions: max_position_embeddings,
        n_head: context.settings.whole("attention.head_count"),
        n_inner: hiddenOf(context),
        layer_norm_epsilon: layerNorm(context),
      };
    },
    layer: (layer, { settings }) =>
      withAttention(layer, { keyValueHeads: settings.wholeIfAny("attention.head_count_kv") ?? layer.attention.heads }),
  },
};
