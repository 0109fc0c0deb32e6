/**
 * GGUF files of the models in test/fixtures/decoders: names, rows and metadata as llama.cpp's `convert_hf_to_gguf.py`
 * writes them. llama.cpp itself reads these files (scripts/fixtures/llama_cpp.ts).
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { byteCharacters } from "../../../../src/data/bpe_words.ts";
import {
  add,
  contiguous,
  Generator,
  io,
  mul,
  type nn,
  ones,
  type QuantizedTensor,
  quantizeGgml,
  randn,
  reshape,
  stack,
  tensor,
  toDType,
  transpose,
} from "../../../../src/index.ts";
import type { GgmlFormat } from "../../../../src/quant/formats.ts";
import type { Tensor } from "../../../../src/tensor/tensor.ts";
import { folderOf } from "./oracle.ts";

interface Config {
  readonly [name: string]: unknown;
}

const number = (config: Config, ...names: readonly string[]): number =>
  names.map((name) => config[name]).find((own) => typeof own === "number") as number;

/** llama.cpp's names of architectures, and the number of layers in the file. */
const files = {
  gpt2: { architecture: "gpt2" },
  llama: { architecture: "llama" },
  qwen2: { architecture: "qwen2" },
  qwen3: { architecture: "qwen3" },
  gemma2: { architecture: "gemma2" },
  // in llama.cpp, the sixth layer is the first without a sliding window
  gemma3: { architecture: "gemma3", layers: [0, 1, 2, 0, 1, 2] },
  phi3: { architecture: "phi3" },
  olmo2: { architecture: "olmo2" },
  mixtral: { architecture: "llama" },
  // llama.cpp has no layers without experts
  qwen3_moe: { architecture: "qwen3moe", layers: [0, 2] },
} as const;

/** The models that have a file. llama.cpp loads Mistral as `llama`, but supports no windows for it. */
export type GgufName = keyof typeof files;
export const ggufNames: readonly GgufName[] = Object.keys(files) as GgufName[];

const layerNames: Readonly<Record<string, string>> = {
  input_layernorm: "attn_norm",
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.qkv_proj": "attn_qkv",
  "self_attn.q_norm": "attn_q_norm",
  "self_attn.k_norm": "attn_k_norm",
  "self_attn.o_proj": "attn_output",
  post_attention_layernorm: "ffn_norm",
  pre_feedforward_layernorm: "ffn_norm",
  post_feedforward_layernorm: "post_ffw_norm",
  "mlp.gate_proj": "ffn_gate",
  "mlp.up_proj": "ffn_up",
  "mlp.gate_up_proj": "ffn_up",
  "mlp.down_proj": "ffn_down",
  "mlp.gate": "ffn_gate_inp",
  "block_sparse_moe.gate": "ffn_gate_inp",
  ln_1: "attn_norm",
  "attn.c_attn": "attn_qkv",
  "attn.c_proj": "attn_output",
  ln_2: "ffn_norm",
  "mlp.c_fc": "ffn_up",
  "mlp.c_proj": "ffn_down",
};

const topNames: Readonly<Record<string, string>> = {
  "model.embed_tokens": "token_embd",
  "model.norm": "output_norm",
  lm_head: "output",
  "transformer.wte": "token_embd",
  "transformer.wpe": "position_embd",
  "transformer.ln_f": "output_norm",
};

const experts: Readonly<Record<string, string>> = {
  w1: "ffn_gate_exps",
  w3: "ffn_up_exps",
  w2: "ffn_down_exps",
  gate_proj: "ffn_gate_exps",
  up_proj: "ffn_up_exps",
  down_proj: "ffn_down_exps",
};

/** Metadata that replaces Llama 3's factors of rotation. */
export type RopeScalingMetadata = Readonly<Record<string, Value | { readonly type: "string"; readonly value: string }>>;

/** Writes the file of a model. `format` applies to its matrices; the other weights are float32. */
export async function writeGguf(
  name: GgufName,
  path: string,
  format: GgmlFormat | "float32" | "float16",
  scaling?: RopeScalingMetadata,
): Promise<void> {
  const config: Config = JSON.parse(readFileSync(join(folderOf(name), "config.json"), "utf8"));
  const state = io.loadSafetensors(join(folderOf(name), "model.safetensors"));
  const plain = tensorsOf(name, config, state);
  const chosen = scaling ? plain.filter(([own]) => own !== "rope_freqs.weight") : plain;
  const weights = Object.fromEntries(chosen.map(([own, x]) => [own, stored(own, x, format)]));
  await io.saveGguf(path, weights, { metadata: { ...metadataOf(name, config), ...scaling } });
}

function stored(name: string, x: Tensor, format: GgmlFormat | "float32" | "float16"): Tensor | QuantizedTensor {
  const isMatrix = x.rank >= 2 && !/ffn_gate_inp|position_embd/.test(name);
  if (!isMatrix) return toDType(x, "float32");
  if (format === "float32" || format === "float16") return toDType(x, format);
  if (x.shape.at(-1)! % 32 !== 0) return toDType(x, "float16"); // as llama.cpp's own quantizer does
  return quantizeGgml(toDType(x, "float32"), format);
}

function tensorsOf(name: GgufName, config: Config, state: nn.StateDict): [string, Tensor][] {
  const { layers = undefined } = files[name] as { layers?: readonly number[] };
  const count = layers?.length ?? number(config, "num_hidden_layers", "n_layer");
  const found: [string, Tensor][] = [];
  for (const [own, x] of Object.entries(state)) {
    const match = /^(.*)\.(weight|bias)$/.exec(own)!;
    const top = topNames[match[1]];
    if (top !== undefined) found.push([`${top}.${match[2]}`, changed(name, top, x, config)]);
  }
  for (let at = 0; at < count; at++) found.push(...layerTensors(name, config, state, layers?.[at] ?? at, at));
  if (name === "phi3") {
    const rope = config["rope_parameters"] as Record<string, number[]>;
    found.push(["rope_factors_long.weight", tensor(rope["long_factor"])]);
    found.push(["rope_factors_short.weight", tensor(rope["short_factor"])]);
  }
  if (name === "llama") found.push(["rope_freqs.weight", llama3Factors(config)]);
  return found;
}

function layerTensors(
  name: GgufName,
  config: Config,
  state: nn.StateDict,
  from: number,
  to: number,
): [string, Tensor][] {
  const prefix = name === "gpt2" ? `transformer.h.${from}.` : `model.layers.${from}.`;
  const found: [string, Tensor][] = [];
  const stacks = new Map<string, Tensor[]>();
  const own = Object.entries(state).filter(([key]) => key.startsWith(prefix));
  // experts in the order of their numbers
  own.sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
  for (const [key, x] of own) {
    const [, layer, end] = /^(.*)\.(weight|bias)$/.exec(key.slice(prefix.length))!;
    const expert = /experts\.\d+\.(\w+)$/.exec(layer)?.[1];
    if (expert !== undefined) {
      const stacked = experts[expert];
      stacks.set(stacked, [...(stacks.get(stacked) ?? []), x]);
      continue;
    }
    const isAfter = layer === "post_attention_layernorm" && /gemma|olmo2/.test(name);
    const other = isAfter ? "post_attention_norm" : layerNames[layer];
    found.push([`blk.${to}.${other}.${end}`, changed(name, other, x, config)]);
  }
  for (const [other, parts] of stacks) found.push([`blk.${to}.${other}.weight`, stack(parts)]);
  return found;
}

function changed(name: GgufName, other: string, x: Tensor, config: Config): Tensor {
  const wide = toDType(x, "float32");
  if (name.startsWith("gemma") && other.endsWith("norm")) return add(wide, 1);
  if (name === "gpt2" && x.rank === 2 && /attn|ffn/.test(other)) return contiguous(transpose(wide, 0, 1));
  const isLlama = files[name].architecture === "llama";
  if (isLlama && other === "attn_q") return permuted(wide, number(config, "num_attention_heads"));
  if (isLlama && other === "attn_k") return permuted(wide, number(config, "num_key_value_heads"));
  return wide;
}

/** `LlamaModel.permute`: interleaves the rows of the two halves of each head. */
function permuted(x: Tensor, heads: number): Tensor {
  const [rows, ...others] = x.shape;
  const halves = reshape(x, [heads, 2, rows / heads / 2, ...others]);
  return reshape(contiguous(transpose(halves, 1, 2)), [rows, ...others]);
}

/** `LlamaModel.generate_extra_tensors`. */
function llama3Factors(config: Config): Tensor {
  const rope = config["rope_parameters"] as Record<string, number>;
  const dim = number(config, "hidden_size") / number(config, "num_attention_heads");
  const [low, high, factor] = [rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]];
  const original = rope["original_max_position_embeddings"];
  const factors = Array.from({ length: dim / 2 }, (_, pair) => {
    const wavelength = 2 * Math.PI * rope["rope_theta"] ** ((2 * pair) / dim);
    if (wavelength < original / high) return 1;
    if (wavelength > original / low) return factor;
    const smooth = (original / wavelength - low) / (high - low);
    return 1 / ((1 - smooth) / factor + smooth);
  });
  return tensor(factors);
}

export type Value = { readonly type: "uint32" | "float32"; readonly value: number };
const whole = (value: number): Value => ({ type: "uint32", value });
const real = (value: number): Value => ({ type: "float32", value });

function metadataOf(name: GgufName, config: Config) {
  const { architecture, layers = undefined } = files[name] as { architecture: string; layers?: readonly number[] };
  const heads = number(config, "num_attention_heads", "n_head");
  const width = number(config, "hidden_size", "n_embd");
  const headWidth = number(config, "head_dim") ?? width / heads;
  const rope = (config["rope_parameters"] ?? {}) as Record<string, unknown>;
  const global = (rope["full_attention"] ?? rope) as Record<string, number>;
  const all: Record<string, Value | { type: "string"; value: string }> = {
    context_length: whole(number(config, "max_position_embeddings", "n_positions")),
    embedding_length: whole(width),
    block_count: whole(layers?.length ?? number(config, "num_hidden_layers", "n_layer")),
    feed_forward_length: whole(number(config, "intermediate_size", "n_inner")),
    "attention.head_count": whole(heads),
    "attention.head_count_kv": whole(number(config, "num_key_value_heads") ?? heads),
    "attention.key_length": whole(headWidth),
    "attention.value_length": whole(headWidth),
    vocab_size: whole(number(config, "vocab_size")),
    ...(name === "gpt2"
      ? { "attention.layer_norm_epsilon": real(number(config, "layer_norm_epsilon")) }
      : {
          "attention.layer_norm_rms_epsilon": real(number(config, "rms_norm_eps")),
          "rope.dimension_count": whole(headWidth * (global["partial_rotary_factor"] ?? 1)),
          "rope.freq_base": real(global["rope_theta"]),
        }),
    ...furtherOf(name, config, global),
  };
  return {
    "general.architecture": architecture,
    ...Object.fromEntries(Object.entries(all).map(([key, value]) => [`${architecture}.${key}`, value])),
    ...tokensOf(number(config, "vocab_size")),
  };
}

function furtherOf(name: GgufName, config: Config, rope: Record<string, number>) {
  const window = { "attention.sliding_window": whole(number(config, "sliding_window")) };
  switch (name) {
    case "gemma2":
      return {
        ...window,
        attn_logit_softcapping: real(number(config, "attn_logit_softcapping")),
        final_logit_softcapping: real(number(config, "final_logit_softcapping")),
      };
    case "gemma3":
      return {
        ...window,
        "rope.scaling.type": { type: "string", value: "linear" } as const,
        "rope.scaling.factor": real(rope["factor"]),
      };
    case "phi3":
      // llama.cpp uses the factors for long texts if its cache is longer; its caches are multiples of 256
      return {
        "rope.scaling.original_context_length": whole(512),
        // √(1 + ln(longer) / ln(original)), with the config's lengths
        "rope.scaling.attn_factor": real(Math.sqrt(1 + Math.log(128 / 96) / Math.log(96))),
      };
    case "mixtral":
    case "qwen3_moe":
      return {
        expert_count: whole(number(config, "num_local_experts", "num_experts")),
        expert_used_count: whole(number(config, "num_experts_per_tok")),
        ...(name === "qwen3_moe" && { expert_feed_forward_length: whole(number(config, "moe_intermediate_size")) }),
      };
    default:
      return {};
  }
}

/** A random Llama with rows long enough for super-blocks. */
export async function writeWide(path: string, format: GgmlFormat | "float32"): Promise<void> {
  const [vocabulary, width, layers] = [97, 256, 2];
  const generator = new Generator(18);
  const matrix = (rows: number) => mul(randn([rows, width], { generator }), 0.08);
  const weights: Record<string, Tensor | QuantizedTensor> = {};
  const put = (name: string, x: Tensor) => (weights[`${name}.weight`] = stored(name, x, format));
  put("token_embd", matrix(vocabulary));
  put("output", matrix(vocabulary));
  put("output_norm", ones([width]));
  for (let at = 0; at < layers; at++) {
    for (const norm of ["attn_norm", "ffn_norm"]) put(`blk.${at}.${norm}`, ones([width]));
    for (const own of ["attn_q", "attn_output", "ffn_gate", "ffn_up", "ffn_down"])
      put(`blk.${at}.${own}`, matrix(width));
    for (const own of ["attn_k", "attn_v"]) put(`blk.${at}.${own}`, matrix(width / 2));
  }
  const sizes = {
    num_attention_heads: 8,
    num_key_value_heads: 4,
    hidden_size: width,
    intermediate_size: width,
    max_position_embeddings: 128,
    num_hidden_layers: layers,
    vocab_size: vocabulary,
    rms_norm_eps: 1e-5,
    rope_parameters: { rope_theta: 10_000 },
  };
  await io.saveGguf(path, weights, { metadata: metadataOf("llama", sizes) });
}

/** A token for each of the first bytes, as GPT-2 represents them. */
export function tokensOf(count: number) {
  const tokens = Array.from({ length: count }, (_, byte) => byteCharacters[byte]);
  return {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": { type: "array", of: "string", value: tokens },
    "tokenizer.ggml.token_type": { type: "array", of: "int32", value: tokens.map(() => 1) },
    "tokenizer.ggml.merges": { type: "array", of: "string", value: [] },
    "tokenizer.ggml.bos_token_id": whole(1),
    "tokenizer.ggml.eos_token_id": whole(0),
    "tokenizer.ggml.add_bos_token": false,
  } as const;
}
