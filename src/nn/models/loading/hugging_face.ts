/** Converts a `config.json` of Hugging Face to a description. */
import { join } from "node:path";
import { ArgumentError } from "../../../core/errors.ts";
import {
  type AttentionDescription,
  type DecoderDescription,
  type FeedForwardDescription,
  type LayerDescription,
  type NormDescription,
  noAttention,
  type RopeDescription,
  type TemperatureDescription,
} from "../decoder/description.ts";
import { readConfig } from "../hugging_face/config.ts";
import { activationOf } from "./activations.ts";
import type { Architecture } from "./architecture.ts";
import { type ArchitectureName, architectures, type Described, rowOf } from "./architectures.ts";
import { checkAround, checkKeys, completed, quantizationKeys } from "./config_fields.ts";
import { llama4Attention } from "./derived_fields.ts";
import { expertsOf, isSparse } from "./experts.ts";
import { falconH1Attention, falconH1FeedForward } from "./falcon_h1.ts";
import { kindsOfLayers, slides } from "./layer_types.ts";
import { falconMamba, mamba, mamba2 } from "./recurrent.ts";
import { type RopeContext, ropeOf, stretched } from "./rope_settings.ts";
import { Settings } from "./settings.ts";
import { bloom, codegen, gpt2, gptBigCode, gptj, gptNeo, mpt, opt } from "./unrotated.ts";
import { alternativeTo } from "./unsupported.ts";

/** Far more layers than any model has. */
const MOST_LAYERS = 65_536;

/**
 * Reads the description of a model folder. @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for an
 * unknown architecture.
 */
export function describeFolder(folder: string): Described & { readonly config: object; readonly settings: Settings } {
  const config = readConfig("loadModel", folder);
  const settings = new Settings(join(folder, "config.json"), new Map(Object.entries(config)));
  const name = nameOf(settings);
  const description = describe(name, settings);
  checkRotations(description, settings);
  if (description.layers.some(({ feedForward: { experts } }) => experts?.perToken === 0))
    throw settings.wrong("num_experts_per_tok", "a whole number of at least 1", undefined);
  return { name, description, config, settings };
}

/**
 * @internal Checks that heads rotate in pairs. @throws {FileFormatError} for an odd number of elements of a head, which
 * can't rotate in pairs.
 */
export function checkRotations({ layers }: DecoderDescription, settings: Settings): void {
  for (const { attention } of layers) {
    const { rope, headWidth } = attention;
    const rotated = rope?.dim ?? headWidth;
    if (!rope || rotated % 2 === 0) continue;
    throw settings.fail(
      "expected an even number of elements of a head (head_dim, or hidden_size / num_attention_heads) to rotate, of " +
        `which partial_rotary_factor may select a part, got ${rotated} of ${headWidth}`,
    );
  }
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

/** Alternative values of `model_type`. */
const sameNames: Readonly<Record<string, ArchitectureName>> = { kimi_k2: "deepseek_v3" };

/** Vision-language models whose text part can be loaded alone, with the architecture of this part. */
const textParts: Readonly<Record<string, ArchitectureName>> = {
  gemma3: "gemma3_text",
  gemma3n: "gemma3n_text",
  gemma4: "gemma4_text",
  llama4: "llama4_text",
  qwen3_5: "qwen3_5_text",
  qwen3_5_moe: "qwen3_5_moe_text",
};

const aliases: Readonly<Record<string, ArchitectureName>> = { ...sameNames, ...textParts };

function nameOf(settings: Settings): ArchitectureName {
  const type = settings.textIfAny("model_type");
  const name = type !== undefined && Object.hasOwn(aliases, type) ? aliases[type] : type;
  if (name !== undefined && Object.hasOwn(architectures, name)) return name as ArchitectureName;
  const advice = alternativeTo(type);
  if (advice !== undefined)
    throw settings.refused("unknownArchitecture", `model_type "${type}" is not supported; ${advice}`);
  throw unknownArchitecture(settings.path!, "model_type", type);
}

/** @internal The error for an unsupported architecture. */
export function unknownArchitecture(
  path: string,
  field: string,
  got: string | undefined,
  known: readonly string[] = [...Object.keys(architectures), ...Object.keys(aliases)],
): ArgumentError {
  const found = got === undefined ? `none; add ${field}, as in the original model's file` : JSON.stringify(got);
  return new ArgumentError(
    "loadModel",
    "unknownArchitecture",
    `${path}: expected ${field} to be one of ${known.join(", ")}, got ${found}; to support another architecture, ` +
      "add a row to src/nn/models/loading/architectures.ts",
  );
}

/** For a vision-language model, describes its text part. */
function describe(name: ArchitectureName, settings: Settings): DecoderDescription {
  const type = settings.textIfAny("model_type");
  if (type === undefined || !Object.hasOwn(textParts, type)) return ofText(name, completed(name, settings));
  const text = settings.inner("text_config") ?? settings.with(new Map());
  checkAround(name, settings);
  const described = ofText(name, completed(name, text));
  // Gemma ties weights by default; the others have the default of PreTrainedConfig or of the text part
  const tied = settings.flag("tie_word_embeddings", type.startsWith("gemma"));
  return { ...described, tied };
}

/** Architectures that a function describes instead of a row of the table. */
const unlikeLlama: Readonly<Partial<Record<ArchitectureName, typeof gpt2>>> = {
  gpt2,
  gpt_bigcode: gptBigCode,
  gpt_neo: gptNeo,
  opt,
  bloom,
  mpt,
  mamba,
  mamba2,
  falcon_mamba: falconMamba,
  gptj,
  codegen,
};

/** @internal Describes a decoder whose settings are complete: see {@link completed}. */
export function ofText(name: ArchitectureName, given: Settings): DecoderDescription {
  const counted = rowOf(name).layersField ?? "num_hidden_layers";
  const check = (config: Settings) => {
    const count = config.whole(counted);
    if (count > MOST_LAYERS) throw config.wrong(counted, `at most ${MOST_LAYERS}`, count);
    return count;
  };
  if (given.get(counted) !== undefined) check(given); // before fields of each layer are derived
  const derived = rowOf(name).derived?.(given) ?? {};
  const config = given.with(new Map([...given.entries(), ...Object.entries(derived)]));
  return (unlikeLlama[name] ?? llamaLike.bind(undefined, name))(config, check(config));
}

function llamaLike(architecture: ArchitectureName, config: Settings, count: number): DecoderDescription {
  const row = rowOf(architecture);
  const width = config.whole("hidden_size");
  const layers = Array.from({ length: count }, (_, index) => {
    const own = row.ofLayer?.(config, index) ?? config;
    const layer = layerOf(row, own, index);
    return row.parts?.(own, index, layer) ?? layer;
  });
  const isDynamic = ({ attention }: LayerDescription) => attention.rope?.scaling?.type === "dynamic";
  const dynamic = layers.find(isDynamic)?.attention.rope;
  return {
    architecture,
    vocabularySize: config.whole("vocab_size"),
    width,
    contextLength: stretched(config.whole("max_position_embeddings"), dynamic),
    layers,
    tied: isTied(row, config),
    norm: normOf(row, config),
    embeddingScale:
      row.multipliers || row.besideAttention
        ? config.number("embedding_multiplier")
        : isSet(row.scaledEmbeddings, config)
          ? Math.sqrt(width)
          : undefined,
    ...(layers[0]?.layerInput && { layerInputs: layerInputsOf(layers[0].layerInput.width, config) }),
    ...(layers[0]?.altUp && { streams: layers[0].altUp }),
    headBias: isSet(row.biases?.head, config),
    logitScale: logitScaleOf(row, config),
    logitSoftcap: config.positiveIfAny("final_logit_softcapping"),
  };
}

const layerInputsOf = (width: number, config: Settings): DecoderDescription["layerInputs"] => ({
  vocabularySize: config.whole("vocab_size_per_layer_input"),
  width,
});

/** Whether the head shares the embedding's weight. @throws {ArgumentError} if such a head has a bias. */
function isTied({ biases }: Architecture, config: Settings): boolean {
  const tied = config.flag("tie_word_embeddings");
  if (!tied || !isSet(biases?.head, config)) return tied;
  throw config.refused("tiedBias", "expected tie_word_embeddings to be false, since the head has a bias, got true");
}

function normOf({ norm }: Architecture, config: Settings): NormDescription {
  if (norm === undefined) return { kind: "rmsNorm", eps: config.positive("rms_norm_eps") };
  const { eps, bias, weight } = norm;
  return { kind: "layerNorm", eps: typeof eps === "number" ? eps : config.positive(eps), bias, weight };
}

function logitScaleOf({ multipliers, logitScale }: Architecture, config: Settings): number | undefined {
  if (logitScale) return config.number(logitScale === true ? "logit_scale" : logitScale);
  return multipliers ? 1 / config.positive("logits_scaling") : undefined;
}

/** Whether a layer has a bias: as the row says, or the field that it names. */
function hasBias(bias: boolean | string | undefined, fallback: string, config: Settings): boolean {
  return typeof bias === "boolean" ? bias : config.flag(bias ?? fallback, false);
}

/** Whether a setting of a row is true, or the config's flag that it names. */
const isSet = (setting: boolean | string | undefined, config: Settings): boolean | undefined =>
  typeof setting === "string" ? config.flag(setting, false) : setting;

function layerOf(row: Architecture, config: Settings, index: number): LayerDescription {
  const recurrent = row.recurrent?.(config, index);
  return {
    norms: row.postNormField !== undefined && config.flag(row.postNormField) ? "both" : (row.norms ?? "before"),
    recurrent,
    parallel: parallelOf(row, config),
    residualScale: row.multipliers ? config.number("residual_multiplier") : undefined,
    attention: recurrent && !row.besideAttention ? noAttention : attentionOf(row, config, index),
    feedForward: feedForwardOf(row, config, index),
  };
}

function parallelOf({ parallel }: Architecture, config: Settings): LayerDescription["parallel"] {
  if (parallel === undefined || typeof parallel === "function") return parallel?.(config);
  if (parallel.key !== undefined && !config.flag(parallel.key)) return undefined;
  return parallel.norms === 1 ? "sharedNorm" : "separateNorms";
}

function attentionOf(row: Architecture, config: Settings, index: number): AttentionDescription {
  return row.latent ? latentOf(row, config) : wholeOf(row, config, index);
}

/** DeepSeek's attention. `rope_interleave` says whether adjacent elements rotate, always in V2. */
function latentOf(row: Architecture, config: Settings): AttentionDescription {
  const heads = config.whole("num_attention_heads");
  const keyValueHeads = config.wholeIfAny("num_key_value_heads") ?? heads;
  if (keyValueHeads !== heads) throw config.wrong("num_key_value_heads", "equal to num_attention_heads", keyValueHeads);
  const rotated = config.whole("qk_rope_head_dim");
  const headWidth = config.whole("qk_nope_head_dim") + rotated;
  checkSize(config, "qk_head_dim", headWidth, "qk_nope_head_dim + qk_rope_head_dim");
  if (row.latentHeadDim) checkSize(config, "head_dim", rotated, "qk_rope_head_dim");
  const rotation = row.latentRotates === false ? undefined : layerRope(row, config, false, rotated);
  const bias = config.flag("attention_bias");
  return {
    heads,
    keyValueHeads: heads,
    headWidth,
    queryKeyValueBias: bias,
    outputBias: bias,
    ...reachOf(config, undefined),
    latent: {
      queryRank: config.wholeIfAny("q_lora_rank"),
      rank: config.whole("kv_lora_rank"),
      rotated,
      valueWidth: config.whole("v_head_dim"),
    },
    scale: (rotation ? latentScale(row, config) : 1) / Math.sqrt(headWidth),
    rope: rotation && {
      ...wholeRotation(rotation, config),
      dim: rotated,
      interleaved: row.interleaved ?? config.flag("rope_interleave", false),
    },
  };
}

/** Checks a size that follows from others, but that `transformers` 5 also writes to the config. */
function checkSize(config: Settings, name: string, size: number, formula: string): void {
  const got = config.wholeIfAny(name);
  if (got !== undefined && got !== size) throw config.wrong(name, `${formula}, ${size}`, got);
}

/** Returns the rotation. @throws {FileFormatError} if only a part of each head rotates. */
function wholeRotation(rotation: RopeDescription, config: Settings): RopeDescription {
  if (rotation.dim === undefined) return rotation;
  throw config.wrong(
    "partial_rotary_factor (also in rope_parameters or rope_scaling)",
    "1, since heads rotate as a whole",
    rotation.dim,
  );
}

/** The square of Hugging Face's `yarn_get_mscale`. */
function latentScale(row: Architecture, config: Settings): number {
  const rope = rotationOf(row, config);
  const all = rope?.numberIfAny("mscale_all_dim") ?? 0;
  const type = rope?.textIfAny("rope_type") ?? rope?.textIfAny("type") ?? "default";
  if (!rope || all === 0 || type === "default") return 1;
  const factor = rope.positive("factor");
  return factor <= 1 ? 1 : (0.1 * all * Math.log(factor) + 1) ** 2;
}

function wholeOf(row: Architecture, config: Settings, index: number): AttentionDescription {
  const heads = config.whole("num_attention_heads");
  const headWidth = config.wholeIfAny("head_dim") ?? Math.floor(config.whole("hidden_size") / heads);
  if (headWidth < 1) throw config.wrong("num_attention_heads", "at most hidden_size", heads);
  const keyValueHeads = config.wholeIfAny("num_key_value_heads") ?? heads;
  if (heads % keyValueHeads !== 0)
    throw config.wrong("num_attention_heads", "a multiple of num_key_value_heads", heads);
  const window = windowOf(row, config, index);
  const theta = row.layerThetas ? thetaOf(config, index) : undefined;
  const isRotated = theta !== 0 && rotates(row, config, index, window !== undefined);
  const rope = isRotated ? layerRope(row, config, window !== undefined, headWidth) : undefined;
  if (rope && row.wholeRotation) wholeRotation(rope, config);
  return {
    heads,
    keyValueHeads,
    headWidth,
    ...reachOf(config, window),
    queryKeyValueBias: hasBias(row.biases?.queryKeyValue, "attention_bias", config),
    outputBias: hasBias(row.biases?.output, "attention_bias", config),
    fused: row.fused === true || row.fused === "queryKeyValue",
    queryKeyNorm: queryKeyNormOf(row, config, headWidth),
    sinks: row.sinks,
    gated: row.gatedHeads !== undefined,
    gateBias: row.gatedHeads === "apart" ? false : undefined,
    innerNorm: row.innerNorms ? config.positive("rms_norm_eps") : undefined,
    clip: row.clips ? config.positiveIfAny("clip_qkv") : undefined,
    scale: scaleOf(row, config),
    softcap: row.softcaps ? config.positiveIfAny("attn_logit_softcapping") : undefined,
    rope: rope && theta !== undefined ? { ...rope, base: theta } : rope,
    temperature: row.tempered ? temperatureOf(row, config) : undefined,
    ...(row.besideAttention && falconH1Attention(config, headWidth)),
    ...(row.chunked && llama4Attention(config, index, isRotated)),
  };
}

/** @throws {FileFormatError} if Phi's norm is enabled and heads do not have the size that it assumes, width / heads. */
function queryKeyNormOf({ queryKeyNorm, queryKeyNormField: field }: Architecture, config: Settings, headWidth: number) {
  if (field !== undefined && !config.flag(field, false)) return undefined;
  const width = Math.floor(config.whole("hidden_size") / config.whole("num_attention_heads"));
  if (queryKeyNorm !== "headLayerNorm" || width === headWidth) return queryKeyNorm;
  throw config.wrong(field!, `false, unless head_dim is hidden_size / num_attention_heads, ${width}`, true);
}

function scaleOf({ queryScalar, multipliers }: Architecture, config: Settings): number | undefined {
  if (queryScalar) return 1 / Math.sqrt(config.positive("query_pre_attn_scalar"));
  return multipliers ? config.number("attention_multiplier") : undefined;
}

/** Whether queries and keys of a layer are rotated. */
function rotates({ unrotated }: Architecture, config: Settings, index: number, isSliding: boolean): boolean {
  if (unrotated === "unlessRope") return config.textIfAny("position_embedding_type") === "rope";
  if (unrotated === undefined || isSliding) return unrotated !== "listed" || isListed(config, index);
  if (unrotated === "unwindowed") return false;
  return unrotated === "listed" ? isListed(config, index) : config.wholeIfAny("sliding_window") === undefined;
}

/** Returns the base of a layer's rotation, 0 for a layer without rotation; undefined if the config has no list. */
function thetaOf(config: Settings, index: number): number | undefined {
  const given = config.get("layer_rope_theta");
  const count = config.whole("num_hidden_layers");
  const isTheta = (theta: unknown) => theta === null || (typeof theta === "number" && theta >= 0);
  if (given === undefined) return undefined;
  if (Array.isArray(given) && given.length >= count && given.every(isTheta)) return given[index] ?? 0;
  throw config.wrong("layer_rope_theta", `a list of ${count} numbers, 0 for a layer without rotation`, given);
}

/** Whether `no_rope_layers` has 1 for a layer; without the list, every n-th layer has 0. */
function isListed(config: Settings, index: number): boolean {
  const listed = config.get("no_rope_layers");
  if (listed === undefined) return (index + 1) % config.whole("no_rope_layer_interval") !== 0;
  const count = config.whole("num_hidden_layers");
  if (Array.isArray(listed) && listed.length === count && listed.every((each) => each === 0 || each === 1))
    return listed[index] === 1;
  throw config.wrong("no_rope_layers", `a list of ${count} values, each 0 or 1`, listed);
}

/** The settings of the rotation of a layer without a window. `rope_scaling` takes precedence over `rope_parameters`. */
function rotationOf(row: Architecture, config: Settings): Settings | undefined {
  const [older, all] = [config.inner("rope_scaling"), config.inner("rope_parameters")];
  const given = older?.names.length ? older : all;
  return given ?? (row.rotation && config.with(new Map(Object.entries(row.rotation))));
}

/** With two kinds of layers, `rope_scaling` applies to those without a window. */
function layerRope(row: Architecture, config: Settings, isSliding: boolean, headWidth: number) {
  const base = () => config.positive(row.baseField ?? "rope_theta");
  const context: RopeContext = { config, row, headWidth, base };
  if (row.localBase === undefined) return ropeOf(rotationOf(row, config), context);
  const [older, all] = [config.inner("rope_scaling"), config.inner("rope_parameters")];
  if (all) checkKeys(all, (key) => key in kindsOfLayers, "is not a layer type");
  const section = all?.inner(isSliding ? "sliding_attention" : "full_attention");
  const { localBase } = row;
  const otherBase = () => (typeof localBase === "number" ? localBase : config.positive(localBase));
  if (isSliding) return ropeOf(section, { ...context, base: otherBase });
  const before = section?.entries() ?? [["rope_type", "default"]];
  return ropeOf(older?.with(new Map([...before, ...older.entries()])) ?? section, context);
}

/** `transformers` fails without either of the two settings. */
function temperatureOf(row: Architecture, config: Settings): TemperatureDescription {
  const rope = rotationOf(row, config)!;
  return { beta: rope.number("llama_4_scaling_beta"), length: rope.whole("original_max_position_embeddings") };
}

/**
 * Returns which tokens a layer's tokens attend to. With `is_causal: false`, the window on each side excludes the token
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
  if (windows === undefined || !config.flag("use_sliding_window", true)) return undefined;
  const size = config.wholeIfAny("sliding_window");
  const types = config.get("layer_types");
  if (windows === "all" && types === undefined) return size;
  if (types === undefined && windows === "upper")
    return size !== undefined && index >= config.whole("max_window_layers", 0) ? size : undefined;
  if (types === undefined && windows === "unrotated") return isListed(config, index) ? undefined : size;
  const place = typeof windows === "object" && windows.first ? index : index + 1;
  const isSliding =
    types === undefined
      ? place % everyOf(windows, config) !== 0
      : slides(config, config.whole("num_hidden_layers"), index);
  if (!isSliding) return undefined;
  return size ?? config.whole("sliding_window");
}

/** Returns n such that every n-th layer has no window. */
function everyOf(windows: Architecture["windows"], config: Settings): number {
  const name = "sliding_window_pattern";
  return config.names.includes(name) ? config.whole(name) : typeof windows === "object" ? windows.every : 1;
}

function feedForwardOf(row: Architecture, config: Settings, index: number): FeedForwardDescription {
  const field = row.activationField ?? "hidden_act";
  const xielu = row.xielu && config.get(field) === "xielu";
  const named = xielu ? "silu" : activationOf(config, field);
  const activation = row.tanhGelu && named === "gelu" ? "geluTanh" : named;
  const clamped = row.clampedGate
    ? { alpha: config.number("swiglu_alpha"), limit: config.positive("swiglu_limit") }
    : undefined;
  const bias = hasBias(row.biases?.feedForward, "mlp_bias", config);
  const fused = row.fused === true || row.fused === "gateUp";
  const innerNorm = row.innerNorms ? config.positive("rms_norm_eps") : undefined;
  const base = { gated: !row.plain, activation, xielu, innerNorm, clamped, bias, fused } as const;
  const experts = row.experts && isSparse(config, index) ? expertsOf(row.experts, config) : undefined;
  const hidden = experts && config.wholeIfAny("moe_intermediate_size");
  const factors = row.besideAttention ? falconH1FeedForward(config) : undefined;
  return { ...base, factors, hidden: hidden ?? config.whole("intermediate_size"), experts };
}
