/** Tiny Whisper models of `transformers` with their results: scripts/fixtures/models/speech.py. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { io, nn, type Tensor } from "../../../src/index.ts";
import { weight } from "../models/encoder/oracle.ts";

interface Config {
  readonly vocab_size: number;
  readonly d_model: number;
  readonly num_mel_bins: number;
  readonly encoder_layers: number;
  readonly encoder_ffn_dim: number;
  readonly decoder_layers: number;
  readonly decoder_ffn_dim: number;
  readonly max_source_positions: number;
  readonly max_target_positions: number;
}
export interface SpeechModel {
  readonly config: Config;
  readonly generation: Readonly<Record<string, unknown>>;
  readonly scale: number;
}
export interface Recording {
  readonly seed: number;
  readonly samples: number;
}
interface Case extends SpeechModel {
  readonly audio: Recording;
  readonly english: boolean;
  readonly language: string | null;
  readonly task: "transcribe" | "translate";
  readonly timestamps: boolean;
  readonly condition: boolean;
  readonly maxTokens: number;
  readonly noSpeech: number | null;
  readonly segments: readonly { readonly start: number; readonly end: number; readonly tokens: number[] }[];
}
interface Alignment extends SpeechModel {
  readonly audio: Recording;
  readonly english: boolean;
  readonly heads: [number, number][];
  readonly tokens: number[];
  readonly starts: number[];
  readonly chances: number[];
}
interface Fixture {
  readonly models: readonly Case[];
  readonly words: readonly {
    readonly tokens: number[];
    readonly spaced: boolean;
    readonly words: string[];
    readonly parts: number[][];
    readonly joined: string[];
  }[];
  readonly alignments: readonly Alignment[];
  readonly training: SpeechModel & {
    readonly shapes: Readonly<Record<string, number[]>>;
    readonly tokens: number[][];
    readonly loss: number;
    readonly gradients: Readonly<Record<string, number>>;
  };
  readonly pieces: readonly {
    readonly tokens: number[];
    readonly frames: number;
    readonly segments: readonly { readonly start: number; readonly end: number; readonly tokens: number[] }[];
    readonly advance: number;
  }[];
  readonly recordings: readonly {
    readonly kind: string;
    readonly rate: number;
    /** The file's bytes, in base64. */
    readonly file: string;
    readonly channels: number[][];
  }[];
  readonly companded: Readonly<Record<"aLaw" | "muLaw", number[]>>;
  readonly resampled: readonly {
    readonly rates: [number, number];
    readonly samples: number;
    readonly result: number[];
  }[];
}

const path = join(packageRoot, "test", "fixtures", "speech", "speech");
export const fixture: Fixture = JSON.parse(readFileSync(`${path}.json`, "utf8"));
export const tensors = io.loadSafetensors(`${path}.safetensors`);

export const END = 256;
export const FIRST_TIME = 267;
const START = 257;
const languages = ["en", "de", "ja"];
const control = ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>"];

/** Tones of 2000 samples and noise; the same numbers as in speech.py. */
export function audio({ seed, samples }: Recording): Float32Array {
  const noise = weight(`audio${seed}`, [samples]).dataSync() as Float32Array;
  const tones = weight(`tones${seed}`, [Math.floor(samples / 2000) + 1]).dataSync() as Float32Array;
  return Float32Array.from(noise, (value, at) => {
    const frequency = 200 + 3000 * (tones[Math.floor(at / 2000)] + 0.5);
    return 0.4 * Math.sin((2 * Math.PI * frequency * at) / 16_000) + 0.2 * value;
  });
}

/** The names and shapes of a checkpoint. */
export function shapesOf(config: Config): Record<string, number[]> {
  const width = config.d_model;
  const shapes: Record<string, number[]> = {
    "model.encoder.conv1.weight": [width, config.num_mel_bins, 3],
    "model.encoder.conv1.bias": [width],
    "model.encoder.conv2.weight": [width, width, 3],
    "model.encoder.conv2.bias": [width],
    "model.encoder.embed_positions.weight": [config.max_source_positions, width],
    "model.decoder.embed_tokens.weight": [config.vocab_size, width],
    "model.decoder.embed_positions.weight": [config.max_target_positions, width],
  };
  const linear = (name: string, rows: number, columns: number, bias = true) => {
    shapes[`${name}.weight`] = [rows, columns];
    if (bias) shapes[`${name}.bias`] = [rows];
  };
  const norm = (name: string) => {
    shapes[`${name}.weight`] = [width];
    shapes[`${name}.bias`] = [width];
  };
  for (const side of ["encoder", "decoder"] as const) {
    for (let layer = 0; layer < config[`${side}_layers`]; layer++) {
      const at = `model.${side}.layers.${layer}`;
      for (const attention of side === "encoder" ? ["self_attn"] : ["self_attn", "encoder_attn"]) {
        norm(`${at}.${attention}_layer_norm`);
        for (const part of ["q", "k", "v", "out"])
          linear(`${at}.${attention}.${part}_proj`, width, width, part !== "k");
      }
      linear(`${at}.fc1`, config[`${side}_ffn_dim`], width);
      linear(`${at}.fc2`, width, config[`${side}_ffn_dim`]);
      norm(`${at}.final_layer_norm`);
    }
    norm(`model.${side}.layer_norm`);
  }
  return shapes;
}

/** GPT-2's characters for bytes. */
function characters(): string[] {
  const isPrinted = (byte: number) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrinted(byte) ? byte : next++));
}

/** A tokenizer whose tokens are bytes, and special tokens. */
function tokenizerJson(config: Config): object {
  const times = Array.from({ length: config.vocab_size - 267 }, (_, at) => `<|${(at * 0.02).toFixed(2)}|>`);
  const special = ["<|endoftext|>", "<|startoftranscript|>", ...languages.map((code) => `<|${code}|>`), ...control];
  const added = [...special, "<|notimestamps|>", ...times].map((content, at) => ({
    id: END + at,
    content,
    special: !times.includes(content),
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  }));
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: "",
      end_of_word_suffix: "",
      fuse_unk: false,
      byte_fallback: false,
      merges: [],
      vocab: Object.fromEntries(characters().map((character, byte) => [character, byte])),
    },
  };
}

/** Writes the folder of a model. */
export async function writeModel(folder: string, { config, generation, scale }: SpeechModel): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const write = (name: string, content: object) => writeFileSync(join(folder, name), JSON.stringify(content));
  const eos = { bos_token_id: END, eos_token_id: END, pad_token_id: END, decoder_start_token_id: START };
  write("config.json", {
    model_type: "whisper",
    architectures: ["WhisperForConditionalGeneration"],
    ...eos,
    ...config,
  });
  write("generation_config.json", generation);
  write("tokenizer.json", tokenizerJson(config));
  write("tokenizer_config.json", { eos_token: "<|endoftext|>", tokenizer_class: "WhisperTokenizer" });
  const weights = Object.entries(shapesOf(config)).map(([name, shape]): [string, Tensor] => {
    const value = weight(name, shape);
    return [name, name.endsWith("embed_tokens.weight") ? value.mul(scale) : value];
  });
  await io.saveSafetensors(join(folder, "model.safetensors"), Object.fromEntries(weights));
}

export async function loadSpeech(folder: string, model: SpeechModel): Promise<nn.Whisper> {
  await writeModel(folder, model);
  return (await nn.loadModel<nn.Whisper>(folder, { dtype: "float32" })).model;
}
