/** Converts the metadata and tensor names of a GGUF file to a description. */
import type { GgufReader } from "../../../io/gguf/file.ts";
import { QuantizedTensor } from "../../../quant/quantized_tensor.ts";
import type {
  AttentionDescription,
  DecoderDescription,
  LayerDescription,
  RopeDescription,
} from "../decoder/description.ts";
import { type ArchitectureName, type Described, rowOf } from "./architectures.ts";
import { unknownArchitecture } from "./hugging_face.ts";
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
};

/** Far more than any model has. */
const MOST_LAYERS = 65_536;

/** What a description is read from. */
interface Context {
  readonly file: GgufReader;
  readonly name: ArchitectureName;
  /** The architecture's settings by their names without the prefix, such as `block_count`. */
  readonly settings: Settings;
}

/** @throws {FileFormatError} @throws {ArgumentError} for an unknown architecture. */
export function describeGguf(file: GgufReader): Described {
  const field = Object.hasOwn(file.metadata, "general.architecture")
    ? file.metadata["general.architecture"]
    : undefined;
  const architecture = typeof field?.value === "string" ? field.value : undefined;
  const name =
    architecture !== undefined && Object.hasOwn(ggufArchitectures, architecture)
      ? ggufArchitectures[architecture]
      : undefined;
  if (name === undefined)
    throw unknownArchitecture(file.path, "general.architecture", architecture, Object.keys(ggufArchitectures));
  const prefix = `${architecture}.`;
  const fields = Object.entries(file.metadata)
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, { value }]) => [key.slice(prefix.length), plain(value)] as const);
  const settings = new Settings(file.path, new Map(fields), prefix);
  return { name, description: describe({ file, name, settings }) };
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
    ...{ architecture: name, vocabularySize, width, contextLength: settings.whole("context_length") },
    norm: isPlain
      ? { kind: "layerNorm", eps: settings.positive("attention.layer_norm_epsilon") }
      : { kind: "rmsNorm", eps: settings.positive("attention.layer_norm_rms_epsilon") },
    embeddingScale: row.scaledEmbeddings ? Math.sqrt(width) : undefined,
    learnedPositions: row.learnedPositions,
    tied: !file.has("output.weight"),
    logitSoftcap: row.softcaps ? (settings.positiveIfAny("final_logit_softcapping") ?? 30) : undefined,
    layers: Array.from({ length: count }, (_, index) => layerOf(context, index)),
  };
}

function layerOf(context: Context, index: number): LayerDescription {
  const { file, name, settings } = context;
  const row = rowOf(name);
  const has = (end: string) => file.has(`blk.${index}.${end}`);
  const experts = settings.wholeIfAny("expert_count", 0) ?? 0;
  const perToken = experts > 0 ? settings.whole("expert_used_count") : 0;
  if (perToken > experts) throw settings.wrong("expert_used_count", `at most ${experts}`, perToken);
  const hidden = settings.whole("feed_forward_length", 0);
  return {
    norms: row.norms ?? "before",
    attention: attentionOf(context, index),
    feedForward: {
      hidden: experts > 0 ? (settings.wholeIfAny("expert_feed_forward_length") ?? hidden) : hidden,
      ...{ gated: !row.plain, activation: row.activation ?? "silu", fused: Boolean(row.fused) && !row.plain },
      bias: has("ffn_down.bias"),
      experts: experts > 0 && has("ffn_gate_inp.weight") ? { count: experts, perToken, normalized: true } : undefined,
    },
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
    ...{ heads, keyValueHeads, headWidth, window, fused: row.fused === true, queryKeyNorm: row.queryKeyNorm },
    queryKeyValueBias: has("attn_q.bias") || has("attn_qkv.bias"),
    outputBias: has("attn_output.bias"),
    scale: scaleOf(context, heads, headWidth),
    softcap: row.softcaps ? (settings.positiveIfAny("attn_logit_softcapping") ?? 50) : undefined,
    rope: row.learnedPositions ? undefined : ropeOf(context, window !== undefined, headWidth),
  };
}

/** Returns a setting that is one number for the model, or a list with one for each layer. */
function ofLayer(settings: Settings, name: string, index: number): number {
  return Array.isArray(settings.get(name)) ? (settings.numbers(name)[index] ?? 0) : settings.whole(name);
}

/** The scale is not in GGUF files: Gemma's largest models scale by 1 / √(width / heads) instead of 1 / √headWidth. */
function scaleOf({ name, settings }: Context, heads: number, headWidth: number): number | undefined {
  const largest = { gemma2: 46, gemma3_text: 62 } as const;
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

/** Pairs are adjacent only in llama.cpp's `llama`, whose converter reorders the rows of queries and keys. */
function ropeOf(context: Context, slides: boolean, headWidth: number): RopeDescription {
  const { name, settings } = context;
  const row = rowOf(name);
  const dim = settings.wholeIfAny("rope.dimension_count");
  const layerRope = {
    base: settings.positiveIfAny("rope.freq_base") ?? 10_000,
    interleaved: name === "llama" ? true : undefined,
    dim: dim === headWidth ? undefined : dim,
  };
  if (slides && row.localBase) return { ...layerRope, base: settings.positiveIfAny("rope.freq_base_swa") ?? 10_000 };
  return { ...layerRope, scaling: factorsOf(context) ?? scalingOf(settings) };
}

/** Returns the factors of rotated pairs, if the file has them as tensors. */
function factorsOf({ file, settings }: Context): RopeDescription["scaling"] {
  if (file.has("rope_freqs.weight")) return { type: "factors", factors: valuesOf(file, "rope_freqs.weight") };
  if (!file.has("rope_factors_long.weight") || !file.has("rope_factors_short.weight")) return undefined;
  const originalContextLength =
    settings.wholeIfAny("rope.scaling.original_context_length") ?? settings.whole("context_length");
  return {
    ...{ type: "longrope", long: valuesOf(file, "rope_factors_long.weight"), originalContextLength },
    ...{ short: valuesOf(file, "rope_factors_short.weight") },
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
