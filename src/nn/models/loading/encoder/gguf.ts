/** Opens a GGUF file of BERT, as llama.cpp's `convert_hf_to_gguf.py` writes it. */
import type { GgufReader } from "../../../../io/gguf/file.ts";
import { loadTokenizer } from "../../../../text/load_tokenizer.ts";
import { Encoder } from "../../encoder/encoder.ts";
import { type Pooling, type SentenceDescription, SentenceHead } from "../../encoder/sentence.ts";
import { generationOfGguf } from "../generation.ts";
import type { Place } from "../names.ts";
import type { Opened } from "../opened.ts";
import { Settings } from "../settings.ts";
import { ggufSource } from "../source.ts";
import { describeEncoder } from "./describe.ts";

const ARCHITECTURE = "bert";

/** Whether a file has an encoder. */
export const isGgufEncoder = ({ metadata }: GgufReader): boolean =>
  metadata["general.architecture"]?.value === ARCHITECTURE;

/** llama.cpp's numbers of poolings. A reranker (4) has a head that is not supported. */
const poolings: readonly (Pooling | undefined)[] = [undefined, "mean", "first", "last"];

const topNames = {
  "embeddings.token": "token_embd",
  "embeddings.position": "position_embd",
  "embeddings.tokenType": "token_types",
  "embeddings.norm": "token_embd_norm",
} as const;

const layerNames = {
  "attention.query": "attn_q",
  "attention.key": "attn_k",
  "attention.value": "attn_v",
  "attention.output": "attn_output",
  attentionNorm: "attn_output_norm",
  "feedForward.up": "ffn_up",
  "feedForward.down": "ffn_down",
  feedForwardNorm: "layer_output_norm",
} as const;

/** @throws {FileFormatError} @throws {ArgumentError} for unsupported settings. */
export function openGgufEncoder(file: GgufReader): Opened {
  const entries = Object.entries(file.metadata).map(([key, field]) => [key, plain(field?.value)] as const);
  const prefix = `${ARCHITECTURE}.`;
  const fields = entries.filter(([key]) => key.startsWith(prefix));
  const settings = new Settings(
    file.path,
    new Map(fields.map(([key, value]) => [key.slice(prefix.length), value])),
    prefix,
  );
  const { description } = describeEncoder(ARCHITECTURE, configOf(file, settings));
  const sentence = sentenceOf(settings);
  const tokenizer = file.metadata["tokenizer.ggml.model"] ? loadTokenizer(file.path) : undefined;
  const source = ggufSource(file);
  return {
    ...{ places: placesOf(description.layers.length), source, style: "gguf", config: Object.fromEntries(entries) },
    ...{ generation: generationOfGguf(file), chatTemplate: undefined },
    newModel(options) {
      const model = new Encoder(description, options);
      model.tokenizer = tokenizer;
      model.sentence = sentence ? new SentenceHead(sentence, options) : null;
      return model;
    },
    [Symbol.dispose]: () => source[Symbol.dispose](),
  };
}

/** Converts 64-bit integers to numbers. Settings of models are small enough for this to be exact. */
const plain = (value: unknown): unknown => (typeof value === "bigint" ? Number(value) : value);

/** The metadata as a `config.json`. llama.cpp's BERT has gelu, and heads that divide the width. */
function configOf(file: GgufReader, settings: Settings): Settings {
  if (settings.flag("attention.causal", false))
    throw settings.refused("unsupportedConfig", "expected bert.attention.causal to be false, got true");
  const rows = (name: string) => (file.has(name) ? file.info(name).shape[0] : undefined);
  return new Settings(
    file.path,
    new Map<string, unknown>([
      ["model_type", ARCHITECTURE],
      ["vocab_size", rows("token_embd.weight")],
      ["type_vocab_size", rows("token_types.weight")],
      ["max_position_embeddings", rows("position_embd.weight") ?? settings.whole("context_length")],
      ["hidden_size", settings.whole("embedding_length")],
      ["intermediate_size", settings.whole("feed_forward_length")],
      ["num_hidden_layers", settings.whole("block_count")],
      ["num_attention_heads", settings.whole("attention.head_count")],
      ["layer_norm_eps", settings.positive("attention.layer_norm_epsilon")],
    ]),
  );
}

/** The pooling, after which llama.cpp's server normalizes. */
function sentenceOf(settings: Settings): SentenceDescription | undefined {
  const type = settings.wholeIfAny("pooling_type", 0) ?? 0;
  if (type === 0) return undefined;
  const pooling = poolings[type];
  if (pooling === undefined) throw settings.wrong("pooling_type", "0 to 3; rerankers are not supported", type);
  return { poolings: [pooling], steps: [{ kind: "normalize" }], prompts: {}, lowerCase: false };
}

const placesOf = (count: number): Place[] => [
  ...Object.entries(topNames).map(([path, name]) => ({ path, names: [name] })),
  ...Array.from({ length: count }, (_, layer) =>
    Object.entries(layerNames).map(([path, name]) => ({
      path: `blocks.${layer}.${path}`,
      names: [`blk.${layer}.${name}`],
    })),
  ).flat(),
];
