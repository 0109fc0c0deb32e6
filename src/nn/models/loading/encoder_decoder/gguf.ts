/**
 * Opens a GGUF file of T5, FLAN-T5, mT5 or UMT5, or of an encoder alone, as llama.cpp's `convert_hf_to_gguf.py` writes
 * it.
 */
import type { GgufReader } from "../../../../io/gguf/file.ts";
import { loadTokenizer } from "../../../../text/load_tokenizer.ts";
import type { EncoderDescription } from "../../encoder/description.ts";
import { Encoder } from "../../encoder/encoder.ts";
import type { EncoderDecoderDescription } from "../../encoder_decoder/description.ts";
import { EncoderDecoder } from "../../encoder_decoder/encoder_decoder.ts";
import { generationOfGguf } from "../generation.ts";
import type { Place } from "../names.ts";
import type { Opened } from "../opened.ts";
import { Settings } from "../settings.ts";
import { ggufSource } from "../source.ts";
import { describeEncoderAlone, describeEncoderDecoder } from "./describe.ts";
import { placesOfPart } from "./names.ts";

const [WHOLE, ENCODER] = ["t5", "t5encoder"];

const architectureOf = ({ metadata }: GgufReader): unknown => metadata["general.architecture"]?.value;

/** Whether a file has an encoder-decoder model or the encoder of one. */
export const isGgufEncoderDecoder = (file: GgufReader): boolean =>
  architectureOf(file) === WHOLE || architectureOf(file) === ENCODER;

/**
 * Opens the GGUF file of an encoder-decoder model. @throws {FileFormatError} @throws {ArgumentError} for unsupported
 * settings.
 */
export function openGgufEncoderDecoder(file: GgufReader): Opened {
  const entries = Object.entries(file.metadata).map(([key, field]) => [key, plain(field?.value)] as const);
  const isAlone = architectureOf(file) === ENCODER;
  const prefix = `${isAlone ? ENCODER : WHOLE}.`;
  const own = entries
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, value]) => [key.slice(prefix.length), value]);
  const settings = new Settings(file.path, new Map(own as [string, unknown][]), prefix);
  const isTied = isAlone || !file.has("output.weight");
  const stored = { hasTables: false, hasOtherTables: false, hasHead: !isTied, hasLogitsBias: false };
  // only UMT5 has relative position biases in each block
  const name = file.has("enc.blk.1.attn_rel_b.weight") ? "umt5" : "t5";
  const hub = configOf(file, settings, isTied);
  const tokenizer = file.metadata["tokenizer.ggml.model"] ? loadTokenizer(file.path) : undefined;
  const generation = generationOfGguf(file);
  const source = ggufSource(file);
  const common = {
    style: "gguf" as const,
    config: Object.fromEntries(entries),
    generation,
    chatTemplate: undefined,
    [Symbol.dispose]: () => source[Symbol.dispose](),
  };
  if (isAlone) {
    const description = describeEncoderAlone(name, hub);
    return {
      ...common,
      source,
      places: [{ path: "embeddings.token", names: ["token_embd"] }, ...placesOfSide("encoder", description, "")],
      newModel(options) {
        const model = new Encoder(description, options);
        model.tokenizer = tokenizer;
        return model;
      },
    };
  }
  const description = describeEncoderDecoder(name, hub, stored);
  return {
    ...common,
    places: placesOf(description, isTied),
    source: { ...source, isNeutral: (tensor) => /\.cross_attn_rel_b\.weight$/.test(tensor) },
    newModel(options) {
      const model = new EncoderDecoder(description, options);
      model.tokenizer = tokenizer;
      model.generation = { stopTokens: generation.stopTokens };
      return model;
    },
  };
}

/** Converts 64-bit integers to numbers. Model settings are small enough to convert exactly. */
const plain = (value: unknown): unknown => (typeof value === "bigint" ? Number(value) : value);

/**
 * Converts the metadata to a `config.json`. llama.cpp's T5 supports relu or gated gelu, and relative positions of up to
 * 128 tokens.
 */
function configOf(file: GgufReader, settings: Settings, isTied: boolean): Settings {
  const token = (key: string) => plain(file.metadata[`tokenizer.ggml.${key}_token_id`]?.value);
  return new Settings(
    file.path,
    new Map<string, unknown>([
      ["vocab_size", file.info("token_embd.weight").shape[0]],
      ["d_model", settings.whole("embedding_length")],
      ["d_ff", settings.whole("feed_forward_length")],
      ["d_kv", settings.whole("attention.key_length")],
      ["num_layers", settings.whole("block_count")],
      ["num_decoder_layers", settings.wholeIfAny("decoder_block_count")],
      ["num_heads", settings.whole("attention.head_count")],
      ["relative_attention_num_buckets", settings.whole("attention.relative_buckets_count")],
      ["layer_norm_epsilon", settings.positive("attention.layer_norm_rms_epsilon")],
      ["feed_forward_proj", file.has("enc.blk.0.ffn_gate.weight") ? "gated-gelu" : "relu"],
      ["tie_word_embeddings", isTied],
      ["decoder_start_token_id", settings.wholeIfAny("decoder_start_token_id", 0) ?? 0],
      ["pad_token_id", token("padding")],
      ["eos_token_id", token("eos")],
    ]),
  );
}

const layerNames: Readonly<Record<string, string>> = {
  attentionNorm: "attn_norm",
  crossAttentionNorm: "cross_attn_norm",
  feedForwardNorm: "ffn_norm",
  "attention.query": "attn_q",
  "attention.key": "attn_k",
  "attention.value": "attn_v",
  "attention.output": "attn_o",
  "crossAttention.output": "cross_attn_o",
  "crossAttention.query": "cross_attn_q",
  "crossAttention.key": "cross_attn_k",
  "crossAttention.value": "cross_attn_v",
  "feedForward.gate": "ffn_gate",
  "feedForward.up": "ffn_up",
  "feedForward.down": "ffn_down",
};

/** Returns the places of the layers of a side, whose paths begin with `prefix`. */
const placesOfSide = (side: "encoder" | "decoder", description: EncoderDescription, prefix = `${side}.`): Place[] =>
  placesOfPart("t5", description, side, prefix).map(({ path }) => ({
    path,
    names: [`${side === "encoder" ? "enc" : "dec"}.${nameOf(path.slice(prefix.length))}`],
  }));

function placesOf({ encoder, decoder }: EncoderDecoderDescription, isTied: boolean): Place[] {
  return [
    { path: "encoder.embeddings.token", names: ["token_embd"] },
    ...placesOfSide("encoder", encoder),
    ...placesOfSide("decoder", decoder),
    ...(isTied ? [] : [{ path: "head", names: ["output"] }]),
  ];
}

/** Returns llama.cpp's name of a layer of the encoder or decoder, without the prefix `enc.` or `dec.`. */
function nameOf(path: string): string {
  if (path === "finalNorm") return "output_norm";
  const [, index = "0"] = /^distanceEmbeddings?(?:\.(\d+))?$/.exec(path) ?? [];
  if (path.startsWith("distanceEmbedding")) return `blk.${index}.attn_rel_b`;
  const [, block, end] = /^blocks\.(\d+)\.(.+)$/.exec(path)!;
  return `blk.${block}.${layerNames[end]}`;
}
