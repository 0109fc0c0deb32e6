/** Reads the recurrent layers of configs: LFM2, Mamba, Jamba, Nemotron-H, Qwen3-Next and Kimi Linear. */
import {
  type DecoderDescription,
  type DeltaNetDescription,
  type KimiDeltaDescription,
  type LayerDescription,
  noAttention,
  noFeedForward,
  type RecurrentDescription,
  type SelectiveStateDescription,
  type ShortConvolutionDescription,
  type StateSpaceDescription,
} from "../decoder/description.ts";
import { checkKeys } from "./config_fields.ts";
import type { Settings } from "./settings.ts";

/** Whether `layer_types` has a kind for a layer. @throws {FileFormatError} if the list does not have one per layer. */
function isKind(config: Settings, index: number, kind: string, other: string): boolean | undefined {
  const types = config.get("layer_types");
  if (types === undefined) return undefined;
  const count = config.whole("num_hidden_layers");
  const isList =
    Array.isArray(types) && types.length === count && types.every((each) => each === kind || each === other);
  if (!isList)
    throw config.wrong("layer_types", `a list of ${count} values (num_hidden_layers), each ${kind} or ${other}`, types);
  return types[index] === kind;
}

/** LFM2's convolutions: all layers but those in `full_attn_idxs`. */
export function shortConvolution(config: Settings, index: number): ShortConvolutionDescription | undefined {
  const listed = config.get("full_attn_idxs");
  if (listed !== undefined && !(Array.isArray(listed) && listed.every(Number.isSafeInteger)))
    throw config.wrong("full_attn_idxs", "a list of layer indices", listed);
  const isListed = listed === undefined || listed.includes(index);
  if (!(isKind(config, index, "conv", "full_attention") ?? !isListed)) return undefined;
  return { kind: "shortConvolution", kernel: config.whole("conv_L_cache"), bias: config.flag("conv_bias") };
}

/** LFM2's hidden size: two thirds of the field, multiplied and rounded up. Source: Hugging Face's `Lfm2MLP`. */
export function lfm2Fields(config: Settings): Readonly<Record<string, unknown>> {
  let hidden = config.whole("intermediate_size");
  if (config.flag("block_auto_adjust_ff_dim")) {
    const multiple = config.whole("block_multiple_of");
    const factor = config.positiveIfAny("block_ffn_dim_multiplier");
    hidden = Math.floor((2 * hidden) / 3);
    if (factor !== undefined) hidden = multiple * Math.ceil(Math.floor(factor * hidden) / multiple);
  }
  return { intermediate_size: hidden, rms_norm_eps: config.positive("norm_eps"), hidden_act: "silu" };
}

/** Qwen3-Next's delta nets: all layers but every `full_attention_interval`-th. */
export function deltaNet(config: Settings, index: number): DeltaNetDescription | undefined {
  const isDelta = isKind(config, index, "linear_attention", "full_attention");
  if (!(isDelta ?? (index + 1) % config.whole("full_attention_interval") !== 0)) return undefined;
  checkSilu(config);
  const [keyHeads, valueHeads] = [config.whole("linear_num_key_heads"), config.whole("linear_num_value_heads")];
  if (valueHeads % keyHeads !== 0)
    throw config.wrong("linear_num_value_heads", "a multiple of linear_num_key_heads", valueHeads);
  return {
    kind: "deltaNet",
    apart: false,
    keyHeads,
    valueHeads,
    keyWidth: config.whole("linear_key_head_dim"),
    valueWidth: config.whole("linear_value_head_dim"),
    kernel: config.whole("linear_conv_kernel_dim"),
    eps: config.positive("rms_norm_eps"),
  };
}

/** Reads Qwen3.5's delta nets, which have separate weights for their projections. */
export function deltaNetApart(config: Settings, index: number): DeltaNetDescription | undefined {
  const description = deltaNet(config, index);
  return description && { ...description, apart: true };
}

/** Checks the activation of convolutions and gates. @throws {ArgumentError} `unknownActivation` */
export function checkSilu(config: Settings, key = "hidden_act"): void {
  const got = config.textIfAny(key);
  if (got !== "silu" && got !== "swish")
    throw config.refused("unknownActivation", `expected ${key} to be silu, the only supported value, got "${got}"`);
}

/** Kimi Linear's delta attention, in the layers that `layer_types` lists. */
export function kimiDelta(config: Settings, index: number): KimiDeltaDescription | undefined {
  if (!isKind(config, index, "linear_attention", "full_attention")) return undefined;
  checkSilu(config);
  return {
    kind: "kimiDelta",
    heads: config.whole("linear_num_heads"),
    headWidth: config.whole("linear_head_dim"),
    kernel: config.whole("linear_conv_kernel_dim"),
    eps: config.positive("rms_norm_eps"),
  };
}

/**
 * Returns the fields of `linear_attn_config` of published files, which take precedence, and the default kinds of
 * layers.
 */
export function kimiFields(config: Settings): Readonly<Record<string, unknown>> {
  const own = config.inner("linear_attn_config");
  if (own)
    checkKeys(
      own,
      (key) => ["full_attn_layers", "kda_layers", "head_dim", "num_heads", "short_conv_kernel_size"].includes(key),
      "is not a setting of kimi_linear",
    );
  const listed = own?.get("full_attn_layers");
  const layers = Array.from({ length: config.whole("num_hidden_layers") }, (_, at) => at);
  // published lists count from 1
  const attends = (at: number) => (Array.isArray(listed) ? listed.includes(at + 1) : at > 0 && at % 4 === 0);
  const types = layers.map((at) => (attends(at) ? "full_attention" : "linear_attention"));
  return {
    linear_head_dim: own?.wholeIfAny("head_dim") ?? config.whole("linear_head_dim"),
    linear_num_heads: own?.wholeIfAny("num_heads") ?? config.whole("linear_num_heads"),
    linear_conv_kernel_dim: own?.wholeIfAny("short_conv_kernel_size") ?? config.whole("linear_conv_kernel_dim"),
    ...(config.get("layer_types") === undefined && { layer_types: types }),
    tie_word_embeddings: false, // transformers ignores this setting
  };
}

/** Mamba 2's state space layers: all layers. */
export function stateSpace(config: Settings): StateSpaceDescription {
  const [heads, headWidth, groups] = [config.whole("num_heads"), config.whole("head_dim"), config.whole("n_groups")];
  const width = config.whole("hidden_size");
  const expand = config.whole("expand");
  if (expand * width !== heads * headWidth)
    throw config.wrong(
      "num_heads",
      `such that num_heads · head_dim is expand · hidden_size (${expand * width})`,
      heads,
    );
  if (heads % groups !== 0) throw config.wrong("n_groups", "a divisor of num_heads", groups);
  checkSilu(config);
  return {
    kind: "stateSpace",
    heads,
    headWidth,
    groups,
    stateSize: config.whole("state_size"),
    kernel: config.whole("conv_kernel"),
    bias: config.flag("use_bias"),
    convolutionBias: config.flag("use_conv_bias"),
    eps: config.positive("layer_norm_epsilon"),
    limits: limitsOf(config),
  };
}

/** `time_step_limit`. Default: 0, and no upper bound. */
export function limitsOf(config: Settings): StateSpaceDescription["limits"] {
  const given = config.get("time_step_limit") ?? [0, null];
  const isBound = (value: unknown) => value === null || typeof value === "number";
  if (!Array.isArray(given) || given.length !== 2 || typeof given[0] !== "number" || !isBound(given[1]))
    throw config.wrong("time_step_limit", "a list of two numbers", given);
  const max = given[1] === null || given[1] === Infinity ? undefined : given[1];
  return { min: given[0], max };
}

/** The kinds of layers of Granite 4's hybrids; `transformers` 5 gives older names new ones. */
const hybridKinds: Readonly<Record<string, boolean>> = {
  linear_attention: true,
  mamba: true,
  full_attention: false,
  attention: false,
};

/** Granite 4's state space layers: those that `layer_types` lists, or all. */
export function hybridStateSpace(config: Settings, index: number): StateSpaceDescription | undefined {
  const types = config.get("layer_types");
  const count = config.whole("num_hidden_layers");
  const isKnown = (type: unknown) => typeof type === "string" && Object.hasOwn(hybridKinds, type);
  if (types !== undefined && !(Array.isArray(types) && types.length === count && types.every(isKnown)))
    throw config.wrong(
      "layer_types",
      `a list of ${count} values (num_hidden_layers), each ${Object.keys(hybridKinds).join(", ")}`,
      types,
    );
  if (types !== undefined && !hybridKinds[types[index] as string]) return undefined;
  const inner = config.whole("mamba_expand") * config.whole("hidden_size");
  const heads = config.whole("mamba_n_heads");
  if (inner % heads !== 0) throw config.wrong("mamba_n_heads", `a divisor of ${inner}`, heads);
  const given = config.get("mamba_d_head");
  if (given !== "auto" && config.whole("mamba_d_head") !== inner / heads)
    throw config.wrong("mamba_d_head", `"auto" or ${inner / heads}`, given);
  const groups = config.whole("mamba_n_groups");
  if (heads % groups !== 0) throw config.wrong("mamba_n_groups", "a divisor of mamba_n_heads", groups);
  checkSilu(config);
  return {
    kind: "stateSpace",
    heads,
    headWidth: inner / heads,
    groups,
    stateSize: config.whole("mamba_d_state"),
    kernel: config.whole("mamba_d_conv"),
    bias: config.flag("mamba_proj_bias", false),
    convolutionBias: config.flag("mamba_conv_bias", false),
    eps: config.positive("rms_norm_eps"),
    limits: limitsOf(config),
  };
}

/** Without experts, the feed-forward has the size of the expert for all tokens. */
export const hybridFields = (config: Settings): Readonly<Record<string, unknown>> =>
  (config.wholeIfAny("num_local_experts", 0) ?? 0) > 0 && config.whole("shared_intermediate_size") > 0
    ? {}
    : { intermediate_size: config.whole("shared_intermediate_size") };

/** Bamba's layers with attention are those in `attn_layer_indices`. */
export function bambaFields(config: Settings): Readonly<Record<string, unknown>> {
  const listed = config.get("attn_layer_indices") ?? [];
  if (!(Array.isArray(listed) && listed.every(Number.isSafeInteger)))
    throw config.wrong("attn_layer_indices", "a list of layer indices", listed);
  const layers = Array.from({ length: config.whole("num_hidden_layers") }, (_, at) => at);
  return {
    layer_types: layers.map((at) => (listed.includes(at) ? "attention" : "mamba")),
    partial_rotary_factor: null, // transformers replaces this key by 1 / 2
  };
}

/** The kinds of Nemotron-H's blocks by their letters in published files, and by older names. */
const nemotronKinds: Readonly<Record<string, string>> = {
  M: "linear_attention",
  mamba: "linear_attention",
  "*": "full_attention",
  attention: "full_attention",
  E: "moe",
  "-": "mlp",
};

const nemotronTypes = ["linear_attention", "moe", "full_attention", "mlp"];

/** The kind of each block of Nemotron-H, which has attention, a state space layer, an MLP or experts. */
export function nemotronFields(config: Settings): Readonly<Record<string, unknown>> {
  const given = config.get("layer_types") ?? config.textIfAny("hybrid_override_pattern") ?? nemotronTypes;
  const list: readonly unknown[] = typeof given === "string" ? [...given] : Array.isArray(given) ? given : [];
  const types = list.map((kind) => nemotronKinds[`${kind}`] ?? kind);
  if (types.length === 0 || !types.every((kind) => nemotronTypes.includes(`${kind}`)))
    throw config.wrong(
      "layers_block_type (or hybrid_override_pattern)",
      `a list of ${nemotronTypes.join(", ")}`,
      given,
    );
  return {
    layer_types: types,
    num_hidden_layers: types.length,
    mlp_layer_types: types.map((kind) => (kind === "moe" ? "sparse" : "dense")),
    rms_norm_eps: config.positive("layer_norm_epsilon"),
  };
}

const kindOf = (config: Settings, index: number): string => (config.get("layer_types") as string[])[index];

/** Nemotron-H's state space layers have Mamba 2's fields under other names. */
export function nemotronStateSpace(config: Settings, index: number): StateSpaceDescription | undefined {
  if (kindOf(config, index) !== "linear_attention") return undefined;
  checkSilu(config, "mamba_hidden_act");
  const [heads, width] = [config.whole("mamba_num_heads"), config.whole("mamba_head_dim")];
  const own = {
    num_heads: heads,
    head_dim: width,
    hidden_size: heads * width,
    expand: 1,
    state_size: config.get("ssm_state_size"),
    hidden_act: config.get("mamba_hidden_act"),
    time_step_limit: [config.number("time_step_min"), null],
  };
  return stateSpace(config.with(new Map([...config.entries(), ...Object.entries(own)])));
}

/** Keeps one part of a block of Nemotron-H. */
export const nemotronParts = (config: Settings, index: number, layer: LayerDescription): LayerDescription =>
  kindOf(config, index).endsWith("attention")
    ? { ...layer, feedForward: noFeedForward }
    : { ...layer, attention: noAttention };

/** An upper bound, far above the length of any text. A recurrent state has no limit. */
const UNLIMITED = 2 ** 20;

/** The first Mamba and Mamba 2: recurrent layers only. */
function recurrentModel(
  architecture: string,
  config: Settings,
  count: number,
  recurrent: RecurrentDescription,
): DecoderDescription {
  if (!config.flag("is_causal"))
    throw config.refused("unsupportedConfig", "expected is_causal to be true, the only supported value, got false");
  return {
    architecture,
    vocabularySize: config.whole("vocab_size"),
    width: config.whole("hidden_size"),
    contextLength: UNLIMITED,
    tied: config.flag("tie_word_embeddings"),
    norm: { kind: "rmsNorm", eps: config.positive("layer_norm_epsilon") },
    layers: Array.from({ length: count }, () => ({
      norms: "before",
      attention: noAttention,
      recurrent,
      feedForward: noFeedForward,
    })),
  };
}

export const mamba2 = (config: Settings, count: number): DecoderDescription =>
  recurrentModel("mamba2", config, count, stateSpace(config));

/** Falcon Mamba normalizes the parts of the selection, without weights. */
export const falconMamba = (config: Settings, count: number): DecoderDescription =>
  recurrentModel("falcon_mamba", config, count, {
    ...selectiveState(config),
    normEps: config.positive("mixer_rms_eps"),
    normWeights: false,
  });

export const mamba = (config: Settings, count: number): DecoderDescription =>
  recurrentModel("mamba", config, count, selectiveState(config));

/** The first Mamba's layers. */
function selectiveState(config: Settings): SelectiveStateDescription {
  checkSilu(config);
  const width = config.whole("hidden_size");
  const isUsual = config.get("time_step_rank") === "auto";
  return {
    kind: "selectiveState",
    inner: config.whole("expand") * width,
    stateSize: config.whole("state_size"),
    rank: isUsual ? Math.ceil(width / 16) : config.whole("time_step_rank"),
    kernel: config.whole("conv_kernel"),
    bias: config.flag("use_bias"),
    convolutionBias: config.flag("use_conv_bias"),
  };
}

/** Whether a layer of Jamba has attention (`attn`) or experts (`expert`): every `period`-th from `offset` on. */
function isOfKind(config: Settings, kind: "attn" | "expert", index: number): boolean {
  const [period, offset] = [config.whole(`${kind}_layer_period`), config.whole(`${kind}_layer_offset`, 0)];
  if (offset < period) return index % period === offset;
  throw config.wrong(`${kind}_layer_offset`, `below ${kind}_layer_period, ${period}`, offset);
}

/** Jamba's layers without attention have the first Mamba's fields under other names. */
export function jambaState(config: Settings, index: number): SelectiveStateDescription | undefined {
  if (isOfKind(config, "attn", index)) return undefined;
  const names = {
    expand: "mamba_expand",
    state_size: "mamba_d_state",
    time_step_rank: "mamba_dt_rank",
    conv_kernel: "mamba_d_conv",
    use_bias: "mamba_proj_bias",
    use_conv_bias: "mamba_conv_bias",
  };
  const own = Object.entries(names).map(([name, given]) => [name, config.get(given)] as const);
  const state = selectiveState(config.with(new Map([...config.entries(), ...own])));
  return { ...state, normEps: config.positive("rms_norm_eps") };
}

/** The layers of Jamba with experts. */
export function jambaFields(config: Settings): Readonly<Record<string, unknown>> {
  const isSparse = (at: number) => isOfKind(config, "expert", at) && config.whole("num_experts") > 1;
  const kinds = Array.from({ length: config.whole("num_hidden_layers") }, (_, at) =>
    isSparse(at) ? "sparse" : "dense",
  );
  return { norm_topk_prob: false, mlp_layer_types: kinds };
}
