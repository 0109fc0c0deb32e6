/** llama.cpp's names of parts that few decoders have (`gguf-py/gguf/constants.py`). */
import type { LayerDescription, RecurrentDescription } from "../decoder/description.ts";
import { xieluParts } from "../decoder/xielu.ts";
import type { ArchitectureName } from "./architectures.ts";
import { within } from "./layer_names.ts";

/** Layers outside of the blocks; `#` is the index of a stream, which is a part of one tensor. */
export const ggufLayerInputs = {
  "layerInputs.embedding": "per_layer_token_embd",
  "layerInputs.projection": "per_layer_model_proj",
  "layerInputs.norm": "per_layer_proj_norm",
} as const;
export const ggufStreams = {
  "streams.expand.#": "altup_proj",
  "streams.collapse.#": "altup_unembd_proj",
} as const;

/** Parts of a block of Gemma 3n and Gemma 4. */
const gemma = {
  "layerInput.gate": "inp_gate",
  "layerInput.projection": "proj",
  "layerInput.norm": "post_norm",
  scale: "layer_output_scale",
  "altUp.router": "altup_router",
  "altUp.routerNorm": "altup_router_norm",
  "altUp.prediction": "altup_predict_coef",
  "altUp.correction": "altup_correct_coef",
  "altUp.scale": "altup_correct_scale",
  "lowRank.left": "laurel_l",
  "lowRank.right": "laurel_r",
  "lowRank.norm": "laurel_post_norm",
  "beside.mlpNorm": "post_ffw_norm_1",
  "beside.inputNorm": "pre_ffw_norm_2",
  "beside.outputNorm": "post_ffw_norm_2",
  "beside.routerScale": "ffn_gate_inp.scale",
  "beside.experts.router": "ffn_gate_inp",
  "beside.experts.scales": "ffn_down_exps.scale",
  "beside.experts.experts.#.gateUp": "ffn_gate_up_exps",
  "beside.experts.experts.#.gate": "ffn_gate_exps",
  "beside.experts.experts.#.up": "ffn_up_exps",
  "beside.experts.experts.#.down": "ffn_down_exps",
} as const;

/** Parts of a block of BitNet and Apertus. */
const inner = {
  "attention.innerNorm": "attn_sub_norm",
  "feedForward.innerNorm": "ffn_sub_norm",
  ...within("xielu", xieluParts, "feedForward.xielu."),
};

/** Parts of latent attention, without the projection of queries. */
const latent = {
  "attention.latent.queryDown": "attn_q_a",
  "attention.latent.queryNorm": "attn_q_a_norm",
  "attention.latent.keyValueDown": "attn_kv_a_mqa",
  "attention.latent.keyValueNorm": "attn_kv_a_norm",
  "attention.latent.keyValue": "attn_kv_b",
  "attention.indexer.query": "indexer.attn_q_b",
  "attention.indexer.key": "indexer.attn_k",
  "attention.indexer.keyNorm": "indexer.k_norm",
  "attention.indexer.weights": "indexer.proj",
} as const;

const stateSpace = {
  "mixer.input": "ssm_in",
  "mixer.convolution": "ssm_conv1d",
  "mixer.stepBias": "ssm_dt.bias",
  "mixer.logDecay": "ssm_a",
  "mixer.skip": "ssm_d",
  "mixer.norm": "ssm_norm",
  "mixer.output": "ssm_out",
} as const;

const recurrent: Readonly<Record<RecurrentDescription["kind"], Readonly<Record<string, string>>>> = {
  shortConvolution: {
    "mixer.input": "shortconv.in_proj",
    "mixer.convolution": "shortconv.conv",
    "mixer.output": "shortconv.out_proj",
  },
  stateSpace,
  selectiveState: {
    ...stateSpace,
    "mixer.selection": "ssm_x",
    "mixer.step": "ssm_dt",
    "mixer.stepNorm": "ssm_dt_norm",
    "mixer.inputNorm": "ssm_b_norm",
    "mixer.outputNorm": "ssm_c_norm",
  },
  kimiDelta: {
    ...stateSpace,
    "mixer.query": "attn_q",
    "mixer.key": "attn_k",
    "mixer.value": "attn_v",
    "mixer.queryConvolution": "ssm_conv1d_q",
    "mixer.keyConvolution": "ssm_conv1d_k",
    "mixer.valueConvolution": "ssm_conv1d_v",
    "mixer.forgetDown": "ssm_f_a",
    "mixer.forgetUp": "ssm_f_b",
    "mixer.strengths": "ssm_beta",
    "mixer.gateDown": "ssm_g_a",
    "mixer.gateUp": "ssm_g_b",
    "mixer.output": "attn_output",
  },
  deltaNet: {
    ...stateSpace,
    "mixer.input": "attn_qkv",
    "mixer.gate": "attn_gate",
    "mixer.strengths": "ssm_beta",
    "mixer.rates": "ssm_alpha",
  },
};

/** Returns the names of the parts of a block that few decoders have. */
export const ggufParts = (name: ArchitectureName, layer: LayerDescription): Readonly<Record<string, string>> => ({
  ...gemma,
  ...inner,
  ...latent,
  "attention.latent.query": layer.attention.latent?.queryRank ? "attn_q_b" : "attn_q",
  "attention.gate": name === "afmoe" ? "attn_gate" : "attn_q",
  ...(layer.recurrent && recurrent[layer.recurrent.kind]),
  ...(name === "qwen3_next" && { "mixer.strengths": "ssm_ba", "mixer.rates": "ssm_ba" }),
});
