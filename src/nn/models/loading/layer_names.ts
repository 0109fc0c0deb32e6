/** Hugging Face's names of a decoder's layers that differ from Llama's, by architecture. */
import { xieluParts } from "../decoder/xielu.ts";
import type { ArchitectureName } from "./architectures.ts";

type TopPath = "tokenEmbedding" | "positionEmbedding" | "embeddingNorm" | "finalNorm" | "head";

/** The names of the layers that only Gemma 3n and Gemma 4 have, outside of the blocks; `#` is the index of a stream. */
export const layerInputNames = {
  "layerInputs.embedding": "embed_tokens_per_layer",
  "layerInputs.projection": "per_layer_model_projection",
  "layerInputs.norm": "per_layer_projection_norm",
} as const;
export const streamNames = {
  "streams.expand.#": "altup_projections.#",
  "streams.collapse.#": "altup_unembed_projections.#",
} as const;

/** The names of parts of a block that only Gemma 3n and Gemma 4 have. */
export const gemmaParts = {
  "layerInput.gate": "per_layer_input_gate",
  "layerInput.projection": "per_layer_projection",
  "layerInput.norm": "post_per_layer_input_norm",
  scale: "layer_scalar",
  "altUp.router": "altup.modality_router",
  "altUp.routerNorm": "altup.router_norm",
  "altUp.prediction": "altup.prediction_coefs",
  "altUp.correction": "altup.correction_coefs",
  "altUp.scale": "altup.correct_output_scale",
  "lowRank.left": "laurel.linear_left",
  "lowRank.right": "laurel.linear_right",
  "lowRank.norm": "laurel.post_laurel_norm",
  "beside.mlpNorm": "post_feedforward_layernorm_1",
  "beside.inputNorm": "pre_feedforward_layernorm_2",
  "beside.outputNorm": "post_feedforward_layernorm_2",
  "beside.routerScale": "router.scale",
  "beside.experts.router": "router.proj",
  "beside.experts.scales": "router.per_expert_scale",
  "beside.experts.experts.#.gateUp": "experts.gate_up_proj",
  "beside.experts.experts.#.down": "experts.down_proj",
} as const;

/** The names of the layers outside of the blocks. */
export type TopNames = Readonly<Record<TopPath, readonly string[]>>;

const optPrefixes = ["model.decoder.", "decoder."];

/** GPT-2's names. */
const gptTop = {
  tokenEmbedding: ["transformer.wte", "wte"],
  positionEmbedding: ["transformer.wpe", "wpe"],
  finalNorm: ["transformer.ln_f", "ln_f"],
} as const;

/** Mamba 2's names. `transformers` 5 renames them in Nemotron-H. */
const mambaTop = {
  tokenEmbedding: ["backbone.embeddings", "embeddings", "model.embeddings"],
  finalNorm: ["backbone.norm_f", "norm_f", "model.norm_f"],
} as const;

/** Names of layers outside of the blocks that differ from Llama's. */
export const furtherTop: Readonly<Partial<Record<ArchitectureName, Partial<TopNames>>>> = {
  gpt_bigcode: gptTop,
  gpt_neo: gptTop,
  codegen: { ...gptTop, positionEmbedding: [] },
  phi: { finalNorm: ["model.final_layernorm", "final_layernorm"] },
  gpt_neox: {
    tokenEmbedding: ["gpt_neox.embed_in", "embed_in"],
    finalNorm: ["gpt_neox.final_layer_norm", "final_layer_norm"],
    head: ["embed_out"],
  },
  falcon: {
    tokenEmbedding: ["transformer.word_embeddings", "word_embeddings"],
    finalNorm: ["transformer.ln_f", "ln_f"],
  },
  opt: {
    tokenEmbedding: optPrefixes.map((prefix) => `${prefix}embed_tokens`),
    positionEmbedding: optPrefixes.map((prefix) => `${prefix}embed_positions`),
    finalNorm: optPrefixes.map((prefix) => `${prefix}final_layer_norm`),
  },
  bloom: {
    tokenEmbedding: ["transformer.word_embeddings", "word_embeddings"],
    embeddingNorm: ["transformer.word_embeddings_layernorm", "word_embeddings_layernorm"],
    finalNorm: ["transformer.ln_f", "ln_f"],
  },
  mpt: { tokenEmbedding: ["transformer.wte", "wte"], finalNorm: ["transformer.norm_f", "norm_f"] },
  lfm2: { finalNorm: ["model.embedding_norm", "embedding_norm"] },
  falcon_h1: { finalNorm: ["model.final_layernorm", "final_layernorm"] },
  lfm2_moe: { finalNorm: ["model.embedding_norm", "embedding_norm"] },
  gptj: { ...gptTop, positionEmbedding: [] },
  mamba: mambaTop,
  falcon_mamba: mambaTop,
  bamba: { finalNorm: ["model.final_layernorm", "final_layernorm"] },
  persimmon: { finalNorm: ["model.final_layernorm", "final_layernorm"] },
  dbrx: { tokenEmbedding: ["transformer.wte", "wte"], finalNorm: ["transformer.norm_f", "norm_f"] },
  jamba: { finalNorm: ["model.final_layernorm", "final_layernorm"] },
  mamba2: mambaTop,
  nemotron_h: mambaTop,
};

const gptLayers = ["transformer.h.", "h."];

/** Prefixes of blocks that differ from Llama's. */
export const layerPrefixes: Readonly<Partial<Record<ArchitectureName, readonly string[]>>> = {
  gpt_neox: ["gpt_neox.layers.", "layers."],
  falcon: gptLayers,
  opt: optPrefixes.map((prefix) => `${prefix}layers.`),
  bloom: gptLayers,
  gptj: gptLayers,
  gpt_bigcode: gptLayers,
  gpt_neo: gptLayers,
  codegen: gptLayers,
  mpt: ["transformer.blocks.", "blocks."],
  mamba: ["backbone.layers.", "layers."],
  falcon_mamba: ["backbone.layers.", "layers."],
  dbrx: ["transformer.blocks.", "blocks."],
  mamba2: ["backbone.layers.", "layers."],
  nemotron_h: ["backbone.layers.", "layers.", "model.layers."],
};

/** Names of the feed-forward and the output of attention in GPT-NeoX and Falcon. */
const widened = { "feedForward.up": "mlp.dense_h_to_4h", "feedForward.down": "mlp.dense_4h_to_h" } as const;

/** Maps queries, keys and values to the weight that holds all three, as in GPT-NeoX and Falcon. */
const oneProjection = (name: string) =>
  Object.fromEntries(["query", "key", "value"].map((part) => [`attention.${part}`, name]));

/** The projections of a feed-forward with a gate. */
const projections = (path: string, name: string) =>
  Object.fromEntries(["gate", "up", "down"].map((part) => [`${path}.${part}`, `${name}.${part}_proj`]));

/** The projections of a shared expert, which processes all tokens. */
const sharedExpert = (name: string) => projections("feedForward.shared", name);

/** Projections of latent attention. */
const latentAttention = {
  "attention.latent.queryDown": "self_attn.q_a_proj",
  "attention.latent.queryNorm": "self_attn.q_a_layernorm",
  "attention.latent.keyValueDown": "self_attn.kv_a_proj_with_mqa",
  "attention.latent.keyValueNorm": "self_attn.kv_a_layernorm",
  "attention.latent.keyValue": "self_attn.kv_b_proj",
  "attention.indexer.query": "self_attn.indexer.wq_b",
  "attention.indexer.key": "self_attn.indexer.wk",
  "attention.indexer.keyNorm": "self_attn.indexer.k_norm",
  "attention.indexer.weights": "self_attn.indexer.weights_proj",
} as const;

/** Names of Mamba 2's parameters, which Qwen3-Next also uses. */
const stateNames = {
  "mixer.convolution": "conv1d",
  "mixer.stepBias": "dt_bias",
  "mixer.logDecay": "A_log",
  "mixer.skip": "D",
  "mixer.norm": "norm",
  "mixer.output": "out_proj",
} as const;

/** Names of the first Mamba's parameters. */
const selectiveNames = {
  "mixer.input": "in_proj",
  "mixer.convolution": "conv1d",
  "mixer.selection": "x_proj",
  "mixer.step": "dt_proj",
  "mixer.stepNorm": "dt_layernorm",
  "mixer.inputNorm": "b_layernorm",
  "mixer.outputNorm": "c_layernorm",
  "mixer.logDecay": "A_log",
  "mixer.skip": "D",
  "mixer.output": "out_proj",
} as const;

/** Adds a prefix to names, and another one to paths. */
export const within = (prefix: string, names: Readonly<Record<string, string>>, before = ""): Record<string, string> =>
  Object.fromEntries(Object.entries(names).map(([path, name]) => [before + path, `${prefix}.${name}`]));

/** Names of Granite's experts. */
const graniteExperts = {
  "feedForward.router": "block_sparse_moe.router.layer",
  "feedForward.experts.#.gateUp": "block_sparse_moe.input_linear",
  "feedForward.experts.#.down": "block_sparse_moe.output_linear",
  "feedForward.shared.gateUp": "shared_mlp.input_linear",
  "feedForward.shared.down": "shared_mlp.output_linear",
} as const;

/** Names of LFM2's layers. */
const lfm2 = {
  attentionNorm: "operator_norm",
  feedForwardNorm: "ffn_norm",
  "attention.output": "self_attn.out_proj",
  "attention.queryNorm": "self_attn.q_layernorm",
  "attention.keyNorm": "self_attn.k_layernorm",
  "mixer.input": "conv.in_proj",
  "mixer.convolution": "conv.conv",
  "mixer.output": "conv.out_proj",
  "feedForward.gate": "feed_forward.w1",
  "feedForward.up": "feed_forward.w3",
  "feedForward.down": "feed_forward.w2",
} as const;

/** Names of the separate projections in Qwen3.5's delta nets. */
const deltaNetApart = {
  "mixer.input": "in_proj_qkv",
  "mixer.gate": "in_proj_z",
  "mixer.strengths": "in_proj_b",
  "mixer.rates": "in_proj_a",
} as const;

/** Names of Kimi Linear's delta attention. */
const kimiDelta = {
  "mixer.query": "self_attn.q_proj",
  "mixer.key": "self_attn.k_proj",
  "mixer.value": "self_attn.v_proj",
  "mixer.queryConvolution": "self_attn.q_conv1d",
  "mixer.keyConvolution": "self_attn.k_conv1d",
  "mixer.valueConvolution": "self_attn.v_conv1d",
  "mixer.stepBias": "self_attn.dt_bias",
  "mixer.forgetDown": "self_attn.f_a_proj",
  "mixer.forgetUp": "self_attn.f_b_proj",
  "mixer.gateDown": "self_attn.g_a_proj",
  "mixer.gateUp": "self_attn.g_b_proj",
  "mixer.logDecay": "self_attn.A_log",
  "mixer.strengths": "self_attn.b_proj",
  "mixer.norm": "self_attn.o_norm",
  "mixer.output": "self_attn.o_proj",
} as const;

/** In Kimi Linear's layers without experts, published files and `transformers` name the feed-forward differently. */
const either = (name: string): string => `mlp.${name}|block_sparse_moe.${name}`;

/** Names of Mixtral's experts. */
export const mixtralExperts = {
  "feedForward.router": "block_sparse_moe.gate",
  "feedForward.experts.#.gate": "block_sparse_moe.experts.#.w1",
  "feedForward.experts.#.up": "block_sparse_moe.experts.#.w3",
  "feedForward.experts.#.down": "block_sparse_moe.experts.#.w2",
} as const;

/** GPT-2's names of norms and feed-forwards. */
const gptBlock = {
  attentionNorm: "ln_1",
  feedForwardNorm: "ln_2",
  "feedForward.up": "mlp.c_fc",
  "feedForward.down": "mlp.c_proj",
} as const;

/** Names of Hunyuan's norms of queries and keys. */
const hunyuan = {
  "attention.queryNorm": "self_attn.query_layernorm",
  "attention.keyNorm": "self_attn.key_layernorm",
} as const;

/** Names of Falcon's and Bloom's attention and feed-forward. */
const falconNames = {
  ...widened,
  ...oneProjection("self_attention.query_key_value"),
  "attention.output": "self_attention.dense",
};

/** Names that differ from Llama's. */
export const further: Readonly<Partial<Record<ArchitectureName, Readonly<Record<string, string>>>>> = {
  phi: {
    "attention.output": "self_attn.dense",
    "feedForward.up": "mlp.fc1",
    "feedForward.down": "mlp.fc2",
    "attention.queryNorm": "self_attn.q_layernorm",
    "attention.keyNorm": "self_attn.k_layernorm",
  },
  stablelm: {
    "attention.queryNorm": "self_attn.q_layernorm.norms.#",
    "attention.keyNorm": "self_attn.k_layernorm.norms.#",
  },
  glm4: {
    attentionPostNorm: "post_self_attn_layernorm",
    feedForwardNorm: "post_attention_layernorm",
    feedForwardPostNorm: "post_mlp_layernorm",
  },
  granitemoe: graniteExperts,
  granitemoehybrid: {
    ...within("mamba", { ...stateNames, "mixer.input": "in_proj" }),
    "feedForward.gateUp": "shared_mlp.input_linear",
    "feedForward.down": "shared_mlp.output_linear",
    ...graniteExperts,
  },
  granitemoeshared: graniteExperts,
  granitemoe_swa: {
    ...graniteExperts,
    "feedForward.router": "block_sparse_moe.router",
    "feedForward.experts.#.gateUp": "block_sparse_moe.experts.gate_up_proj",
    "feedForward.experts.#.down": "block_sparse_moe.experts.down_proj",
  },
  gpt_oss: {
    "feedForward.router": "mlp.router",
    "feedForward.experts.#.gate": "mlp.experts.gate_up_proj",
    "feedForward.experts.#.up": "mlp.experts.gate_up_proj",
    "feedForward.experts.#.down": "mlp.experts.down_proj",
  },
  deepseek_v2: { ...latentAttention, ...sharedExpert("mlp.shared_experts") },
  deepseek_v3: { ...latentAttention, ...sharedExpert("mlp.shared_experts") },
  qwen2_moe: sharedExpert("mlp.shared_expert"),
  glm4_moe: sharedExpert("mlp.shared_experts"),
  starcoder2: { "feedForward.up": "mlp.c_fc", "feedForward.down": "mlp.c_proj" },
  gpt_neox: { ...widened, ...oneProjection("attention.query_key_value"), "attention.output": "attention.dense" },
  falcon: falconNames,
  opt: {
    attentionNorm: "self_attn_layer_norm",
    feedForwardNorm: "final_layer_norm",
    "attention.output": "self_attn.out_proj",
    "feedForward.up": "fc1",
    "feedForward.down": "fc2",
  },
  bloom: falconNames,
  lfm2,
  lfm2_moe: {
    ...lfm2,
    "feedForward.router": "feed_forward.gate",
    "feedForward.correction": "feed_forward.expert",
    "feedForward.experts.#.gate": "feed_forward.experts.#.w1",
    "feedForward.experts.#.up": "feed_forward.experts.#.w3",
    "feedForward.experts.#.down": "feed_forward.experts.#.w2",
  },
  falcon_h1: {
    ...within("mamba", { ...stateNames, "mixer.input": "in_proj" }),
    feedForwardNorm: "pre_ff_layernorm",
    ...projections("feedForward", "feed_forward"),
  },
  mamba2: { attentionNorm: "norm", ...within("mixer", { ...stateNames, "mixer.input": "in_proj" }) },
  qwen3_next: {
    ...within("linear_attn", { ...stateNames, "mixer.input": "in_proj_qkvz", "mixer.rates": "in_proj_ba" }),
    ...sharedExpert("mlp.shared_expert"),
    "attention.gate": "self_attn.q_proj",
  },
  qwen3_5_text: {
    ...within("linear_attn", { ...stateNames, ...deltaNetApart }),
    "attention.gate": "self_attn.q_proj",
  },
  qwen3_5_moe_text: {
    ...within("linear_attn", { ...stateNames, ...deltaNetApart }),
    ...sharedExpert("mlp.shared_expert"),
    "attention.gate": "self_attn.q_proj",
  },
  gptj: {
    attentionNorm: "ln_1",
    "attention.query": "attn.q_proj",
    "attention.key": "attn.k_proj",
    "attention.value": "attn.v_proj",
    "attention.output": "attn.out_proj",
    "feedForward.up": "mlp.fc_in",
    "feedForward.down": "mlp.fc_out",
  },
  gpt_bigcode: { ...gptBlock, ...oneProjection("attn.c_attn"), "attention.output": "attn.c_proj" },
  gpt_neo: {
    ...gptBlock,
    "attention.query": "attn.attention.q_proj",
    "attention.key": "attn.attention.k_proj",
    "attention.value": "attn.attention.v_proj",
    "attention.output": "attn.attention.out_proj",
  },
  codegen: {
    ...oneProjection("attn.qkv_proj"),
    attentionNorm: "ln_1",
    "attention.output": "attn.out_proj",
    "feedForward.up": "mlp.fc_in",
    "feedForward.down": "mlp.fc_out",
  },
  hunyuan_v1_dense: hunyuan,
  hunyuan_v1_moe: { ...hunyuan, ...sharedExpert("mlp.shared_mlp"), "feedForward.router": "mlp.gate.wg" },
  minicpm3: latentAttention,
  llama4_text: {
    ...projections("feedForward", "feed_forward"),
    "feedForward.router": "feed_forward.router",
    ...sharedExpert("feed_forward.shared_expert"),
    "feedForward.experts.#.gate": "feed_forward.experts.gate_up_proj",
    "feedForward.experts.#.up": "feed_forward.experts.gate_up_proj",
    "feedForward.experts.#.down": "feed_forward.experts.down_proj",
  },
  vaultgemma: { feedForwardNorm: "pre_feedforward_layernorm" },
  dots1: sharedExpert("mlp.shared_experts"),
  solar_open: sharedExpert("mlp.shared_experts"),
  minimax_m2: { ...mixtralExperts, "feedForward.correction": "block_sparse_moe" },
  glm4_moe_lite: { ...latentAttention, ...sharedExpert("mlp.shared_experts") },
  youtu: latentAttention,
  ernie4_5_moe: { ...sharedExpert("mlp.shared_experts"), "feedForward.correction": "mlp.moe_statics" },
  hyperclovax: {
    attentionPostNorm: "post_norm1",
    feedForwardNorm: "post_attention_layernorm",
    feedForwardPostNorm: "post_norm2",
  },
  exaone_moe: { ...sharedExpert("mlp.shared_experts"), "feedForward.correction": "mlp" },
  hy_v3: {
    ...sharedExpert("mlp.shared_mlp"),
    "feedForward.router": "mlp.router.gate",
    "feedForward.correction": "mlp.expert",
  },
  kimi_linear: {
    ...latentAttention,
    ...sharedExpert("block_sparse_moe.shared_experts"),
    ...kimiDelta,
    "feedForward.router": "block_sparse_moe.gate",
    "feedForward.correction": "block_sparse_moe.gate",
    "feedForward.gate": either("gate_proj"),
    "feedForward.up": either("up_proj"),
    "feedForward.down": either("down_proj"),
    "feedForward.experts.#.gate": "block_sparse_moe.experts.#.w1",
    "feedForward.experts.#.up": "block_sparse_moe.experts.#.w3",
    "feedForward.experts.#.down": "block_sparse_moe.experts.#.w2",
  },
  mamba: { attentionNorm: "norm", ...within("mixer", selectiveNames) },
  falcon_mamba: { attentionNorm: "norm", ...within("mixer", selectiveNames) },
  bamba: {
    ...within("mamba", { ...stateNames, "mixer.input": "in_proj" }),
    feedForwardNorm: "pre_ff_layernorm",
    ...projections("feedForward", "feed_forward"),
  },
  persimmon: {
    ...within("self_attn", {
      ...oneProjection("query_key_value"),
      "attention.output": "dense",
      "attention.queryNorm": "q_layernorm",
      "attention.keyNorm": "k_layernorm",
    }),
    ...widened,
  },
  dbrx: {
    ...within("norm_attn_norm", {
      attentionNorm: "norm_1",
      feedForwardNorm: "norm_2",
      "attention.queryKeyValue": "attn.Wqkv",
      "attention.output": "attn.out_proj",
    }),
    "feedForward.router": "ffn.router.layer",
    "feedForward.experts.#.gate": "ffn.experts.mlp.w1",
    "feedForward.experts.#.up": "ffn.experts.mlp.v1",
    "feedForward.experts.#.down": "ffn.experts.mlp.w2",
  },
  afmoe: {
    ...sharedExpert("mlp.shared_experts"),
    "attention.gate": "self_attn.gate_proj",
    feedForwardNorm: "pre_mlp_layernorm",
    feedForwardPostNorm: "post_mlp_layernorm",
    "feedForward.router": "mlp.router.gate",
    "feedForward.correction": "mlp.expert",
  },
  jamba: {
    ...within("mamba", selectiveNames),
    feedForwardNorm: "pre_ff_layernorm",
    "feedForward.router": "feed_forward.router",
    ...projections("feedForward", "feed_forward"),
    ...projections("feedForward.experts.#", "feed_forward.experts.#"),
  },
  bitnet: { "attention.innerNorm": "self_attn.attn_sub_norm", "feedForward.innerNorm": "mlp.ffn_sub_norm" },
  glm_moe_dsa: { ...latentAttention, ...sharedExpert("mlp.shared_experts") },
  deepseek_v32: { ...latentAttention, ...sharedExpert("mlp.shared_experts") },
  apertus: {
    attentionNorm: "attention_layernorm",
    feedForwardNorm: "feedforward_layernorm",
    ...within("mlp.act_fn", xieluParts, "feedForward.xielu."),
  },
  nemotron_h: {
    attentionNorm: "norm",
    feedForwardNorm: "norm",
    ...within("mixer", {
      ...stateNames,
      "mixer.input": "in_proj",
      "attention.query": "q_proj",
      "attention.key": "k_proj",
      "attention.value": "v_proj",
      "attention.output": "o_proj",
      "feedForward.up": "up_proj",
      "feedForward.down": "down_proj",
      "feedForward.router": "gate",
      "feedForward.correction": "gate",
      "feedForward.experts.#.up": "experts.#.up_proj",
      "feedForward.experts.#.down": "experts.#.down_proj",
    }),
    ...sharedExpert("mixer.shared_experts"),
  },
  mpt: {
    attentionNorm: "norm_1",
    feedForwardNorm: "norm_2",
    "attention.queryKeyValue": "attn.Wqkv",
    "attention.output": "attn.out_proj",
    "feedForward.up": "ffn.up_proj",
    "feedForward.down": "ffn.down_proj",
  },
};

/** Names of Qwen3-MoE's experts. */
export const qwenExperts = {
  "feedForward.router": "mlp.gate",
  "feedForward.correction": "mlp.gate",
  "feedForward.sharedGate": "mlp.shared_expert_gate",
  ...projections("feedForward.experts.#", "mlp.experts.#"),
};
