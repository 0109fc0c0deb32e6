/** GGUF files of BitNet, Apertus, GLM-5, Mamba, Jamba, Nemotron-H, Trinity and DBRX, as the fields of their configs. */
import {
  anyHas,
  chosenCount,
  common,
  deepseek,
  eachHas,
  expertCount,
  experts,
  type Fields,
  type GgufConfig,
  type GgufContext,
  heads,
  headWidth,
  llama,
  mamba,
  most,
} from "./gguf_fields.ts";

/** The kind of a block of Nemotron-H follows from its tensors. */
function nemotron(context: GgufContext): Fields {
  const { settings } = context;
  const { inner, count, state, kernel, groups, hasBias, hasConvolutionBias } = mamba(context);
  const [mixes, attends, chooses] = ["ssm_in", "attn_q", "ffn_gate_inp"].map((end) =>
    eachHas(context, `${end}.weight`),
  );
  const { first_k_dense_replace: _, ...chosen } = settings.get("expert_count") ? experts(context) : {};
  return {
    ...common(context),
    ...heads(settings),
    ...headWidth(settings),
    ...chosen,
    use_bias: hasBias,
    layer_types: mixes.map((mixes, at) =>
      mixes ? "linear_attention" : attends[at] ? "full_attention" : chooses[at] ? "moe" : "mlp",
    ),
    mamba_num_heads: count,
    mamba_head_dim: inner / count,
    ssm_state_size: state,
    n_groups: groups,
    conv_kernel: kernel,
    use_conv_bias: hasConvolutionBias,
    mlp_bias: anyHas(context, "ffn_up.bias"),
    intermediate_size: most(settings, "feed_forward_length"),
    layer_norm_epsilon: settings.positive("attention.layer_norm_rms_epsilon"),
    moe_shared_expert_intermediate_size: settings.wholeIfAny("expert_shared_feed_forward_length"),
  };
}

/** The parts of the first Mamba's layers. */
function selective(context: GgufContext) {
  const { settings } = context;
  return {
    expand: settings.whole("ssm.inner_size") / settings.whole("embedding_length"),
    state: settings.whole("ssm.state_size"),
    rank: settings.whole("ssm.time_step_rank"),
    kernel: settings.whole("ssm.conv_kernel"),
    hasBias: anyHas(context, "ssm_in.bias"),
    hasConvolutionBias: anyHas(context, "ssm_conv1d.bias"),
  };
}

/** The layers with attention and those with experts have equal distances. */
function jamba(context: GgufContext): Fields {
  const { settings } = context;
  const { expand, state, rank, kernel, hasBias, hasConvolutionBias } = selective(context);
  const { rope_theta: _, ...fields } = llama(context);
  const [attends, chooses] = ["attn_q", "ffn_gate_inp"].map((end) => spacing(eachHas(context, `${end}.weight`)));
  return {
    ...fields,
    mamba_expand: expand,
    mamba_d_state: state,
    mamba_dt_rank: rank,
    mamba_d_conv: kernel,
    mamba_proj_bias: hasBias,
    mamba_conv_bias: hasConvolutionBias,
    num_experts: expertCount(settings),
    num_experts_per_tok: chosenCount(settings),
    attn_layer_period: attends.period,
    attn_layer_offset: attends.offset,
    expert_layer_period: chooses.period,
    expert_layer_offset: chooses.offset,
  };
}

/** Returns the first place of a value and the distance to the next; a distance beyond the end if there is none. */
function spacing(values: readonly boolean[]): { readonly period: number; readonly offset: number } {
  const [offset = values.length, next = offset + values.length] = values.flatMap((has, at) => (has ? [at] : []));
  return { period: Math.max(next - offset, offset + 1), offset };
}

const withBiases = (context: GgufContext): Fields => ({
  ...llama(context),
  ...headWidth(context.settings),
  attention_bias: anyHas(context, "attn_q.bias"),
});

/** llama.cpp has the scale of embeddings and the places of windows as constants. */
function afmoe(context: GgufContext): Fields {
  const { settings } = context;
  const chosen = experts(context);
  return {
    ...llama(context),
    ...headWidth(settings),
    num_experts: chosen["n_routed_experts"],
    num_experts_per_tok: chosen["num_experts_per_tok"],
    moe_intermediate_size: chosen["moe_intermediate_size"],
    num_shared_experts: chosen["n_shared_experts"],
    num_dense_layers: chosen["first_k_dense_replace"],
    route_scale: chosen["routed_scaling_factor"],
    sliding_window: settings.whole("attention.sliding_window"),
    global_attn_every_n_layers: 4,
    mup_enabled: true,
  };
}

function dbrx(context: GgufContext): Fields {
  const { settings } = context;
  const sizes = common(context);
  return {
    vocab_size: sizes["vocab_size"],
    d_model: sizes["hidden_size"],
    n_layers: sizes["num_hidden_layers"],
    max_seq_len: sizes["max_position_embeddings"],
    tie_word_embeddings: sizes["tie_word_embeddings"],
    n_heads: settings.whole("attention.head_count"),
    attn_config: {
      kv_n_heads: settings.whole("attention.head_count_kv"),
      clip_qkv: settings.positiveIfAny("attention.clamp_kqv") ?? null,
      rope_theta: settings.positive("rope.freq_base"),
    },
    ffn_config: {
      ffn_hidden_size: settings.whole("feed_forward_length"),
      moe_num_experts: expertCount(settings),
      moe_top_k: chosenCount(settings),
    },
  };
}

/** Whether the file is of Falcon Mamba, a Mamba that normalizes parts of the selection. */
const isFalcon = ({ settings }: GgufContext): boolean => settings.flag("ssm.dt_b_c_rms", false);

/** Further architectures by llama.cpp's names. */
export const ggufFurther: Readonly<Record<string, GgufConfig>> = {
  // llama.cpp has the activation of the first BitNet models
  bitnet: { name: "bitnet", config: (context) => ({ ...withBiases(context), hidden_act: "silu" }) },
  apertus: {
    name: "apertus",
    config(context) {
      const { rope_theta, ...fields } = withBiases(context);
      return { ...fields, rope_parameters: { rope_type: "default", rope_theta } };
    },
  },
  "glm-dsa": {
    name: "glm_moe_dsa",
    config(context) {
      const { rope_interleave: _, ...fields } = deepseek(context);
      const indexer = (key: string) => context.settings.whole(`attention.indexer.${key}`);
      return {
        ...fields,
        index_topk: indexer("top_k"),
        index_n_heads: indexer("head_count"),
        index_head_dim: indexer("key_length"),
        indexer_types: eachHas(context, "indexer.proj.weight").map((has) => (has ? "full" : "shared")),
      };
    },
  },
  mamba: {
    name: (context) => (isFalcon(context) ? "falcon_mamba" : "mamba"),
    config(context) {
      const eps = context.settings.positive("attention.layer_norm_rms_epsilon");
      const { max_position_embeddings: _, ...sizes } = common(context);
      const { expand, state, rank, kernel, hasBias, hasConvolutionBias } = selective(context);
      return {
        ...sizes,
        expand,
        state_size: state,
        time_step_rank: rank,
        conv_kernel: kernel,
        use_bias: hasBias,
        use_conv_bias: hasConvolutionBias,
        layer_norm_epsilon: eps,
        ...(isFalcon(context) && { mixer_rms_eps: eps }),
      };
    },
  },
  afmoe: { name: "afmoe", config: afmoe },
  dbrx: { name: "dbrx", config: dbrx },
  jamba: { name: "jamba", config: jamba },
  nemotron_h: { name: "nemotron_h", config: nemotron },
  nemotron_h_moe: { name: "nemotron_h", config: nemotron },
};
