/**
 * Further architectures of GGUF files: llama.cpp's metadata as the fields of Hugging Face's configs, which
 * {@link ofText} describes.
 */
import { erf } from "../../../ops/elementwise/erf.reference.ts";
import {
  anyHas,
  chosenCount,
  common,
  deepseek,
  eachHas,
  expertCount,
  experts,
  expertWidth,
  type Fields,
  type GgufConfig,
  type GgufContext,
  heads,
  headWidth,
  hiddenOf,
  isSoftmax,
  latent,
  layerNorm,
  llama,
  mamba,
} from "./gguf_fields.ts";
import type { Settings } from "./settings.ts";

/** llama.cpp has these scales as constants, and the size of values is that of the hidden states for each head. */
const miniCpm3 = (context: GgufContext): Fields => ({
  ...llama(context),
  ...latent(context),
  scale_emb: 12,
  scale_depth: 1.4,
  dim_model_base: 256,
});

/** Kimi Linear's layers with a delta net have decays; the others have latent attention. */
function kimiLinear(context: GgufContext): Fields {
  const { settings, file } = context;
  const { rope_theta: _, ...sizes } = llama(context);
  const { n_routed_experts, ...others } = experts(context);
  const mixes = eachHas(context, "ssm_a");
  return {
    ...sizes,
    ...latent(context),
    ...others,
    num_experts: n_routed_experts,
    norm_topk_prob: settings.flag("expert_weights_norm", true),
    layer_types: mixes.map((each) => (each ? "linear_attention" : "full_attention")),
    linear_head_dim: settings.whole("kda.head_dim"),
    linear_conv_kernel_dim: settings.whole("ssm.conv_kernel"),
    linear_num_heads: file.info(`blk.${mixes.indexOf(true)}.ssm_beta.weight`).shape[0],
  };
}

function mamba2(context: GgufContext): Fields {
  const { settings } = context;
  const { inner, count, state, kernel, groups, hasBias, hasConvolutionBias } = mamba(context);
  const { max_position_embeddings: _, ...sizes } = common(context);
  return {
    ...sizes,
    layer_norm_epsilon: settings.positive("attention.layer_norm_rms_epsilon"),
    num_heads: count,
    head_dim: inner / count,
    state_size: state,
    conv_kernel: kernel,
    n_groups: groups,
    use_bias: hasBias,
    use_conv_bias: hasConvolutionBias,
    expand: inner / settings.whole("embedding_length"),
  };
}

/** Falcon-H1's factors are part of the weights. */
function falconH1(context: GgufContext): Fields {
  const { inner, count, state, kernel, groups, hasBias, hasConvolutionBias, hasNorm } = mamba(context);
  return {
    ...llama(context),
    ...headWidth(context.settings),
    mamba_d_ssm: inner,
    mamba_n_heads: count,
    mamba_d_head: inner / count,
    mamba_n_groups: groups,
    mamba_d_state: state,
    mamba_d_conv: kernel,
    mamba_proj_bias: hasBias,
    mamba_conv_bias: hasConvolutionBias,
    mamba_rms_norm: hasNorm,
    mamba_norm_before_gate: false,
    projectors_bias: anyHas(context, "ssm_out.bias"),
    attention_bias: anyHas(context, "attn_q.bias"),
    mlp_bias: anyHas(context, "ffn_up.bias"),
    mlp_multipliers: [1, 1],
    ssm_multipliers: [1, 1, 1, 1, 1],
  };
}

const granite = (settings: Settings): Fields => ({
  embedding_multiplier: settings.positiveIfAny("embedding_scale") ?? 1,
  residual_multiplier: settings.positiveIfAny("residual_scale") ?? 1,
  attention_multiplier: settings.positive("attention.scale"),
  logits_scaling: settings.positiveIfAny("logit_scale") ?? 1,
});

/** Granite's layers with attention rotate if the file says that the rotation was trained. */
function graniteHybrid(context: GgufContext): Fields {
  const { settings } = context;
  const isMamba = eachHas(context, "ssm_in.weight");
  const { inner, count, state, kernel, groups, hasBias, hasConvolutionBias } = mamba(context);
  const shared = settings.wholeIfAny("expert_shared_feed_forward_length", 0) ?? 0;
  return {
    ...llama(context),
    ...granite(settings),
    attention_bias: anyHas(context, "attn_q.bias"),
    num_local_experts: settings.wholeIfAny("expert_count", 0) ?? 0,
    shared_intermediate_size: shared,
    num_experts_per_tok: settings.wholeIfAny("expert_used_count", 0) || null,
    position_embedding_type: settings.flag("rope.scaling.finetuned", false) ? "rope" : null,
    layer_types: isMamba.map((mixes) => (mixes ? "linear_attention" : "full_attention")),
    mamba_n_heads: count,
    mamba_d_head: inner / count,
    mamba_d_state: state,
    mamba_d_conv: kernel,
    mamba_n_groups: groups,
    mamba_expand: inner / settings.whole("embedding_length"),
    mamba_proj_bias: hasBias,
    mamba_conv_bias: hasConvolutionBias,
  };
}

/** Layers with convolutions have no keys. */
const lfm2Layers = (context: GgufContext): Fields => ({
  ...headWidth(context.settings),
  layer_types: eachHas(context, "attn_k.weight").map((attends) => (attends ? "full_attention" : "conv")),
  conv_L_cache: context.settings.whole("shortconv.l_cache"),
  conv_bias: anyHas(context, "shortconv.conv.bias"),
});

const normEps = ({ rms_norm_eps, ...others }: Fields): Fields => ({ ...others, norm_eps: rms_norm_eps });

/** Qwen3-Next and Qwen3.5. */
function delta(context: GgufContext): Fields {
  const { settings } = context;
  const count = settings.whole("ssm.time_step_rank");
  const width = settings.whole("attention.key_length");
  return {
    ...llama(context),
    head_dim: width,
    attention_bias: anyHas(context, "attn_q.bias"),
    partial_rotary_factor: settings.whole("rope.dimension_count") / width,
    layer_types: eachHas(context, "ssm_a").map((mixes) => (mixes ? "linear_attention" : "full_attention")),
    linear_conv_kernel_dim: settings.whole("ssm.conv_kernel"),
    linear_num_value_heads: count,
    linear_key_head_dim: settings.whole("ssm.state_size"),
    linear_num_key_heads: settings.whole("ssm.group_count"),
    linear_value_head_dim: settings.whole("ssm.inner_size") / count,
  };
}

const deltaExperts = (settings: Settings): Fields => ({
  moe_intermediate_size: expertWidth(settings),
  shared_expert_intermediate_size: settings.whole("expert_shared_feed_forward_length"),
  num_experts: expertCount(settings),
  num_experts_per_tok: chosenCount(settings),
});

/** Whether each layer has a sliding window: a list in the file, or all layers but every n-th. */
function slidingLayers({ settings }: GgufContext, period: number): boolean[] {
  const pattern = settings.get("attention.sliding_window_pattern");
  return Array.from({ length: settings.whole("block_count") }, (_, at) =>
    Array.isArray(pattern)
      ? Boolean(pattern[at])
      : (at + 1) % (settings.wholeIfAny("attention.sliding_window_pattern") ?? period) !== 0,
  );
}

/** Fields of Gemma 3n and Gemma 4. */
function gemma(context: GgufContext, period: number): Fields {
  const { settings, file } = context;
  const { rope_theta: theta, ...fields } = llama(context);
  const sliding = slidingLayers(context, period);
  const table = file.has("per_layer_token_embd.weight") ? file.info("per_layer_token_embd.weight").shape[0] : undefined;
  return {
    ...fields,
    sliding_window: settings.whole("attention.sliding_window"),
    layer_types: sliding.map((slides) => (slides ? "sliding_attention" : "full_attention")),
    num_kv_shared_layers: settings.wholeIfAny("attention.shared_kv_layers", 0) ?? 0,
    hidden_size_per_layer_input: settings.wholeIfAny("embedding_length_per_layer_input", 0) ?? 0,
    ...(table !== undefined && { vocab_size_per_layer_input: table }),
    rope_parameters: {
      sliding_attention: { rope_type: "default", rope_theta: settings.positiveIfAny("rope.freq_base_swa") ?? 10_000 },
      full_attention: { rope_type: "default", rope_theta: theta },
    },
    final_logit_softcapping: settings.positiveIfAny("final_logit_softcapping") ?? null,
  };
}

/** For sparse gates, files have a quantile of the normal distribution instead of the share of zeros. */
function gemma3n(context: GgufContext): Fields {
  const { settings, file } = context;
  const quantiles = settings.get("activation_sparsity_scale");
  return {
    ...gemma(context, 5),
    ...headWidth(settings),
    altup_num_inputs: settings.whole("altup.num_inputs"),
    altup_active_idx: settings.whole("altup.active_idx", 0),
    laurel_rank: file.info("blk.0.laurel_l.weight").shape[0],
    final_logit_softcapping: settings.positiveIfAny("final_logit_softcapping") ?? 30,
    activation_sparsity_pattern: Array.isArray(quantiles) ? quantiles.map((at) => shareBelow(Number(at))) : null,
  };
}

/** Returns the share of a normal distribution below a quantile; 0 for −∞. */
const shareBelow = (quantile: number): number =>
  Number.isFinite(quantile) && quantile > -10 ? (1 + erf(quantile * Math.SQRT1_2)) / 2 : 0;

const besideFields = (settings: Settings): Fields => ({
  enable_moe_block: true,
  num_experts: expertCount(settings),
  top_k_experts: chosenCount(settings),
  moe_intermediate_size: expertWidth(settings),
});

function gemma4(context: GgufContext): Fields {
  const { settings } = context;
  const wide = settings.whole("attention.key_length");
  const keyValue = settings.get("attention.head_count_kv");
  const sliding = slidingLayers(context, 6);
  const counts = sliding.map((_, at) => (Array.isArray(keyValue) ? Number(keyValue[at]) : Number(keyValue)));
  const isWithoutValues = sliding.some(
    (slides, at) =>
      !slides && !context.file.has(`blk.${at}.attn_v.weight`) && context.file.has(`blk.${at}.attn_k.weight`),
  );
  const lengths = settings.get("feed_forward_length");
  const own = Array.isArray(lengths) ? Math.min(...lengths.map(Number)) : lengths;
  return {
    ...gemma(context, 6),
    intermediate_size: own,
    attention_bias: anyHas(context, "attn_q.bias"),
    use_double_wide_mlp: Array.isArray(lengths) && Math.max(...lengths.map(Number)) !== own,
    head_dim: settings.wholeIfAny("attention.key_length_swa") ?? wide,
    global_head_dim: wide,
    num_key_value_heads: counts[sliding.indexOf(true)] ?? counts[0],
    attention_k_eq_v: isWithoutValues,
    num_global_key_value_heads: isWithoutValues ? counts[sliding.indexOf(false)] : null,
    ...(settings.get("expert_count") !== undefined && besideFields(settings)),
  };
}

/** A layer has experts if the file has the weight of its router. */
function llama4(context: GgufContext): Fields {
  const { settings } = context;
  const sparse = eachHas(context, "ffn_gate_inp.weight");
  return {
    ...llama(context),
    ...headWidth(settings),
    intermediate_size_mlp: hiddenOf(context),
    intermediate_size: expertWidth(settings),
    num_local_experts: expertCount(settings),
    num_experts_per_tok: chosenCount(settings),
    moe_layers: sparse.flatMap((has, at) => (has ? [at] : [])),
    attention_chunk_size: settings.wholeIfAny("attention.chunk_size") ?? 8192,
    // llama.cpp has no setting for the norm: all models have it, except the one with 128 experts
    use_qk_norm: expertCount(settings) !== 128,
    floor_scale: settings.wholeIfAny("attention.temperature_length") ?? 8192,
    attn_scale: settings.positiveIfAny("attention.temperature_scale") ?? 0.1,
  };
}

function ernie(context: GgufContext): Fields {
  const { settings } = context;
  const hidden = expertWidth(settings);
  const block = eachHas(context, "ffn_up_shexp.weight").indexOf(true);
  const rows = block < 0 ? 0 : context.file.info(`blk.${block}.ffn_up_shexp.weight`).shape[0];
  return {
    ...llama(context),
    moe_intermediate_size: hidden,
    moe_num_experts: expertCount(settings),
    moe_k: chosenCount(settings),
    moe_num_shared_experts: rows / hidden,
    moe_layer_start_index: settings.wholeIfAny("leading_dense_block_count", 0) ?? 0,
    moe_layer_interval: settings.wholeIfAny("interleave_moe_layer_step") || 1,
  };
}

const withWindows = (context: GgufContext, period: number): Fields => ({
  sliding_window: context.settings.wholeIfAny("attention.sliding_window") ?? 4096,
  layer_types: slidingLayers(context, period).map((slides) => (slides ? "sliding_attention" : "full_attention")),
});

/** Ministral 3 scales queries by their positions. */
function mistral3(context: GgufContext): Fields {
  const { settings } = context;
  const original = settings.wholeIfAny("rope.scaling.original_context_length") ?? settings.whole("context_length");
  const temper = settings.positiveIfAny("attention.temperature_scale");
  const all = settings.positiveIfAny("rope.scaling.yarn_log_multiplier") ?? 0;
  return {
    ...llama(context),
    ...headWidth(settings),
    sliding_window: null,
    rope_parameters: {
      rope_type: "yarn",
      rope_theta: settings.positive("rope.freq_base"),
      mscale: all,
      mscale_all_dim: all,
      factor: settings.positive("rope.scaling.factor"),
      original_max_position_embeddings: original,
      beta_fast: settings.positiveIfAny("rope.scaling.yarn_beta_fast") ?? 32,
      beta_slow: settings.positiveIfAny("rope.scaling.yarn_beta_slow") ?? 1,
      llama_4_scaling_beta: temper ?? 0,
    },
  };
}

/** The further architectures by llama.cpp's names. */
export const ggufConfigs: Readonly<Record<string, GgufConfig>> = {
  deepseek2: {
    name: ({ settings }) =>
      settings.get("expert_count") ? (isSoftmax(settings) ? "deepseek_v2" : "deepseek_v3") : "youtu",
    config: deepseek,
  },
  minicpm3: { name: "minicpm3", config: miniCpm3 },
  dots1: {
    name: "dots1",
    config: (context) => ({
      ...llama(context),
      ...headWidth(context.settings),
      ...experts(context),
      max_window_layers: 1e5,
      attention_bias: anyHas(context, "attn_q.bias"),
    }),
  },
  "ernie4_5-moe": { name: "ernie4_5_moe", config: ernie },
  "minimax-m2": {
    name: "minimax_m2",
    config: (context) => ({
      ...llama(context),
      ...headWidth(context.settings),
      rotary_dim: context.settings.whole("rope.dimension_count"),
      intermediate_size: expertWidth(context.settings),
      num_local_experts: expertCount(context.settings),
      num_experts_per_tok: chosenCount(context.settings),
    }),
  },
  "exaone-moe": {
    name: "exaone_moe",
    config(context) {
      const { n_routed_experts, n_shared_experts, ...others } = experts(context);
      const fields = { ...llama(context), ...headWidth(context.settings), ...withWindows(context, 4), ...others };
      return { ...fields, num_experts: n_routed_experts, num_shared_experts: n_shared_experts };
    },
  },
  bloom: {
    name: "bloom",
    config(context) {
      const { max_position_embeddings: _, num_hidden_layers: n_layer, ...sizes } = common(context);
      const n_head = context.settings.whole("attention.head_count");
      return { ...sizes, n_layer, n_head, layer_norm_epsilon: layerNorm(context) };
    },
  },
  mpt: {
    name: "mpt",
    config(context) {
      const { hidden_size: d_model, num_hidden_layers: n_layers, max_position_embeddings, ...sizes } = common(context);
      const clip = context.settings.positiveIfAny("attention.clamp_kqv") ?? null;
      return {
        ...sizes,
        d_model,
        n_layers,
        max_seq_len: max_position_embeddings,
        layer_norm_epsilon: layerNorm(context),
        n_heads: context.settings.whole("attention.head_count"),
        attn_config: { clip_qkv: clip },
      };
    },
  },
  gptj: {
    name: "gptj",
    config(context) {
      const sizes = common(context);
      return {
        vocab_size: sizes["vocab_size"],
        n_embd: sizes["hidden_size"],
        n_layer: sizes["num_hidden_layers"],
        n_positions: sizes["max_position_embeddings"],
        n_head: context.settings.whole("attention.head_count"),
        rotary_dim: context.settings.whole("rope.dimension_count"),
        n_inner: hiddenOf(context),
        layer_norm_epsilon: layerNorm(context),
      };
    },
  },
  jais2: {
    name: "jais2",
    config: (context) => ({
      ...common(context),
      ...heads(context.settings),
      layer_norm_eps: layerNorm(context),
      ...headWidth(context.settings),
      intermediate_size: hiddenOf(context),
      hidden_act: "relu2",
      rope_theta: context.settings.positiveIfAny("rope.freq_base") ?? 10_000,
      attention_bias: anyHas(context, "attn_q.bias"),
      mlp_bias: anyHas(context, "ffn_up.bias"),
    }),
  },
  llama4: { name: "llama4_text", config: llama4 },
  mistral3: { name: "ministral3", config: mistral3 },
  lfm2: {
    name: "lfm2",
    config: (context) => ({
      ...normEps(llama(context)),
      ...lfm2Layers(context),
      block_auto_adjust_ff_dim: false,
    }),
  },
  lfm2moe: {
    name: "lfm2_moe",
    config(context) {
      const { n_routed_experts, n_shared_experts: _, n_group: __, topk_group: ___, ...others } = experts(context);
      const { first_k_dense_replace: dense, ...fields } = others;
      return {
        ...normEps(llama(context)),
        ...lfm2Layers(context),
        ...fields,
        num_experts: n_routed_experts,
        num_dense_layers: dense,
        use_expert_bias: anyHas(context, "exp_probs_b.bias"),
        norm_topk_prob: context.settings.flag("expert_weights_norm", true),
      };
    },
  },
  mamba2: { name: "mamba2", config: mamba2 },
  granitehybrid: { name: "granitemoehybrid", config: graniteHybrid },
  "falcon-h1": { name: "falcon_h1", config: falconH1 },
  qwen3next: {
    name: "qwen3_next",
    config: (context) => ({
      ...delta(context),
      ...deltaExperts(context.settings),
      norm_topk_prob: context.settings.flag("expert_weights_norm", true),
    }),
  },
  qwen35: { name: "qwen3_5_text", config: delta },
  qwen35moe: {
    name: "qwen3_5_moe_text",
    config(context) {
      const { intermediate_size: _, ...fields } = delta(context);
      return { ...fields, ...deltaExperts(context.settings) };
    },
  },
  "kimi-linear": { name: "kimi_linear", config: kimiLinear },
  gemma3n: { name: "gemma3n_text", config: gemma3n },
  gemma4: { name: "gemma4_text", config: gemma4 },
};
