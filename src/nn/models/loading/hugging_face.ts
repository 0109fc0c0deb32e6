/** Converts a `config.json` of Hugging Face to a description. */
import { join } from "node:path";
import { ArgumentError } from "../../../core/errors.ts";
import type {
  AttentionDescription,
  DecoderDescription,
  FeedForwardDescription,
  LayerDescription,
} from "../decoder/description.ts";
import { readConfig } from "../hugging_face/config.ts";
import { type Architecture, type ArchitectureName, architectures, type Described, rowOf } from "./architectures.ts";
import { checkAround, checkKeys, completed, quantizationKeys } from "./config_fields.ts";
import { type RopeContext, ropeOf, stretched } from "./rope_settings.ts";
import { Settings } from "./settings.ts";

/** Far more than any model has. */
const MOST_LAYERS = 65_536;

/**
 * Reads the description of a model folder. @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for an
 * unknown architecture.
 */
export function describeFolder(folder: string): Described & { readonly config: object; readonly settings: Settings } {
  const config = readConfig("loadModel", folder);
  const settings = new Settings(join(folder, "config.json"), new Map(Object.entries(config)));
  const name = nameOf(settings);
  return { name, description: describe(name, settings), config, settings };
}

/**
 * Returns the description of a model of a given architecture from the contents of a `config.json`.
 *
 * @param operation for errors
 * @throws {ArgumentError} `otherModel` for another `model_type`, and for unsupported settings.
 */
export function describeConfig(operation: string, name: ArchitectureName, config: object): DecoderDescription {
  const given = Object.entries(config).filter(([, value]) => value !== undefined);
  const settings = new Settings(undefined, new Map(given), "", operation);
  const type = settings.textIfAny("model_type") ?? name;
  if (type !== name) throw settings.refused("otherModel", `expected model_type "${name}", got "${type}"`);
  const quantized = quantizationKeys.find((key) => settings.get(key) !== undefined);
  if (quantized !== undefined)
    throw settings.refused(
      "quantizedModel",
      `${quantized}: quantized weights are not supported here; load the folder with nn.loadModel`,
    );
  return describe(name, settings);
}

/** Aliases of architectures in files. */
const aliases: Readonly<Record<string, ArchitectureName>> = { gemma3: "gemma3_text" };

function nameOf(settings: Settings): ArchitectureName {
  const type = settings.textIfAny("model_type");
  const name = type !== undefined && Object.hasOwn(aliases, type) ? aliases[type] : type;
  if (name !== undefined && Object.hasOwn(architectures, name)) return name as ArchitectureName;
  throw unknownArchitecture(settings.path!, "model_type", type);
}

/** @internal The error for an unsupported architecture. */
export const unknownArchitecture = (
  path: string,
  field: string,
  got: string | undefined,
  known: readonly string[] = [...Object.keys(architectures), ...Object.keys(aliases)],
): ArgumentError =>
  new ArgumentError(
    "loadModel",
    "unknownArchitecture",
    `${path}: expected ${field} to be one of ${known.join(", ")}, got ` +
      `${got === undefined ? "none" : JSON.stringify(got)}; to support another architecture, add a row to ` +
      "src/nn/models/loading/architectures.ts",
  );

/** For a vision-language model, describes its text part. */
function describe(name: ArchitectureName, settings: Settings): DecoderDescription {
  if (settings.textIfAny("model_type") !== "gemma3") return ofText(name, completed(name, settings));
  const text = settings.inner("text_config") ?? settings.with(new Map());
  checkAround(name, settings);
  return { ...ofText(name, completed(name, text)), tied: settings.flag("tie_word_embeddings", true) };
}

function ofText(name: ArchitectureName, config: Settings): DecoderDescription {
  const counted = name === "gpt2" ? "n_layer" : "num_hidden_layers";
  const count = config.whole(counted);
  if (count > MOST_LAYERS) throw config.wrong(counted, `at most ${MOST_LAYERS}`, count);
  return name === "gpt2" ? gpt2(config, count) : llamaLike(name, config, count);
}

const activations: Readonly<Record<string, FeedForwardDescription["activation"]>> = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_new: "geluTanh",
  gelu_pytorch_tanh: "geluTanh",
};

function activationOf(config: Settings, name: string): FeedForwardDescription["activation"] {
  const activationName = config.textIfAny(name) ?? "";
  const activation = Object.hasOwn(activations, activationName) ? activations[activationName] : undefined;
  if (activation !== undefined) return activation;
  const known = Object.keys(activations).join(", ");
  throw config.refused("unknownActivation", `expected ${name} to be one of ${known}, got "${activationName}"`);
}

function gpt2(config: Settings, count: number): DecoderDescription {
  const [width, heads, contextLength] = [config.whole("n_embd"), config.whole("n_head"), config.whole("n_positions")];
  if (width % heads !== 0) throw config.wrong("n_embd", "a multiple of n_head", width);
  const [activation, headWidth] = [activationOf(config, "activation_function"), width / heads];
  const scale = config.flag("scale_attn_weights") ? 1 / Math.sqrt(headWidth) : 1;
  const isByLayer = config.flag("scale_attn_by_inverse_layer_idx");
  const layer = (index: number): LayerDescription => ({
    norms: "before",
    attention: {
      ...{ heads, keyValueHeads: heads, headWidth, fused: true, queryKeyValueBias: true, outputBias: true },
      ...{ scale: isByLayer ? scale / (index + 1) : scale, bidirectional: !config.flag("is_causal") },
    },
    feedForward: { hidden: config.wholeIfAny("n_inner") ?? 4 * width, gated: false, activation, bias: true },
  });
  return {
    ...{ architecture: "gpt2", vocabularySize: config.whole("vocab_size"), contextLength, width },
    norm: { kind: "layerNorm", eps: config.positive("layer_norm_epsilon") },
    ...{ learnedPositions: true, tied: config.flag("tie_word_embeddings") },
    layers: Array.from({ length: count }, (_, index) => layer(index)),
  };
}

function llamaLike(architecture: ArchitectureName, config: Settings, count: number): DecoderDescription {
  const row = rowOf(architecture);
  const width = config.whole("hidden_size");
  const layers = Array.from({ length: count }, (_, index) => layerOf(row, config, index));
  const contextLength = stretched(config.whole("max_position_embeddings"), layers[0]?.attention.rope);
  return {
    ...{ architecture, vocabularySize: config.whole("vocab_size"), width },
    ...{ contextLength, layers, tied: config.flag("tie_word_embeddings") },
    norm: { kind: "rmsNorm", eps: config.positive("rms_norm_eps") },
    embeddingScale: row.scaledEmbeddings ? Math.sqrt(width) : undefined,
    logitSoftcap: config.positiveIfAny("final_logit_softcapping"),
  };
}

function layerOf(row: Architecture, config: Settings, index: number): LayerDescription {
  const heads = config.whole("num_attention_heads");
  const headWidth = config.wholeIfAny("head_dim") ?? Math.floor(config.whole("hidden_size") / heads);
  if (headWidth < 1) throw config.wrong("num_attention_heads", "at most hidden_size", heads);
  const keyValueHeads = config.wholeIfAny("num_key_value_heads") ?? heads;
  if (heads % keyValueHeads !== 0)
    throw config.wrong("num_attention_heads", "a multiple of num_key_value_heads", heads);
  const window = windowOf(row, config, index);
  const allBiases = config.flag("attention_bias", false);
  return {
    norms: row.norms ?? "before",
    attention: {
      ...{ heads, keyValueHeads, headWidth, ...reachOf(config, window) },
      ...{ queryKeyValueBias: allBiases || row.queryKeyValueBias === true, outputBias: allBiases },
      ...{ fused: row.fused, queryKeyNorm: row.queryKeyNorm },
      scale: row.queryScalar ? 1 / Math.sqrt(config.positive("query_pre_attn_scalar")) : undefined,
      softcap: row.softcaps ? config.positiveIfAny("attn_logit_softcapping") : undefined,
      rope: layerRope(row, config, window !== undefined, headWidth),
    },
    feedForward: feedForwardOf(row, config, index),
  };
}

/**
 * `rope_scaling` takes precedence over `rope_parameters`. With two kinds of layers, it applies to those without a
 * window.
 */
function layerRope(row: Architecture, config: Settings, isSliding: boolean, headWidth: number) {
  const base = () => config.positive("rope_theta");
  const context: RopeContext = { ...{ config, row, headWidth, base } };
  const [older, all] = [config.inner("rope_scaling"), config.inner("rope_parameters")];
  if (!row.localBase) return ropeOf(older?.names.length ? older : all, context);
  if (all) checkKeys(all, (key) => key in kindsOfLayers, "is not a layer type");
  const section = all?.inner(isSliding ? "sliding_attention" : "full_attention");
  if (isSliding) return ropeOf(section, { ...context, base: () => config.positive("rope_local_base_freq") });
  const before = section?.entries() ?? [["rope_type", "default"]];
  return ropeOf(older?.with(new Map([...before, ...older.entries()])) ?? section, context);
}

const kindsOfLayers: Readonly<Record<string, boolean>> = { sliding_attention: true, full_attention: false };

/**
 * Which tokens a layer's tokens attend to. With `is_causal: false`, the window on each side does not count the token
 * itself. With `use_bidirectional_attention`, the window covers both sides together.
 */
function reachOf(config: Settings, size: number | undefined): Pick<AttentionDescription, "window" | "bidirectional"> {
  const isCausal = config.flag("is_causal");
  const isHalved = config.flag("use_bidirectional_attention", false);
  if (isCausal && !isHalved) return { window: size };
  const side = size !== undefined && isHalved ? Math.floor(size / 2) + 1 : size;
  return { bidirectional: true, window: side !== undefined && !isCausal ? side + 1 : side };
}

/** Returns the window of a layer; undefined if it attends to all tokens. */
function windowOf({ windows }: Architecture, config: Settings, index: number): number | undefined {
  const size = config.wholeIfAny("sliding_window");
  if (windows === undefined || !config.flag("use_sliding_window", true)) return undefined;
  if (windows === "all") return size;
  const types = config.get("layer_types");
  if (types === undefined && windows === "upper")
    return index >= config.whole("max_window_layers", 0) ? size : undefined;
  const isSliding = types === undefined ? (index + 1) % everyOf(windows, config) !== 0 : slides(types, config, index);
  if (!isSliding) return undefined;
  return size ?? config.whole("sliding_window");
}

/** Returns n such that every n-th layer has no window. */
const everyOf = (windows: Architecture["windows"], config: Settings): number =>
  config.wholeIfAny("sliding_window_pattern") ?? (typeof windows === "object" ? windows.every : 1);

/** @throws {FileFormatError} if the list does not have one kind per layer. */
function slides(types: unknown, config: Settings, index: number): boolean {
  const count = config.whole("num_hidden_layers");
  const isKnown = (type: unknown) => typeof type === "string" && Object.hasOwn(kindsOfLayers, type);
  if (Array.isArray(types) && types.length === count && types.every(isKnown)) return kindsOfLayers[types[index]]!;
  throw config.wrong("layer_types", `${count} of ${Object.keys(kindsOfLayers).join(", ")}`, types);
}

function feedForwardOf(row: Architecture, config: Settings, index: number): FeedForwardDescription {
  const key = config.names.includes("hidden_activation") ? "hidden_activation" : "hidden_act";
  const activation = activationOf(config, key);
  const base = { gated: true, activation, bias: config.flag("mlp_bias", false), fused: row.fused } as const;
  const dense = { ...base, hidden: config.whole("intermediate_size") };
  const count = config.wholeIfAny("num_local_experts") ?? config.wholeIfAny("num_experts", 0) ?? 0;
  if (row.experts === undefined || count === 0 || !isSparse(config, index)) return dense;
  const perToken = config.whole("num_experts_per_tok");
  if (perToken > count) throw config.wrong("num_experts_per_tok", `at most ${count}`, perToken);
  return {
    ...base,
    hidden: config.wholeIfAny("moe_intermediate_size") ?? dense.hidden,
    experts: { count, perToken, normalized: row.experts === "normalized" || config.flag("norm_topk_prob") },
  };
}

/** Qwen3-MoE may have layers without experts. */
function isSparse(config: Settings, index: number): boolean {
  const dense = config.get("mlp_only_layers") ?? [];
  if (!Array.isArray(dense) || !dense.every(Number.isSafeInteger))
    throw config.wrong("mlp_only_layers", "a list of layer indices", dense);
  return !dense.includes(index) && (index + 1) % (config.wholeIfAny("decoder_sparse_step") ?? 1) === 0;
}
