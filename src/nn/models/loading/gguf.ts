/** Converts the metadata and tensor names of a GGUF file to a description. */
import type { GgufReader } from "../../../io/gguf/file.ts";
import { QuantizedTensor } from "../../../quant/quantized_tensor.ts";
import type {
  AttentionDescription,
  DecoderDescription,
  ExpertsDescription,
  LayerDescription,
  NormDescription,
  RopeDescription,
} from "../decoder/description.ts";
import type { Architecture } from "./architecture.ts";
import { type ArchitectureName, type Described, rowOf } from "./architectures.ts";
import { completed } from "./config_fields.ts";
import { ggufAliases } from "./gguf_aliases.ts";
import { ggufConfigs } from "./gguf_configs.ts";
import { chosenCount, expertCount, type GgufContext } from "./gguf_fields.ts";
import { ggufFurther } from "./gguf_further.ts";
import { ofText, unknownArchitecture } from "./hugging_face.ts";
import { Settings } from "./settings.ts";

/** llama.cpp's names of architectures. It also uses `llama` for Mistral and Mixtral. */
export const ggufArchitectures: Readonly<Record<string, ArchitectureName>> = {
  gpt2: "gpt2",
  llama: "llama",
  qwen2: "qwen2",
  qwen3: "qwen3",
  qwen3moe: "qwen3_moe",
  gemma2: "gemma2",
  gemma3: "gemma3_text",
  phi3: "phi3",
  olmo2: "olmo2",
  smollm3: "smollm3",
  olmo: "olmo",
  granite: "granite",
  gemma: "gemma",
  phi2: "phi",
  chatglm: "glm",
  glm4: "glm4",
  "command-r": "cohere",
  cohere2: "cohere2",
  nemotron: "nemotron",
  seed_oss: "seed_oss",
  ernie4_5: "ernie4_5",
  stablelm: "stablelm",
  starcoder2: "starcoder2",
  arcee: "arcee",
  exaone4: "exaone4",
  olmoe: "olmoe",
  granitemoe: "granitemoe",
  qwen2moe: "qwen2_moe",
  "gpt-oss": "gpt_oss",
  glm4moe: "glm4_moe",
  gptneox: "gpt_neox",
  falcon: "falcon",
  // the language models of Qwen's vision-language models; for text, M-RoPE equals RoPE
  qwen2vl: "qwen2",
  qwen3vl: "qwen3",
};

/** Architectures whose rows of queries and keys llama.cpp's converter reorders, so that adjacent elements rotate. */
const reordered: ReadonlySet<ArchitectureName> = new Set([
  ...(["llama", "smollm3", "olmo", "granite", "granitemoe", "arcee", "granitemoehybrid", "ministral3"] as const),
]);

/** Architectures whose weights of experts llama.cpp does not divide by their sum. */
const unnormalized: ReadonlySet<ArchitectureName> = new Set(["qwen2_moe", "olmoe"]);

/** Further architectures by llama.cpp's names. */
export const furtherGguf = { ...ggufConfigs, ...ggufAliases, ...ggufFurther };

/** Far more layers than any model has. */
const MOST_LAYERS = 65_536;

/** The sources of a description. */
interface Context {
  readonly file: GgufReader;
  readonly name: ArchitectureName;
  /** The architecture's settings by their names without the prefix, such as `block_count`. */
  readonly settings: Settings;
}

/**
 * Returns the description of the model in a GGUF file. @throws {FileFormatError} @throws {ArgumentError} for an unknown
 * architecture.
 */
export function describeGguf(file: GgufReader): Described {
  const field = Object.hasOwn(file.metadata, "general.architecture")
    ? file.metadata["general.architecture"]
    : undefined;
  const architecture = typeof field?.value === "string" ? field.value : undefined;
  const name =
    architecture !== undefined && Object.hasOwn(ggufArchitectures, architecture)
      ? ggufArchitectures[architecture]
      : undefined;
  const isFurther = architecture !== undefined && Object.hasOwn(furtherGguf, architecture);
  if (name === undefined && !isFurther)
    throw unknownArchitecture(file.path, "general.architecture", architecture, [
      ...Object.keys(ggufArchitectures),
      ...Object.keys(furtherGguf),
    ]);
  const prefix = `${architecture}.`;
  const fields = Object.entries(file.metadata)
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, { value }]) => [key.slice(prefix.length), plain(value)] as const);
  const settings = withoutPrediction(new Settings(file.path, new Map(fields), prefix));
  if (name === undefined) return describeFurther(architecture!, { file, settings });
  // OLMo 3 differs from OLMo 2 by its windows
  const hasWindows = (settings.wholeIfAny("attention.sliding_window", 0) ?? 0) > 0;
  const supported = name === "olmo2" && hasWindows ? "olmo3" : name;
  return { name: supported, description: describe({ file, name: supported, settings }) };
}

/** Leaves out the last blocks if they are for multi-token prediction. */
function withoutPrediction(settings: Settings): Settings {
  const count = settings.whole("block_count") - (settings.wholeIfAny("nextn_predict_layers", 0) ?? 0);
  return settings.with(new Map([...settings.entries(), ["block_count", count]]));
}

/** Describes an architecture by the fields of its config, with the parts and the rotation that the file has. */
function describeFurther(architecture: string, context: GgufContext): Described {
  const { name: named, config, layer: changed } = furtherGguf[architecture];
  const name = typeof named === "function" ? named(context) : named;
  const fields = Object.entries(config(context)).filter(([, value]) => value !== undefined);
  const own = { ...context, name };
  const description = ofText(name, completed(name, context.settings.with(new Map(fields))));
  return {
    name,
    description: {
      ...description,
      layers: description.layers.map((layer, at) => {
        const all = adapted(own, layer, at);
        return changed?.(all, context) ?? all;
      }),
    },
  };
}

/** Adds settings that a `config.json` would state: the scaling of rotations, and which weights share one tensor. */
function adapted(context: Context, layer: LayerDescription, index: number): LayerDescription {
  const { file, name, settings } = context;
  const has = (end: string) => file.has(`blk.${index}.${end}`);
  const { attention, feedForward, recurrent, beside } = layer;
  const isLocal = rowOf(name).localBase !== undefined && attention.window !== undefined;
  const scaling =
    isLocal || name === "ministral3" ? attention.rope?.scaling : (factorsOf(context) ?? scalingOf(settings));
  const lengthening = attention.latent ? lengtheningOf(settings) : undefined;
  const isEven = lengthening !== undefined && scaling?.type === "yarn";
  const interleaved = reordered.has(name) || attention.rope?.interleaved;
  const rope = attention.rope && {
    ...attention.rope,
    interleaved,
    scaling: isEven ? { ...scaling, attentionFactor: 1 } : scaling,
  };
  return {
    ...layer,
    attention: {
      ...attention,
      rope,
      fused: attention.heads > 0 && has("attn_qkv.weight"),
      scale: lengthening === undefined ? attention.scale : attention.scale! * lengthening ** 2,
    },
    feedForward: {
      ...feedForward,
      fused: feedForward.fused && !has("ffn_gate.weight") && !has("ffn_gate_exps.weight"),
    },
    beside: beside && { ...beside, fused: has("ffn_gate_up_exps.weight") },
    recurrent: recurrent?.kind === "deltaNet" ? { ...recurrent, apart: true, tiled: name !== "qwen3_next" } : recurrent,
  };
}

/** YaRN's factor of DeepSeek's scores, 1 + 0.1 · mscale_all_dim · ln(factor); undefined if the file has none. */
function lengtheningOf(settings: Settings): number | undefined {
  const multiplier = settings.positiveIfAny("rope.scaling.yarn_log_multiplier");
  const factor = settings.positiveIfAny("rope.scaling.factor");
  return multiplier === undefined || factor === undefined ? undefined : 1 + multiplier * Math.log(factor);
}

/** Converts 64-bit integers to numbers. Settings of models are small enough for this to be exact. */
const plain = (value: unknown): unknown => (typeof value === "bigint" ? Number(value) : value);

function describe(context: Context): DecoderDescription {
  const { file, name, settings } = context;
  const row = rowOf(name);
  const count = settings.whole("block_count");
  if (count > MOST_LAYERS) throw settings.wrong("block_count", `at most ${MOST_LAYERS}`, count);
  const embedding = file.has("token_embd.weight") ? file.info("token_embd.weight").shape : undefined;
  const vocabularySize = embedding?.[0] ?? settings.whole("vocab_size");
  const width = settings.whole("embedding_length");
  const isPlain = row.norm !== undefined;
  return {
    architecture: name,
    vocabularySize,
    width,
    contextLength: settings.whole("context_length"),
    norm: isPlain
      ? plainNormOf(context)
      : { kind: "rmsNorm", eps: settings.positive("attention.layer_norm_rms_epsilon") },
    embeddingScale: row.scaledEmbeddings ? Math.sqrt(width) : settings.positiveIfAny("embedding_scale"),
    headBias: file.has("output.bias"),
    logitScale: logitScaleOf(row, settings),
    learnedPositions: row.learnedPositions,
    tied: !file.has("output.weight"),
    logitSoftcap: row.softcaps ? (settings.positiveIfAny("final_logit_softcapping") ?? 30) : undefined,
    layers: Array.from({ length: count }, (_, index) => layerOf(context, index)),
  };
}

function plainNormOf({ file, name, settings }: Context): NormDescription {
  const weight = rowOf(name).norm?.weight;
  const eps = settings.positive("attention.layer_norm_epsilon");
  return { kind: "layerNorm", eps, weight, bias: file.has("output_norm.bias") };
}

/** Granite divides by the setting, Cohere multiplies. */
function logitScaleOf({ multipliers, logitScale }: Architecture, settings: Settings): number | undefined {
  const scale = settings.positiveIfAny("logit_scale");
  if (scale === undefined || logitScale) return scale;
  return multipliers ? 1 / scale : undefined;
}

function layerOf(context: Context, index: number): LayerDescription {
  const { file, name, settings } = context;
  const row = rowOf(name);
  const has = (end: string) => file.has(`blk.${index}.${end}`);
  const hidden = settings.whole("feed_forward_length", 0);
  const experts = has("ffn_gate_inp.weight") ? expertsOf(context, index) : undefined;
  return {
    norms: row.norms ?? "before",
    parallel: parallelOf(context, index),
    residualScale: settings.positiveIfAny("residual_scale"),
    attention: attentionOf(context, index),
    feedForward: {
      hidden: experts ? (settings.wholeIfAny("expert_feed_forward_length") ?? hidden) : hidden,
      gated: !row.plain,
      activation: row.activation ?? "silu",
      // the converter splits the fused weight of experts
      fused: Boolean(row.fused) && !row.plain && !experts,
      bias: has("ffn_down.bias") || has("ffn_down_exps.bias"),
      experts,
      // llama.cpp has no settings for a clamped gate
      clamped: row.clampedGate ? { alpha: 1.702, limit: 7 } : undefined,
    },
  };
}

function parallelOf({ file, name, settings }: Context, index: number): LayerDescription["parallel"] {
  if (rowOf(name).parallel === undefined || !settings.flag("use_parallel_residual", true)) return undefined;
  const isSeparate = ["attn_norm_2", "ffn_norm"].some((norm) => file.has(`blk.${index}.${norm}.weight`));
  return isSeparate ? "separateNorms" : "sharedNorm";
}

function expertsOf({ file, name, settings }: Context, index: number): ExpertsDescription {
  const count = expertCount(settings);
  const perToken = chosenCount(settings);
  if (perToken > count) throw settings.wrong("expert_used_count", `at most ${count}`, perToken);
  const groups = { count: settings.wholeIfAny("expert_group_count") ?? 1, best: 2 };
  const block = `blk.${index}`;
  const sharedRows = `${block}.ffn_up_shexp.weight`;
  const hidden = file.has(sharedRows) ? file.info(sharedRows).shape[0] : undefined;
  const isGrouped = rowOf(name).experts?.grouped === true;
  return {
    routerBias: file.has(`${block}.ffn_gate_inp.bias`),
    count,
    perToken,
    normalized: settings.flag("expert_weights_norm", !unnormalized.has(name)),
    ...(isGrouped && { scores: "sigmoid", corrected: true, scale: settings.positiveIfAny("expert_weights_scale") }),
    groups: groups.count > 1 ? { ...groups, chosen: settings.whole("expert_group_used_count") } : undefined,
    shared: hidden === undefined ? undefined : { hidden, gated: file.has(`${block}.ffn_gate_inp_shexp.weight`) },
  };
}

function attentionOf(context: Context, index: number): AttentionDescription {
  const { file, name, settings } = context;
  const row = rowOf(name);
  const has = (end: string) => file.has(`blk.${index}.${end}`);
  const heads = ofLayer(settings, "attention.head_count", index);
  const width = settings.whole("embedding_length");
  const headWidth = settings.wholeIfAny("attention.key_length") ?? Math.floor(width / heads);
  const window = windowOf(context, index);
  const keyValueHeads = settings.get("attention.head_count_kv")
    ? ofLayer(settings, "attention.head_count_kv", index)
    : heads;
  if (heads % keyValueHeads !== 0)
    throw settings.wrong("attention.head_count", `a multiple of ${keyValueHeads}`, heads);
  return {
    heads,
    keyValueHeads,
    headWidth,
    window,
    fused: has("attn_qkv.weight"),
    queryKeyNorm: row.queryKeyNormField === undefined || has("attn_q_norm.weight") ? row.queryKeyNorm : undefined,
    sinks: has("attn_sinks.weight"),
    clip: settings.positiveIfAny("attention.clamp_kqv"),
    queryKeyValueBias: has("attn_q.bias") || has("attn_qkv.bias"),
    outputBias: has("attn_output.bias"),
    scale: scaleOf(context, heads, headWidth),
    softcap: row.softcaps ? (settings.positiveIfAny("attn_logit_softcapping") ?? 50) : undefined,
    rope: rotates(context, index, window) ? ropeOf(context, window !== undefined, headWidth) : undefined,
  };
}

/** llama.cpp has no setting for layers without a rotation: every fourth of SmolLM3, and those without a window. */
function rotates({ name, settings }: Context, index: number, window: number | undefined): boolean {
  const { learnedPositions, unrotated } = rowOf(name);
  if (learnedPositions) return false;
  if (unrotated === "listed") return (index + 1) % 4 !== 0;
  if (unrotated === undefined || window !== undefined) return true;
  return unrotated === "unwindowedOfMixed" && !settings.get("attention.sliding_window");
}

/** Returns a setting that is one number for the model, or a list with one for each layer. */
function ofLayer(settings: Settings, name: string, index: number): number {
  return Array.isArray(settings.get(name)) ? (settings.numbers(name)[index] ?? 0) : settings.whole(name);
}

/**
 * Granite's scale is in GGUF files, Gemma's is not: Gemma's largest models scale by 1 / √(width / heads) instead of 1 /
 * √headWidth.
 */
function scaleOf({ name, settings }: Context, heads: number, headWidth: number): number | undefined {
  const largest = { gemma2: 46, gemma3_text: 62 } as const;
  const given = settings.positiveIfAny("attention.scale");
  if (given !== undefined) return given;
  const isLargest = (name === "gemma2" || name === "gemma3_text") && settings.whole("block_count") === largest[name];
  return isLargest ? 1 / Math.sqrt(settings.whole("embedding_length") / heads) : 1 / Math.sqrt(headWidth);
}

function windowOf({ name, settings }: Context, index: number): number | undefined {
  const { windows } = rowOf(name);
  const size = settings.wholeIfAny("attention.sliding_window", 0) ?? 0;
  if (windows === undefined || size === 0) return undefined;
  const every = typeof windows === "object" ? windows.every : undefined;
  return every !== undefined && (index + 1) % every === 0 ? undefined : size;
}

function ropeOf(context: Context, slides: boolean, headWidth: number): RopeDescription {
  const { name, settings } = context;
  const row = rowOf(name);
  const dim = settings.wholeIfAny("rope.dimension_count");
  const layerRope = {
    base: settings.positiveIfAny("rope.freq_base") ?? 10_000,
    interleaved: reordered.has(name) || row.interleaved ? true : undefined,
    dim: dim === headWidth ? undefined : dim,
  };
  if (slides && row.localBase !== undefined) {
    const fallback = typeof row.localBase === "number" ? layerRope.base : 10_000;
    return { ...layerRope, base: settings.positiveIfAny("rope.freq_base_swa") ?? fallback };
  }
  return { ...layerRope, scaling: factorsOf(context) ?? scalingOf(settings) };
}

/** Returns the factors of rotated pairs, if the file has them as tensors. */
function factorsOf({ file, settings }: Context): RopeDescription["scaling"] {
  if (file.has("rope_freqs.weight")) return { type: "factors", factors: valuesOf(file, "rope_freqs.weight") };
  if (!file.has("rope_factors_long.weight") || !file.has("rope_factors_short.weight")) return undefined;
  const originalContextLength =
    settings.wholeIfAny("rope.scaling.original_context_length") ?? settings.whole("context_length");
  return {
    type: "longrope",
    long: valuesOf(file, "rope_factors_long.weight"),
    originalContextLength,
    short: valuesOf(file, "rope_factors_short.weight"),
    attentionFactor: settings.positiveIfAny("rope.scaling.attn_factor") ?? 1,
  };
}

function valuesOf(file: GgufReader, name: string): number[] {
  const values = file.tensor(name);
  return QuantizedTensor.isQuantized(values) ? [] : Array.from(values.dataSync(), Number);
}

function scalingOf(settings: Settings): RopeDescription["scaling"] {
  const type = settings.textIfAny("rope.scaling.type") ?? "none";
  const factor = settings.get("rope.scaling.factor") === 0 ? undefined : settings.positiveIfAny("rope.scaling.factor");
  if (type === "none" || factor === undefined) return undefined;
  if (type === "linear") return { type: "linear", factor };
  if (type !== "yarn") throw settings.wrong("rope.scaling.type", "none, linear or yarn", type);
  const originalContextLength =
    settings.wholeIfAny("rope.scaling.original_context_length") ?? settings.whole("context_length");
  return { type: "yarn", factor, originalContextLength };
}
