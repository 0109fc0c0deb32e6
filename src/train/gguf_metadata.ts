/** The GGUF metadata that llama.cpp reads: the sizes of a model, and its tokens. */
import { BpeTokenizer } from "../data/bpe_tokenizer.ts";
import { byteCharacters, END_OF_TEXT } from "../data/bpe_words.ts";
import { Gpt2Tokenizer } from "../data/gpt2_tokenizer.ts";
import type { Tokenizer } from "../data/tokenizer.ts";
import type { GgufInput } from "../io/gguf/encode.ts";
import type { GPT } from "../nn/models/gpt.ts";
import type { LanguageModel } from "../nn/models/language_model.ts";
import type { Llama } from "../nn/models/llama.ts";
import type { Settings } from "./settings.ts";

type Metadata = Readonly<Record<string, GgufInput>>;

const uint32 = (value: number): GgufInput => ({ type: "uint32", value });
const float32 = (value: number): GgufInput => ({ type: "float32", value });

/** Returns the metadata of a run's model. */
export function ggufMetadata(settings: Settings, model: LanguageModel, tokenizer: Tokenizer): Metadata {
  const architecture = settings.architecture === "gpt" ? "gpt2" : "llama";
  return {
    "general.architecture": architecture,
    "general.name": `orchard ${settings.architecture}`,
    ...sizesOf(architecture, settings, model),
    ...tokensOf(tokenizer),
  };
}

function sizesOf(architecture: "gpt2" | "llama", settings: Settings, model: LanguageModel): Metadata {
  const { layers, width, heads, context } = settings;
  const [block] = (model as GPT | Llama).blocks;
  const { eps } = (model as GPT | Llama).finalNorm;
  const all = {
    context_length: uint32(context),
    embedding_length: uint32(width),
    feed_forward_length: uint32(block?.feedForward.up.outputs ?? 4 * width),
    block_count: uint32(layers),
    "attention.head_count": uint32(heads),
    ...(architecture === "gpt2"
      ? { "attention.layer_norm_epsilon": float32(eps) }
      : {
          "attention.head_count_kv": uint32(heads),
          "attention.layer_norm_rms_epsilon": float32(eps),
          "rope.dimension_count": uint32(width / heads),
          "rope.freq_base": float32(10_000),
          vocab_size: uint32(model.vocabularySize),
        }),
  };
  return Object.fromEntries(Object.entries(all).map(([key, value]) => [`${architecture}.${key}`, value]));
}

const NORMAL = 1;
const CONTROL = 3;

/** Byte-pair encoding as in GPT-2. A tokenizer of bytes has no merges. */
function tokensOf(tokenizer: Tokenizer): Metadata {
  const { vocabularySize, endOfText } = tokenizer;
  const bytes = Array.from({ length: vocabularySize }, (_, token) => tokenizer.bytesOf(token));
  const tokens = bytes.map((byte, token) => (token === endOfText ? END_OF_TEXT : textOf(byte)));
  const types = bytes.map((_, token) => (token === endOfText ? CONTROL : NORMAL));
  const last = endOfText ?? tokenizer.separator;
  return {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": { type: "array", of: "string", value: tokens },
    "tokenizer.ggml.token_type": { type: "array", of: "int32", value: types },
    "tokenizer.ggml.merges": { type: "array", of: "string", value: mergesIn(tokenizer) },
    "tokenizer.ggml.bos_token_id": uint32(last),
    "tokenizer.ggml.eos_token_id": uint32(last),
    "tokenizer.ggml.add_bos_token": false,
  };
}

const textOf = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byteCharacters[byte]).join("");

function mergesIn(tokenizer: Tokenizer): string[] {
  if (tokenizer instanceof BpeTokenizer) return tokenizer.toJSON().model.merges.map((merge) => merge.join(" "));
  if (!(tokenizer instanceof Gpt2Tokenizer)) return [];
  return mergesOf(Array.from({ length: tokenizer.endOfText }, (_, token) => tokenizer.bytesOf(token)));
}

/** Returns the merge of each longer token: the two parts left after applying all earlier merges to its bytes. */
function mergesOf(tokens: readonly Uint8Array[]): string[] {
  const ranks = new Map(tokens.map((bytes, rank) => [textOf(bytes), rank]));
  return tokens.flatMap((bytes, rank) => {
    if (bytes.length < 2) return [];
    const parts = merged(
      Array.from(bytes, (byte) => byteCharacters[byte]),
      ranks,
      rank,
    );
    return parts.length === 2 ? [parts.join(" ")] : [];
  });
}

/** Returns the parts of a text after all merges of a lower rank, applied from the lowest. */
function merged(parts: string[], ranks: ReadonlyMap<string, number>, below: number): string[] {
  for (;;) {
    let [best, at] = [below, -1];
    for (let i = 0; i + 1 < parts.length; i++) {
      const rank = ranks.get(parts[i] + parts[i + 1]) ?? below;
      if (rank < best) [best, at] = [rank, i];
    }
    if (at < 0) return parts;
    parts.splice(at, 2, parts[at] + parts[at + 1]);
  }
}
