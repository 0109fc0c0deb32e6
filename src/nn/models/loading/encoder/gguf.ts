/** Opens GGUF files of encoders, as llama.cpp's `convert_hf_to_gguf.py` writes them. */
import type { GgufReader } from "../../../../io/gguf/file.ts";
import { loadTokenizer } from "../../../../text/load_tokenizer.ts";
import type { EncoderDescription } from "../../encoder/description.ts";
import { Encoder } from "../../encoder/encoder.ts";
import { type Pooling, type SentenceDescription, SentenceHead } from "../../encoder/sentence.ts";
import { generationOfGguf } from "../generation.ts";
import type { Place } from "../names.ts";
import type { Opened } from "../opened.ts";
import { Settings } from "../settings.ts";
import { ggufSource } from "../source.ts";
import type { EncoderName } from "./architectures.ts";
import { describeEncoder } from "./describe.ts";
import { encoderPlaces } from "./names.ts";

/** An architecture of encoders in GGUF files. */
interface Kind {
  readonly name: EncoderName;
  /** Returns the fields of `config.json` in addition to BERT's. */
  readonly config: (settings: Settings, has: (tensor: string) => boolean) => Readonly<Record<string, unknown>>;
}

const rotary = (settings: Settings) => ({ rope_theta: settings.positiveIfAny("rope.freq_base") });

/** The architectures, by the value of `general.architecture`. */
const kinds: Readonly<Record<string, Kind>> = {
  bert: {
    name: "bert",
    config: (settings) => ({ layer_norm_eps: settings.positive("attention.layer_norm_epsilon") }),
  },
  "nomic-bert": {
    name: "nomic_bert",
    config: (settings) => ({ ...rotary(settings), layer_norm_eps: settings.positive("attention.layer_norm_epsilon") }),
  },
  "jina-bert-v3": {
    name: "jina_embeddings_v3",
    config: (settings) => ({ ...rotary(settings), layer_norm_eps: settings.positive("attention.layer_norm_epsilon") }),
  },
  "jina-bert-v2": {
    name: "jina_bert",
    config: (settings) => ({
      layer_norm_eps: settings.positive("attention.layer_norm_epsilon"),
      position_embedding_type: "alibi",
    }),
  },
  "modern-bert": { name: "modernbert", config: modernConfig },
};

function modernConfig(settings: Settings, has: (tensor: string) => boolean): Readonly<Record<string, unknown>> {
  const base = settings.positiveIfAny("rope.freq_base") ?? 160_000;
  const eps = settings.positiveIfAny("attention.layer_norm_epsilon");
  return {
    norm_eps: eps ?? settings.positive("attention.layer_norm_rms_epsilon"),
    global_rope_theta: base,
    local_rope_theta: settings.positiveIfAny("rope.freq_base_swa") ?? base,
    local_attention: settings.whole("attention.sliding_window"),
    global_attn_every_n_layers: settings.wholeIfAny("attention.sliding_window_pattern") ?? 3,
    norm_bias: has("token_embd_norm.bias"),
    attention_bias: has("blk.0.attn_qkv.bias"),
    mlp_bias: has("blk.0.ffn_up.bias"),
  };
}

const architectureOf = ({ metadata }: GgufReader): string => String(metadata["general.architecture"]?.value);

/** Whether a file has an encoder. */
export const isGgufEncoder = (file: GgufReader): boolean => Object.hasOwn(kinds, architectureOf(file));

/** llama.cpp's numbers of poolings. A reranker (4) has a head that is not supported. */
const poolings: readonly (Pooling | undefined)[] = [undefined, "mean", "first", "last"];

const topNames = {
  "embeddings.token": "token_embd",
  "embeddings.position": "position_embd",
  "embeddings.tokenType": "token_types",
  "embeddings.norm": "token_embd_norm",
  finalNorm: "output_norm",
} as const;

/** BERT's names. ModernBERT has other names for its norms, which precede attention and feed-forward. */
const layerNames = {
  "attention.queryKeyValue": "attn_qkv",
  "attention.query": "attn_q",
  "attention.key": "attn_k",
  "attention.value": "attn_v",
  "attention.output": "attn_output",
  attentionNorm: "attn_output_norm",
  "feedForward.gateUp": "ffn_up",
  "feedForward.gate": "ffn_gate",
  "feedForward.up": "ffn_up",
  "feedForward.down": "ffn_down",
  feedForwardNorm: "layer_output_norm",
} as const;

/** Opens the GGUF file of an encoder. @throws {FileFormatError} @throws {ArgumentError} for unsupported settings. */
export function openGgufEncoder(file: GgufReader): Opened {
  const entries = Object.entries(file.metadata).map(([key, field]) => [key, plain(field?.value)] as const);
  const architecture = architectureOf(file);
  const { name, config } = kinds[architecture];
  const prefix = `${architecture}.`;
  const fields = entries.filter(([key]) => key.startsWith(prefix));
  const settings = new Settings(
    file.path,
    new Map(fields.map(([key, value]) => [key.slice(prefix.length), value])),
    prefix,
  );
  const own = config(settings, (tensor) => file.has(tensor));
  const described = describeEncoder(name, configOf(file, name, settings, own)).description;
  const description = file.has("blk.0.ffn_gate.weight") ? withoutFusion(described) : described;
  const sentence = sentenceOf(settings);
  const tokenizer = file.metadata["tokenizer.ggml.model"] ? loadTokenizer(file.path) : undefined;
  const source = ggufSource(file);
  return {
    places: placesOf(name, description),
    source,
    style: "gguf",
    config: Object.fromEntries(entries),
    generation: generationOfGguf(file),
    chatTemplate: undefined,
    newModel(options) {
      const model = new Encoder(description, options);
      model.tokenizer = tokenizer;
      model.sentence = sentence ? new SentenceHead(sentence, options) : null;
      return model;
    },
    [Symbol.dispose]: () => source[Symbol.dispose](),
  };
}

/** llama.cpp's converter splits the weight of gate and up. */
const withoutFusion = (description: EncoderDescription): EncoderDescription => ({
  ...description,
  layers: description.layers.map((layer) => ({ ...layer, feedForward: { ...layer.feedForward, fused: false } })),
});

/** Converts 64-bit integers to numbers. Settings of models are small enough for this to be exact. */
const plain = (value: unknown): unknown => (typeof value === "bigint" ? Number(value) : value);

/** The metadata as a `config.json`. llama.cpp's BERT always uses gelu, and heads of size width / heads. */
function configOf(
  file: GgufReader,
  name: EncoderName,
  settings: Settings,
  own: Readonly<Record<string, unknown>>,
): Settings {
  if (settings.flag("attention.causal", false))
    throw settings.refused(
      "unsupportedConfig",
      `expected ${settings.nameOf("attention.causal")} to be false, got true`,
    );
  const rows = (tensor: string) => (file.has(tensor) ? file.info(tensor).shape[0] : undefined);
  const fields: Readonly<Record<string, unknown>> = {
    model_type: name,
    vocab_size: rows("token_embd.weight"),
    type_vocab_size: rows("token_types.weight"),
    max_position_embeddings: rows("position_embd.weight") ?? settings.whole("context_length"),
    hidden_size: settings.whole("embedding_length"),
    intermediate_size: settings.whole("feed_forward_length"),

    num_hidden_layers: settings.whole("block_count"),
    num_attention_heads: settings.whole("attention.head_count"),
    ...own,
  };
  return new Settings(file.path, new Map(Object.entries(fields)));
}

/** The pooling, after which llama.cpp's server normalizes. */
function sentenceOf(settings: Settings): SentenceDescription | undefined {
  const type = settings.wholeIfAny("pooling_type", 0) ?? 0;
  if (type === 0) return undefined;
  const pooling = poolings[type];
  if (pooling === undefined) throw settings.wrong("pooling_type", "0 to 3; rerankers are not supported", type);
  return { poolings: [pooling], steps: [{ kind: "normalize" }], prompts: {}, lowerCase: false };
}

/** Returns the places of the layers under llama.cpp's names. */
function placesOf(name: EncoderName, description: EncoderDescription): Place[] {
  const isBefore = description.normPlace === "before";
  const norms = isBefore ? { attentionNorm: "attn_norm", feedForwardNorm: "ffn_norm" } : {};
  const layers: Readonly<Record<string, string>> = { ...layerNames, ...norms };
  const tops: Readonly<Record<string, string>> = topNames;
  return encoderPlaces(name, description).map(({ path }) => {
    const [, layer, part] = /^blocks\.(\d+)\.(.+)$/.exec(path) ?? [];
    return { path, names: [part === undefined ? tops[path] : `blk.${layer}.${layers[part]}`] };
  });
}
