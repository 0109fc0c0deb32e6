/** Reads the settings of Gemma 3n and Gemma 4 that other decoders lack. Source: Hugging Face's config classes. */
import type { Json } from "../../../io/json.ts";
import type { FeedForwardDescription, LayerDescription } from "../decoder/description.ts";
import { activationOf } from "./activations.ts";
import type { Settings } from "./settings.ts";

type Derived = Readonly<Record<string, unknown>>;

const SLIDING = "sliding_attention";
const FULL = "full_attention";

/** The rotations of Gemma 4 in files without settings. */
const gemma4Rotations = {
  [SLIDING]: { rope_type: "default", rope_theta: 10_000 },
  [FULL]: { rope_type: "proportional", partial_rotary_factor: 0.25, rope_theta: 1_000_000 },
} as const satisfies Readonly<Record<string, Json>>;

/** Returns the kinds of layers: those of the config, or full attention in every n-th layer. */
function kindsOf(config: Settings, every: number): string[] {
  const given = config.get("layer_types");
  const count = config.whole("num_hidden_layers");
  if (given === undefined) return Array.from({ length: count }, (_, at) => ((at + 1) % every === 0 ? FULL : SLIDING));
  if (Array.isArray(given) && given.length === count && given.every((kind) => kind === SLIDING || kind === FULL))
    return [...given];
  throw config.wrong("layer_types", `a list of ${count} values, each ${SLIDING} or ${FULL}`, given);
}

/** Scores are not scaled. */
const unscaled = { query_pre_attn_scalar: 1 } as const;

/** Fields of Gemma 3n. */
export function gemma3nFields(config: Settings): Derived {
  const kinds = kindsOf(config, 5);
  checkShared(config, kinds);
  return { ...unscaled, layer_types: kinds };
}

/** Fields of Gemma 4. The last layer always has full attention. */
export function gemma4Fields(config: Settings): Derived {
  const kinds = [...kindsOf(config, 6).slice(0, -1), FULL];
  checkShared(config, kinds);
  const reach = config.textIfAny("use_bidirectional_attention");
  if (reach !== undefined && reach !== "all" && reach !== "vision")
    throw config.wrong("use_bidirectional_attention", '"all", "vision" or null', reach);
  if (config.get("rope_scaling") !== undefined)
    throw config.refused("unsupportedConfig", "rope_scaling is not a setting of gemma4_text; use rope_parameters");
  return {
    ...unscaled,
    layer_types: kinds,
    use_bidirectional_attention: reach === "all",
    ...(reach === "all" && { is_causal: false }),
    rope_parameters: config.get("rope_parameters") ?? gemma4Rotations,
  };
}

/** The index of the first layer without keys and values; all later layers have none either. */
const firstShared = (config: Settings): number =>
  config.whole("num_hidden_layers") - (config.wholeIfAny("num_kv_shared_layers", 0) ?? 0);

/** @throws {FileFormatError} if a layer without keys and values has no earlier layer of its kind. */
function checkShared(config: Settings, kinds: readonly string[]): void {
  const first = firstShared(config);
  const before = kinds.slice(0, Math.max(0, first));
  if (first === kinds.length || kinds.every((kind) => before.includes(kind))) return;
  throw config.wrong(
    "num_kv_shared_layers",
    "a number that leaves at least one layer of each kind in layer_types before the shared ones",
    config.get("num_kv_shared_layers"),
  );
}

/** How a layer shares keys and values with others of its kind. */
function sharingOf(config: Settings, index: number): LayerDescription["attention"]["sharing"] {
  const [kinds, first] = [config.get("layer_types") as string[], firstShared(config)];
  if (first === kinds.length) return undefined;
  const name = kinds[index];
  if (index >= first) return { name, stores: false };
  return kinds.lastIndexOf(name, first - 1) === index ? { name, stores: true } : undefined;
}

/** Returns the settings of one layer of Gemma 3n, whose feed-forwards may have several sizes. */
export function gemma3nLayer(config: Settings, index: number): Settings {
  const sizes = config.get("intermediate_size");
  if (!Array.isArray(sizes)) return config;
  const count = config.whole("num_hidden_layers");
  if (sizes.length !== count) throw config.wrong("intermediate_size", `a number, or a list of ${count}`, sizes);
  return withFields(config, { intermediate_size: sizes[index] });
}

/** Returns the settings of one layer of Gemma 4: layers with full attention have larger heads. */
export function gemma4Layer(config: Settings, index: number): Settings {
  const own = config.inner("per_layer_config")?.inner(`${index}`);
  const isFull = (config.get("layer_types") as string[])[index] === FULL;
  const isWide = index >= firstShared(config) && config.flag("use_double_wide_mlp");
  const doubled = isWide ? { intermediate_size: 2 * config.whole("intermediate_size") } : {};
  if (config.get("per_layer_config") !== undefined)
    return withFields(config, { ...doubled, ...Object.fromEntries(own?.entries() ?? []) });
  const heads = config.flag("attention_k_eq_v") ? config.wholeIfAny("num_global_key_value_heads") : undefined;
  const wide = {
    head_dim: config.whole("global_head_dim"),
    ...(heads !== undefined && { num_key_value_heads: heads }),
  };
  return withFields(config, { ...doubled, ...(isFull && wide) });
}

const withFields = (config: Settings, fields: Derived): Settings =>
  config.with(new Map([...config.entries(), ...Object.entries(fields)]));

/** Settings that the layers of both models have. */
function gemmaLayer(config: Settings, index: number, layer: LayerDescription): LayerDescription {
  const sharing = sharingOf(config, index);
  return { ...layer, attention: { ...layer.attention, valueNorm: true, sharing } };
}

/** Adds the parts of Gemma 3n. */
export function gemma3nParts(config: Settings, index: number, layer: LayerDescription): LayerDescription {
  const { feedForward, ...others } = gemmaLayer(config, index, layer);
  const [count, active] = [config.whole("altup_num_inputs"), config.whole("altup_active_idx", 0)];
  config.whole("hidden_size_per_layer_input");
  if (active >= count) throw config.wrong("altup_active_idx", `below altup_num_inputs, ${count}`, active);
  return {
    ...others,
    feedForward: { ...feedForward, sparsity: sparsityOf(config, index) },
    layerInput: layerInputOf(config, feedForward),
    altUp: { count, active, scaled: config.flag("altup_correct_scale"), rank: config.whole("laurel_rank") },
  };
}

/** Models of more than ten layers have ten sparse ones by default. */
function sparsityOf(config: Settings, index: number): number | undefined {
  const [given, count] = [config.get("activation_sparsity_pattern"), config.whole("num_hidden_layers")];
  if (given === undefined) return count > 10 && index < 10 ? 0.95 : undefined;
  const isShare = (value: unknown) => typeof value === "number" && value >= 0 && value < 1;
  if (Array.isArray(given) && given.length === count && given.every(isShare)) return given[index] || undefined;
  throw config.wrong("activation_sparsity_pattern", `a list of ${count} numbers from 0 to below 1`, given);
}

function layerInputOf(config: Settings, { activation }: FeedForwardDescription): LayerDescription["layerInput"] {
  const width = config.wholeIfAny("hidden_size_per_layer_input", 0) ?? 0;
  return width > 0 ? { width, activation } : undefined;
}

/** Adds the parts of Gemma 4. */
export function gemma4Parts(config: Settings, index: number, layer: LayerDescription): LayerDescription {
  const described = gemmaLayer(config, index, layer);
  const isFull = (config.get("layer_types") as string[])[index] === FULL;
  const keysAsValues = isFull && config.flag("attention_k_eq_v");
  return {
    ...described,
    attention: { ...described.attention, keysAsValues },
    scaled: true,
    layerInput: layerInputOf(config, layer.feedForward),
    beside: besideOf(config),
  };
}

function besideOf(config: Settings): FeedForwardDescription | undefined {
  if (!config.flag("enable_moe_block")) return undefined;
  const [count, perToken] = [config.whole("num_experts"), config.whole("top_k_experts")];
  if (perToken > count) throw config.wrong("top_k_experts", `at most num_experts, ${count}`, perToken);
  return {
    hidden: config.whole("moe_intermediate_size"),
    gated: true,
    fused: true,
    bias: false,
    activation: activationOf(config, "hidden_activation"),
    experts: { count, perToken, normalized: true, expertScales: true },
  };
}
