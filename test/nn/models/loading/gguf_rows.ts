/**
 * GGUF files of small random models of further architectures, with the metadata, names and rows that llama.cpp's
 * `convert_hf_to_gguf.py` writes. llama.cpp itself reads these files (scripts/fixtures/llama_cpp.ts).
 */
import { getOrMake } from "../../../../src/core/collections.ts";
import {
  add,
  contiguous,
  Generator,
  io,
  mul,
  noGrad,
  randn,
  reshape,
  stack,
  transpose,
} from "../../../../src/index.ts";
import { Decoder } from "../../../../src/nn/models/decoder/decoder.ts";
import type { DecoderDescription, LayerDescription } from "../../../../src/nn/models/decoder/description.ts";
import { type ArchitectureName, rowOf } from "../../../../src/nn/models/loading/architectures.ts";
import { describeConfig } from "../../../../src/nn/models/loading/hugging_face.ts";
import { placesOf } from "../../../../src/nn/models/loading/names.ts";
import type { Tensor } from "../../../../src/tensor/tensor.ts";
import { tokensOf, type Value } from "./gguf_of.ts";

const whole = (value: number): Value => ({ type: "uint32", value });
const real = (value: number): Value => ({ type: "float32", value });
const [VOCABULARY, LAYERS] = [97, 5];

interface GgufRow {
  /** llama.cpp's name of the architecture. */
  readonly file: string;
  /** Settings of the config besides the sizes. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Further metadata, without the prefix. */
  readonly metadata?: Readonly<Record<string, Value | boolean | { readonly type: "string"; readonly value: string }>>;
  /** Whether the converter interleaves the rows of the two halves of each head of queries and keys. */
  readonly permuted?: boolean;
}

const factors = {
  embedding_multiplier: 1.5,
  residual_multiplier: 0.5,
  attention_multiplier: 0.3,
  logits_scaling: 2,
};
const factorsInFile = {
  embedding_scale: real(1.5),
  residual_scale: real(0.5),
  "attention.scale": real(0.3),
  logit_scale: real(2),
};
const window = { sliding_window: 5 };
const windowInFile = { "attention.sliding_window": whole(5) };
const half = { "rope.dimension_count": whole(4) };
const experts = { expert_count: whole(4), expert_used_count: whole(2) };

/** The files by `model_type`. */
export const ggufRows = {
  smollm3: { file: "smollm3", permuted: true },
  olmo: { file: "olmo", permuted: true, config: { clip_qkv: 1.5 }, metadata: { "attention.clamp_kqv": real(1.5) } },
  olmo3: {
    file: "olmo2",
    config: { ...window, rope_scaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: 16 } },
    metadata: {
      ...windowInFile,
      "rope.scaling.type": { type: "string", value: "yarn" },
      "rope.scaling.factor": real(4),
      "rope.scaling.original_context_length": whole(16),
    },
  },
  granite: { file: "granite", permuted: true, config: factors, metadata: factorsInFile },
  gemma: { file: "gemma", config: { head_dim: 16 } },
  phi: { file: "phi2", metadata: half },
  glm: { file: "chatglm", config: { head_dim: 8 }, metadata: half },
  glm4: { file: "glm4", config: { head_dim: 8 }, metadata: half },
  cohere: { file: "command-r", config: { logit_scale: 0.25 }, metadata: { logit_scale: real(0.25) } },
  cohere2: {
    file: "cohere2",
    config: { ...window, logit_scale: 0.25 },
    metadata: { ...windowInFile, logit_scale: real(0.25) },
  },
  nemotron: { file: "nemotron", metadata: half },
  seed_oss: { file: "seed_oss", config: { head_dim: 16 } },
  ernie4_5: { file: "ernie4_5", config: { head_dim: 16 } },
  stablelm: {
    file: "stablelm",
    config: { use_qkv_bias: true, use_parallel_residual: false },
    metadata: { "rope.dimension_count": whole(2), use_parallel_residual: false },
  },
  starcoder2: { file: "starcoder2" },
  arcee: { file: "arcee", permuted: true },
  // llama.cpp supports windows only in models of 64 layers
  exaone4: {
    file: "exaone4",
    config: { sliding_window: null, layer_types: Array.from({ length: LAYERS }, () => "full_attention") },
  },
  gpt_oss: {
    file: "gpt-oss",
    config: {
      ...window,
      head_dim: 8,
      num_local_experts: 4,
      num_experts_per_tok: 2,
      rope_scaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: 16 },
    },
    metadata: {
      ...windowInFile,
      ...experts,
      expert_feed_forward_length: whole(48),
      "rope.scaling.type": { type: "string", value: "yarn" },
      "rope.scaling.factor": real(4),
      "rope.scaling.original_context_length": whole(16),
    },
  },
  olmoe: {
    file: "olmoe",
    config: { num_experts: 4, num_experts_per_tok: 2, num_key_value_heads: 4 },
    metadata: experts,
  },
  granitemoe: {
    file: "granitemoe",
    permuted: true,
    config: { ...factors, num_local_experts: 4 },
    metadata: { ...factorsInFile, ...experts },
  },
  qwen2_moe: {
    file: "qwen2moe",
    config: {
      num_experts: 4,
      num_experts_per_tok: 2,
      moe_intermediate_size: 24,
      shared_expert_intermediate_size: 40,
    },
    metadata: {
      ...experts,
      expert_feed_forward_length: whole(24),
      expert_shared_feed_forward_length: whole(40),
    },
  },
  glm4_moe: {
    file: "glm4moe",
    config: {
      n_routed_experts: 4,
      num_experts_per_tok: 2,
      moe_intermediate_size: 24,
      routed_scaling_factor: 1.5,
      use_qk_norm: true,
      attention_bias: true,
      head_dim: 8,
    },
    metadata: {
      ...half,
      ...experts,
      expert_feed_forward_length: whole(24),
      expert_shared_count: whole(1),
      leading_dense_block_count: whole(1),
      expert_gating_func: whole(2),
      expert_weights_scale: real(1.5),
      expert_weights_norm: true,
      expert_group_count: whole(1),
      expert_group_used_count: whole(1),
    },
  },
  gpt_neox: {
    file: "gptneox",
    metadata: { "rope.dimension_count": whole(2), use_parallel_residual: true },
  },
  falcon: { file: "falcon", config: { new_decoder_architecture: true, num_kv_heads: 2, ffn_hidden_size: 48 } },
} as const satisfies Readonly<Partial<Record<ArchitectureName, GgufRow>>>;

export type GgufRowName = keyof typeof ggufRows;

/** Architectures for which llama.cpp requires a head. */
const untied: readonly GgufRowName[] = [
  "phi",
  "nemotron",
  "stablelm",
  "olmoe",
  "olmo3",
  "gpt_oss",
  "qwen2_moe",
  "gpt_neox",
];

function configOf(name: GgufRowName): Readonly<Record<string, unknown>> {
  const { config } = ggufRows[name] as GgufRow;
  const isHeadless = name === "gpt_neox" || name === "falcon";
  return {
    vocab_size: VOCABULARY,
    max_position_embeddings: 128,
    hidden_size: 32,
    num_hidden_layers: LAYERS,
    num_attention_heads: 4,
    tie_word_embeddings: !untied.includes(name),
    ...(name !== "falcon" && { intermediate_size: 48 }),
    ...(!isHeadless && { num_key_value_heads: 2 }),
    ...config,
  };
}

/** The description of a file, in which projections are fused or split as the converter does it. */
function describe(name: GgufRowName): DecoderDescription {
  const description = describeConfig("test", name, configOf(name));
  const change = (layer: LayerDescription): LayerDescription => ({
    ...layer,
    attention: { ...layer.attention, fused: rowOf(name).groupedHeads === true },
    feedForward: { ...layer.feedForward, fused: layer.feedForward.experts ? false : layer.feedForward.fused },
  });
  return { ...description, layers: description.layers.map(change) };
}

/** The model of a file, with random weights. */
export function modelOf(name: GgufRowName): Decoder {
  const model = new Decoder(describe(name)).eval();
  const generator = new Generator(21);
  noGrad(() => {
    for (const [path, parameter] of Object.entries(model.stateDict())) {
      const spread = mul(randn([...parameter.shape], { generator }), 0.3) as Tensor;
      parameter.copy_(/[nN]orm\.weight$/.test(path) ? add(spread, 1) : spread);
    }
  });
  return model;
}

/** `LlamaModel.permute`: interleaves the rows of the two halves of each head. */
function permuted(x: Tensor, headWidth: number): Tensor {
  const [rows, ...others] = x.shape;
  const halves = reshape(x, [rows / headWidth, 2, headWidth / 2, ...others]);
  return reshape(contiguous(transpose(halves, 1, 2)), [rows, ...others]);
}

/** Writes the file of an architecture, in float32. */
export async function writeGgufRow(name: GgufRowName, path: string): Promise<void> {
  const model = modelOf(name);
  const state = model.stateDict();
  const { permuted: isPermuted = false } = ggufRows[name] as GgufRow;
  const { headWidth } = model.description.layers[0].attention;
  const weights: Record<string, Tensor> = {};
  const stacks = new Map<string, Tensor[]>();
  for (const { path: own, names, change } of placesOf(name, model.description, "gguf"))
    for (const end of ["weight", "bias"]) {
      const x = state[`${own}.${end}`];
      if (x === undefined) continue;
      const file = `${names[0]}.${end}`;
      const isReordered = isPermuted && /attention\.(query|key)$/.test(own);
      if (change?.kind === "part") getOrMake(stacks, file, (): Tensor[] => []).push(x);
      else weights[file] = isReordered ? permuted(x, headWidth) : x;
    }
  for (const [file, parts] of stacks) weights[file] = stack(parts);
  await io.saveGguf(path, weights, { metadata: metadataOf(name, model.description) });
}

function metadataOf(name: GgufRowName, description: DecoderDescription) {
  const { file, metadata = {} } = ggufRows[name] as GgufRow;
  const { attention, feedForward } = description.layers[0];
  const { norm } = description;
  const hidden = (configOf(name)["intermediate_size"] as number | undefined) ?? feedForward.hidden;
  const all = {
    context_length: whole(description.contextLength),
    embedding_length: whole(description.width),
    block_count: whole(description.layers.length),
    feed_forward_length: whole(hidden),
    "attention.head_count": whole(attention.heads),
    "attention.head_count_kv": whole(attention.keyValueHeads),
    "attention.key_length": whole(attention.headWidth),
    "attention.value_length": whole(attention.headWidth),
    vocab_size: whole(VOCABULARY),
    [norm.kind === "layerNorm" ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"]: real(norm.eps),
    "rope.dimension_count": whole(attention.headWidth),
    "rope.freq_base": real(attention.rope!.base),
    ...metadata,
  };
  return {
    "general.architecture": file,
    ...Object.fromEntries(Object.entries(all).map(([key, value]) => [`${file}.${key}`, value])),
    ...tokensOf(VOCABULARY),
  };
}
