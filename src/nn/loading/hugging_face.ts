/** The description of a model in a folder of Hugging Face: what its `config.json` says. */
import { join } from "node:path";
import { ArgumentError } from "../../core/errors.ts";
import type { DecoderDescription, FeedForwardDescription, LayerDescription } from "../decoder/description.ts";
import { readConfig } from "../hugging_face/config.ts";
import { type Architecture, type ArchitectureName, architectures, type Described, rowOf } from "./architectures.ts";
import { ropeOf, stretched } from "./rope_settings.ts";
import { Settings } from "./settings.ts";

/** Far more than any model has. */
const MOST_LAYERS = 65_536;

/** @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for an architecture that is not known. */
export function describeFolder(folder: string): Described & { readonly config: object } {
  const config = readConfig("loadModel", folder);
  const settings = new Settings(join(folder, "config.json"), new Map(Object.entries(config)));
  const text = settings.textIfAny("model_type") === "gemma3" ? settings.inner("text_config") : settings;
  const name = nameOf(settings);
  return { name, description: describe(name, text ?? settings), config };
}

/** Other names of architectures, in files. */
const aliases: Readonly<Record<string, ArchitectureName>> = { gemma3: "gemma3_text" };

function nameOf(settings: Settings): ArchitectureName {
  const type = settings.textIfAny("model_type");
  const name = type !== undefined && Object.hasOwn(aliases, type) ? aliases[type] : type;
  if (name !== undefined && Object.hasOwn(architectures, name)) return name as ArchitectureName;
  throw unknownArchitecture(settings.path, "model_type", type);
}

/** @internal What isn't known is refused by name, with what it would need. */
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
      `${got === undefined ? "none" : JSON.stringify(got)}; another one needs a row in src/nn/loading/architectures.ts`,
  );

function describe(architecture: ArchitectureName, config: Settings): DecoderDescription {
  const row = rowOf(architecture);
  const count = config.whole(architecture === "gpt2" ? "n_layer" : "num_hidden_layers");
  if (count > MOST_LAYERS) throw config.wrong("num_hidden_layers", `at most ${MOST_LAYERS}`, count);
  return architecture === "gpt2" ? gpt2(row, config, count) : llamaLike(architecture, row, config, count);
}

const activations: Readonly<Record<string, FeedForwardDescription["activation"]>> = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_new: "geluTanh",
  gelu_pytorch_tanh: "geluTanh",
};

function activationOf(config: Settings, row: Architecture, ...names: readonly string[]) {
  const name = names.map((own) => config.textIfAny(own)).find((own) => own !== undefined);
  if (name === undefined) return row.activation ?? "silu";
  const activation = Object.hasOwn(activations, name) ? activations[name] : undefined;
  if (activation !== undefined) return activation;
  throw new ArgumentError(
    "loadModel",
    "unknownActivation",
    `${config.path}: expected ${names[0]} to be one of ${Object.keys(activations).join(", ")}, got "${name}"`,
  );
}

function gpt2(row: Architecture, config: Settings, count: number): DecoderDescription {
  const [width, heads, contextLength] = [config.whole("n_embd"), config.whole("n_head"), config.whole("n_positions")];
  if (width % heads !== 0) throw config.wrong("n_embd", "a multiple of n_head", width);
  for (const [name, only] of [
    ["scale_attn_weights", true],
    ["scale_attn_by_inverse_layer_idx", false],
    ["add_cross_attention", false],
  ] as const)
    if (config.flag(name, only) !== only) throw config.wrong(name, `${only}, the only supported value`, !only);
  const activation = activationOf(config, row, "activation_function");
  const layer: LayerDescription = {
    norms: "before",
    attention: {
      ...{ heads, keyValueHeads: heads, headWidth: width / heads, fused: true },
      ...{ queryKeyValueBias: true, outputBias: true },
    },
    feedForward: { hidden: config.wholeIfAny("n_inner") ?? 4 * width, gated: false, activation, bias: true },
  };
  return {
    ...{ architecture: "gpt2", vocabularySize: config.whole("vocab_size"), contextLength, width },
    norm: { kind: "layerNorm", eps: config.positiveIfAny("layer_norm_epsilon") ?? 1e-5 },
    ...{ learnedPositions: true, tied: config.flag("tie_word_embeddings", true) },
    layers: Array.from({ length: count }, () => layer),
  };
}

function llamaLike(
  architecture: ArchitectureName,
  row: Architecture,
  config: Settings,
  count: number,
): DecoderDescription {
  const width = config.whole("hidden_size");
  const layers = Array.from({ length: count }, (_, index) => layerOf(row, config, index));
  const contextLength = stretched(config.whole("max_position_embeddings"), layers[0]?.attention.rope);
  return {
    ...{ architecture, vocabularySize: config.whole("vocab_size"), width },
    ...{ contextLength, layers, tied: config.flag("tie_word_embeddings", row.tied ?? false) },
    norm: { kind: "rmsNorm", eps: config.positiveIfAny("rms_norm_eps") ?? row.eps ?? 1e-6 },
    embeddingScale: row.scaledEmbeddings ? Math.sqrt(width) : undefined,
    logitSoftcap: row.softcaps ? config.positiveIfAny("final_logit_softcapping") : undefined,
  };
}

function layerOf(row: Architecture, config: Settings, index: number): LayerDescription {
  const heads = config.whole("num_attention_heads");
  const headWidth = config.wholeIfAny("head_dim") ?? row.headWidth ?? Math.floor(config.whole("hidden_size") / heads);
  const keyValueHeads = config.wholeIfAny("num_key_value_heads") ?? heads;
  if (heads % keyValueHeads !== 0)
    throw config.wrong("num_attention_heads", "a multiple of num_key_value_heads", heads);
  const window = windowOf(row, config, index);
  const allBiases = (row.biases ?? "attention") === "attention" && config.flag("attention_bias", false);
  const scalar = row.queryScalar ? (config.positiveIfAny("query_pre_attn_scalar") ?? 256) : undefined;
  return {
    norms: row.norms ?? "before",
    attention: {
      ...{ heads, keyValueHeads, headWidth, window },
      ...{ queryKeyValueBias: allBiases || row.biases === "queryKeyValue", outputBias: allBiases },
      ...{ fused: row.fused, queryKeyNorm: row.queryKeyNorm, scale: scalar && 1 / Math.sqrt(scalar) },
      softcap: row.softcaps ? config.positiveIfAny("attn_logit_softcapping") : undefined,
      rope: layerRope(row, config, window !== undefined, headWidth),
    },
    feedForward: feedForwardOf(row, config, index),
  };
}

function layerRope(row: Architecture, config: Settings, slides: boolean, headWidth: number) {
  const context = { config, contextLength: config.whole("max_position_embeddings") };
  const all = config.inner("rope_parameters") ?? config.inner("rope_scaling");
  if (!row.localBase) return ropeOf(all, context, row.ropeBase ?? 10_000, headWidth);
  const own = all?.inner(slides ? "sliding_attention" : "full_attention");
  if (own) return ropeOf(own, context, 10_000, headWidth);
  return slides
    ? { base: config.positiveIfAny("rope_local_base_freq") ?? 10_000 }
    : ropeOf(all, context, 1e6, headWidth);
}

function windowOf({ windows }: Architecture, config: Settings, index: number): number | undefined {
  const size = config.wholeIfAny("sliding_window");
  if (windows === undefined || size === undefined || config.flag("use_sliding_window", true) === false)
    return undefined;
  return slides(windows, config, index) ? size : undefined;
}

function slides(windows: NonNullable<Architecture["windows"]>, config: Settings, index: number): boolean {
  const types = config.get("layer_types");
  if (Array.isArray(types)) return types[index] === "sliding_attention";
  if (windows === "all") return true;
  // Qwen's `use_sliding_window` is false where a config leaves it out.
  if (windows === "upper")
    return config.flag("use_sliding_window", false) && index >= config.whole("max_window_layers", 0);
  const every = config.wholeIfAny("sliding_window_pattern") ?? windows.every;
  return (index + 1) % every !== 0;
}

function feedForwardOf(row: Architecture, config: Settings, index: number): FeedForwardDescription {
  const activation = activationOf(config, row, "hidden_activation", "hidden_act");
  const base = { gated: true, activation, bias: config.flag("mlp_bias", false), fused: row.fused } as const;
  const dense = { ...base, hidden: config.whole("intermediate_size") };
  if (row.experts === undefined || !isSparse(config, index)) return dense;
  const count = config.wholeIfAny("num_local_experts") ?? config.whole("num_experts");
  const perToken = config.whole("num_experts_per_tok");
  if (perToken > count) throw config.wrong("num_experts_per_tok", `at most ${count}`, perToken);
  return {
    ...base,
    hidden: config.wholeIfAny("moe_intermediate_size") ?? dense.hidden,
    experts: {
      ...{ count, perToken },
      normalized: row.experts === "normalized" || config.flag("norm_topk_prob", false),
    },
  };
}

/** Qwen3-MoE may have layers without experts. */
function isSparse(config: Settings, index: number): boolean {
  const dense = config.get("mlp_only_layers");
  if (Array.isArray(dense) && dense.includes(index)) return false;
  return (index + 1) % (config.wholeIfAny("decoder_sparse_step") ?? 1) === 0;
}
