/** Converts the fields of other configs to the fields of Llama's config. */
import type { AttentionDescription } from "../decoder/description.ts";
import { checkKeys, hasNoEffectAnywhere } from "./config_fields.ts";
import type { Settings } from "./settings.ts";

type Derived = Readonly<Record<string, unknown>>;

/** Checks that the output projection is square. Source: Hugging Face's `HeliumAttention` and `BitNetAttention`. */
export function squareFields(config: Settings): Derived {
  const width = config.whole("hidden_size") / config.whole("num_attention_heads");
  const got = config.wholeIfAny("head_dim") ?? width;
  if (got !== width) throw config.wrong("head_dim", `hidden_size / num_attention_heads, ${width}`, got);
  return {};
}

/** Checks that either all or no projections have biases, as `transformers` requires. */
export function internlm3Fields(config: Settings): Derived {
  const [attention, other] = [config.flag("attention_bias"), config.flag("mlp_bias")];
  if (attention !== other)
    throw config.wrong("attention_bias (or qkv_bias)", `equal to mlp_bias (or bias), ${other}`, attention);
  return {};
}

/**
 * Without `layer_types`, every second of the first `max_window_layers` layers has a window. Source: Hugging Face's
 * `Qwen2MoeConfig`.
 */
export function qwen2MoeFields(config: Settings): Derived {
  const [types, slides] = [config.get("layer_types"), config.flag("use_sliding_window")];
  if (types === undefined) {
    const most = slides ? config.whole("max_window_layers", 0) : 0;
    const kinds = Array.from({ length: config.whole("num_hidden_layers") }, (_, index) =>
      index % 2 === 0 && index < most ? "sliding_attention" : "full_attention",
    );
    return { layer_types: kinds };
  }
  if (!slides && Array.isArray(types) && types.includes("sliding_attention"))
    throw config.wrong("layer_types", "a list without sliding_attention, since use_sliding_window is false", types);
  return {};
}

/**
 * Hunyuan: `moe_topk`, and in published files `moe_intermediate_size`, may list the value of each layer. `transformers`
 * uses `intermediate_size` for all experts.
 */
export function hunyuanMoeLayer(config: Settings, index: number): Settings {
  const [chosen, hidden] = [config.get("moe_topk"), config.whole("intermediate_size")];
  const size = config.get("moe_intermediate_size") ?? hidden;
  if (![size].flat().every((each) => each === hidden))
    throw config.wrong("moe_intermediate_size", `intermediate_size, ${hidden}`, size);
  const perToken = Array.isArray(chosen) ? chosen[index] : chosen;
  const more = { num_experts_per_tok: perToken, moe_intermediate_size: hidden };
  return config.with(new Map([...config.entries(), ...Object.entries(more)]));
}

/** MiniCPM3 has Granite's factors under other names. Source: Hugging Face's `MiniCPM3Config`. */
export function miniCpm3Fields(config: Settings): Derived {
  const [width, count] = [config.whole("hidden_size"), config.whole("num_hidden_layers")];
  return {
    embedding_multiplier: config.number("scale_emb"),
    residual_multiplier: (config.numberIfAny("scale_depth") ?? Math.sqrt(count)) / Math.sqrt(count),
    logits_scaling: width / (config.positiveIfAny("dim_model_base") ?? width),
    v_head_dim: config.wholeIfAny("v_head_dim") ?? Math.floor(width / config.whole("num_attention_heads")),
  };
}

/** Without `mlp_layer_types`, only the first layer has no experts. */
export const denseFirst = (config: Settings): Derived =>
  config.get("mlp_layer_types") === undefined ? { first_k_dense_replace: 1 } : {};

/** Published files have `rotary_dim` instead of `partial_rotary_factor`. */
export function minimaxFields(config: Settings): Derived {
  const rotated = config.wholeIfAny("rotary_dim");
  const given = config.positiveIfAny("partial_rotary_factor");
  if (rotated === undefined || given !== undefined) return {};
  return { partial_rotary_factor: rotated / config.whole("head_dim") };
}

/** Every `moe_layer_interval`-th layer from `moe_layer_start_index` to `moe_layer_end_index` has experts. */
export function ernieMoeFields(config: Settings): Derived {
  const [layers, interval] = [config.whole("num_hidden_layers"), config.whole("moe_layer_interval")];
  const [start, end] = [config.number("moe_layer_start_index"), config.number("moe_layer_end_index")];
  const last = end === -1 ? layers - 1 : end;
  const isSparse = (index: number) => (index + 1) % interval === 0 && index >= start && index <= last;
  return {
    num_experts: config.whole("moe_num_experts"),
    num_experts_per_tok: config.whole("moe_k"),
    n_shared_experts: config.whole("moe_num_shared_experts", 0),
    mlp_layer_types: Array.from({ length: layers }, (_, index) => (isSparse(index) ? "sparse" : "dense")),
  };
}

/**
 * Llama 4: `intermediate_size` is the size of experts; `intermediate_size_mlp`, of layers without experts. The layers
 * with experts are listed in `moe_layers`, or else are every `interleave_moe_layer_step`-th. An empty `no_rope_layers`
 * counts as missing.
 */
export function llama4Fields(config: Settings): Derived {
  if (!config.flag("is_causal"))
    throw config.refused("unsupportedConfig", "expected is_causal to be true, the only supported value, got false");
  const layers = config.whole("num_hidden_layers");
  const [listed, step] = [config.get("moe_layers"), config.whole("interleave_moe_layer_step")];
  if (listed !== undefined && !(Array.isArray(listed) && listed.every(Number.isSafeInteger)))
    throw config.wrong("moe_layers", "a list of layer indices", listed);
  const isSparse = (index: number) => (Array.isArray(listed) ? listed.includes(index) : (index + 1) % step === 0);
  const unrotated = config.get("no_rope_layers");
  return {
    moe_intermediate_size: config.whole("intermediate_size"),
    intermediate_size: config.whole("intermediate_size_mlp"),
    mlp_layer_types: Array.from({ length: layers }, (_, index) => (isSparse(index) ? "sparse" : "dense")),
    ...(Array.isArray(unrotated) && unrotated.length === 0 && { no_rope_layers: null }),
  };
}

/** Returns the settings in which a layer's attention in Llama 4 differs from Llama's. */
export function llama4Attention(config: Settings, index: number, isRotated: boolean): Partial<AttentionDescription> {
  const isTempered = !isRotated && config.flag("attn_temperature_tuning");
  return {
    chunk: isChunked(config, index, isRotated) ? config.whole("attention_chunk_size") : undefined,
    rotatedNorm: isRotated && config.flag("use_qk_norm"),
    temperature: isTempered
      ? { beta: config.number("attn_scale"), length: config.positive("floor_scale"), offset: 1 }
      : undefined,
  };
}

/** Whether a layer attends within chunks, according to `layer_types`. If it is missing, layers with rotation do. */
function isChunked(config: Settings, index: number, isRotated: boolean): boolean {
  const types = config.get("layer_types");
  if (types === undefined) return isRotated;
  const count = config.whole("num_hidden_layers");
  const isKnown = (type: unknown) => type === "chunked_attention" || type === "full_attention";
  if (Array.isArray(types) && types.length === count && types.every(isKnown))
    return types[index] === "chunked_attention";
  throw config.wrong("layer_types", `a list of ${count} values, each chunked_attention or full_attention`, types);
}

/** LFM2 with experts uses `intermediate_size` unchanged. */
export const lfm2MoeFields = (config: Settings): Derived => ({
  rms_norm_eps: config.positive("norm_eps"),
  hidden_act: "silu",
  first_k_dense_replace: config.whole("num_dense_layers", 0),
});

/** Without `attention_multiplier`, scores are multiplied by 1 / √head_dim. */
export function hyperclovaFields(config: Settings): Derived {
  const [width, heads] = [config.whole("hidden_size"), config.whole("num_attention_heads")];
  if (width % heads !== 0) throw config.wrong("hidden_size", `a multiple of num_attention_heads, ${heads}`, width);
  const headWidth = config.wholeIfAny("head_dim") ?? width / heads;
  return { attention_multiplier: config.numberIfAny("attention_multiplier") ?? headWidth ** -0.5 };
}

/** Trinity has other names for DeepSeek-V3's fields. */
export const afmoeFields = (config: Settings): Derived => ({
  n_shared_experts: config.whole("num_shared_experts", 0),
  first_k_dense_replace: config.whole("num_dense_layers", 0),
  routed_scaling_factor: config.number("route_scale"),
  sliding_window_pattern: config.whole("global_attn_every_n_layers"),
});

/** Mellum 2 has at most one layer for multi-token prediction. Without `layer_types`, no layer has a window. */
export function mellumFields(config: Settings): Derived {
  const predicting = config.wholeIfAny("num_mtp_layers", 0) ?? 0;
  if (predicting > 1) throw config.wrong("num_mtp_layers", "at most 1", predicting);
  const types = config.get("layer_types") ?? Array(config.whole("num_hidden_layers")).fill("full_attention");
  return { rope_theta: 500_000, layer_types: types };
}

/** The settings of DBRX in objects for attention and experts, and whether other keys of these objects are known. */
const dbrxParts = {
  attn_config: ["clip_qkv", "kv_n_heads", "rope_theta"],
  ffn_config: [
    ...["hidden_size", "ffn_act_fn", "ffn_hidden_size", "moe_num_experts", "moe_top_k", "moe_jitter_eps"],
    ...["moe_loss_weight", "moe_normalize_expert_weights", "uniform_expert_assignment", "ff_n_layers"],
  ],
} as const;

/** Returns DBRX's settings by Llama's names. Source: Hugging Face's `DbrxConfig`. */
export function dbrxFields(config: Settings): Derived {
  const [attention, experts] = (["attn_config", "ffn_config"] as const).map((name) => {
    const own = config.inner(name) ?? config.with(new Map());
    const known: readonly string[] = dbrxParts[name];
    checkKeys(own, (key) => known.includes(key) || hasNoEffectAnywhere(key), `is not a setting of ${name} of dbrx`);
    return own;
  });
  const [heads, width] = [config.whole("n_heads"), config.whole("d_model")];
  if (width % heads !== 0) throw config.wrong("d_model (or hidden_size)", "a multiple of n_heads", width);
  if (config.flag("tie_word_embeddings")) throw config.wrong("tie_word_embeddings", "false", true);
  const power = experts.names.includes("moe_normalize_expert_weights")
    ? experts.numberIfAny("moe_normalize_expert_weights")
    : 1;
  if (power !== undefined && power !== 1) throw experts.wrong("moe_normalize_expert_weights", "1 or null", power);
  const theta = config.number("rope_theta");
  return {
    hidden_size: width,
    num_hidden_layers: config.whole("n_layers"),
    num_attention_heads: heads,
    num_key_value_heads: attention.wholeIfAny("kv_n_heads") ?? 1,
    max_position_embeddings: config.whole("max_seq_len"),
    clip_qkv: attention.positiveIfAny("clip_qkv"),
    // published files have the base of the rotation only here
    rope_theta: theta === 10_000 ? (attention.positiveIfAny("rope_theta") ?? theta) : theta,
    hidden_act: experts.inner("ffn_act_fn")?.textIfAny("name") ?? "silu",
    moe_intermediate_size: experts.wholeIfAny("ffn_hidden_size") ?? 3584,
    intermediate_size: 1, // every layer has experts
    num_experts: experts.wholeIfAny("moe_num_experts") ?? 4,
    num_experts_per_tok: experts.wholeIfAny("moe_top_k") ?? 1,
    norm_topk_prob: power !== undefined,
  };
}

/** Hunyuan 3 has other names for DeepSeek-V3's fields. */
export const hyV3Fields = (config: Settings): Derived => ({
  n_shared_experts: config.whole("num_shared_experts"),
  ...denseFirst(config),
  routed_scaling_factor: config.number("router_scaling_factor"),
});

/** K-EXAONE has another name for one of DeepSeek-V3's fields. */
export const exaoneMoeFields = (config: Settings): Derived => ({
  n_shared_experts: config.whole("num_shared_experts"),
});
