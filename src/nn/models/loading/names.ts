/** Where the weights of a {@link Decoder} are in checkpoints, by Hugging Face's and llama.cpp's names. */
import type { DecoderDescription, LayerDescription, RecurrentDescription } from "../decoder/description.ts";
import { xieluParts } from "../decoder/xielu.ts";
import { type ArchitectureName, rowOf } from "./architectures.ts";
import { ggufLayerInputs, ggufParts, ggufStreams } from "./gguf_names.ts";
import {
  further,
  furtherTop,
  gemmaParts,
  layerInputNames,
  layerPrefixes,
  mixtralExperts,
  qwenExperts,
  streamNames,
  type TopNames,
} from "./layer_names.ts";

/** How a checkpoint's tensor is converted to a parameter. */
export type Change =
  /** GPT-2's `Conv1D`: [inputs, outputs] in the checkpoint. */
  | { readonly kind: "transposed" }
  /** Gemma's norms: stored as differences from 1. */
  | { readonly kind: "plusOne" }
  /** One of several matrices that are stacked in one tensor. */
  | {
      readonly kind: "part";
      readonly index: number;
      /** The number of matrices, if their rows are joined in a tensor of two axes. */
      readonly joined?: number;
      /** Whether the matrices are [inputs, outputs] in the checkpoint; not if they are quantized. Default false. */
      readonly transposed?: boolean;
      /** The parameter has every second row, from this one on. Default: all rows. */
      readonly alternate?: 0 | 1;
      /** Which half of the tensor's rows the parameter is: 0 = first, 1 = second. Default: all rows. */
      readonly half?: 0 | 1;
    }
  /** Rows `first` to `first + count` of every `of` rows of heads; each has `headWidth` rows. */
  | {
      readonly kind: "heads";
      readonly of: number;
      readonly first: number;
      readonly count: number;
      readonly headWidth: number;
    }
  /** Rows from `first` on. OPT's first two positions are for padding. */
  | { readonly kind: "after"; readonly first: number }
  /** The same elements with other axes, such as axes of size 1. */
  | { readonly kind: "reshaped" }
  /** Some rows of a parameter that the model fuses and the checkpoint does not. Only presets have such parameters. */
  | { readonly kind: "rows"; readonly first: number; readonly count: number };

/** The place of a layer in a checkpoint. */
export interface Place {
  /** The path of the layer in the model: `blocks.0.attention.query`. */
  readonly path: string;
  /** The possible names of the layer; a checkpoint has one of them. */
  readonly names: readonly string[];
  /** How the layer's weight is converted. */
  readonly change?: Change | undefined;
  /** Whether `change` applies only to the weight, not to the bias. Default false. */
  readonly plainBias?: boolean | undefined;
}

/** The names of layers in one style of checkpoint. */
interface Names {
  readonly top: TopNames;
  /**
   * Names in a block, without the prefix. `#` stands for the index of an expert; without `#`, one tensor holds all
   * experts. `|` separates alternatives.
   */
  readonly block: (layer: LayerDescription) => Readonly<Record<string, string>>;
  readonly prefixes: (index: number) => readonly string[];
}

/** The names of the parts of recurrent layers. */
const recurrentParts: Readonly<Record<RecurrentDescription["kind"], readonly string[]>> = {
  shortConvolution: ["input", "convolution", "output"],
  stateSpace: ["input", "convolution", "stepBias", "logDecay", "skip", "norm", "output"],
  selectiveState: [
    ...["input", "convolution", "selection", "stepNorm", "inputNorm", "outputNorm", "step", "logDecay", "skip"],
    "output",
  ],
  deltaNet: ["input", "gate", "strengths", "rates", "convolution", "stepBias", "logDecay", "norm", "output"],
  kimiDelta: [
    "query",
    "key",
    "value",
    "queryConvolution",
    "keyConvolution",
    "valueConvolution",
    "forgetDown",
    "forgetUp",
    "stepBias",
    "logDecay",
    "strengths",
    "gateDown",
    "gateUp",
    "norm",
    "output",
  ],
};

/** Layers that exist only in delta nets with separate projections. */
const isApart: ReadonlySet<string> = new Set(["gate", "strengths"]);

/** Yields the layers of a block in the order of computation. */
function* pathsOf({ norms, parallel, attention, recurrent, feedForward }: LayerDescription): Generator<string> {
  const { latent } = attention;
  const attends = attention.heads > 0;
  if (norms !== "after" && (attends || recurrent)) yield "attentionNorm";
  if (recurrent) {
    const isHere = (part: string) => recurrent.kind !== "deltaNet" || recurrent.apart || !isApart.has(part);
    const parts = recurrentParts[recurrent.kind].filter(isHere);
    const { kind } = recurrent;
    const isNormed = kind === "stateSpace" ? recurrent.norm !== "none" : kind !== "selectiveState" || recurrent.normEps;
    yield* parts.filter((part) => isNormed || !/[nN]orm$/.test(part)).map((part) => `mixer.${part}`);
  }
  if (attends && latent) {
    if (latent.queryRank !== undefined) yield* ["attention.latent.queryDown", "attention.latent.queryNorm"];
    yield* ["query", "keyValueDown", "keyValueNorm", "keyValue"].map((part) => `attention.latent.${part}`);
  } else if (attends) yield* projectionsOf(attention);
  if (latent?.index?.shared === false)
    yield* ["query", "key", "keyNorm", "weights"].map((part) => `attention.indexer.${part}`);
  if (attention.sinks) yield "attention.sinks";
  if (attends) yield* queryKeyNormsOf(attention);
  if (attention.innerNorm !== undefined) yield "attention.innerNorm";
  if (attends) yield* [...(attention.gated ? ["attention.gate"] : []), "attention.output"];
  if (norms !== "before") yield "attentionPostNorm";
  if (feedForward.hidden === 0) return;
  if (norms !== "after" && parallel !== "sharedNorm") yield "feedForwardNorm";
  const { gated, fused, experts, innerNorm, xielu } = feedForward;
  const parts = [...(fused ? ["gateUp"] : gated ? ["gate", "up"] : ["up"]), "down"];
  if (experts) yield "feedForward.router";
  if (experts?.corrected) yield "feedForward.correction";
  if (innerNorm !== undefined) yield "feedForward.innerNorm";
  if (xielu) yield* Object.keys(xieluParts).map((part) => `feedForward.xielu.${part}`);
  yield* parts.map((part) => (experts ? `feedForward.experts.#.${part}` : `feedForward.${part}`));
  if (experts?.shared) yield* parts.map((part) => `feedForward.shared.${part}`);
  if (experts?.shared?.gated) yield "feedForward.sharedGate";
  if (norms !== "before") yield "feedForwardPostNorm";
}

function projectionsOf({ fused, sharing, keysAsValues }: LayerDescription["attention"]): string[] {
  if (fused) return ["attention.queryKeyValue"];
  const parts = sharing?.stores === false ? ["query"] : ["query", "key", ...(keysAsValues ? [] : ["value"])];
  return parts.map((part) => `attention.${part}`);
}

/** Yields the parts of a block that only Gemma 3n and Gemma 4 have. */
function* gemmaPathsOf({ layerInput, scaled, altUp, beside }: LayerDescription): Generator<string> {
  const isHere: Readonly<Record<string, unknown>> = {
    layerInput,
    altUp,
    lowRank: altUp,
    beside,
    scale: scaled,
  };
  for (const path of Object.keys(gemmaParts)) {
    if (!isHere[path.split(".")[0]]) continue;
    const isSplit = path.endsWith(".gateUp") && beside?.fused === false;
    yield* isSplit ? [path.replace("gateUp", "gate"), path.replace("gateUp", "up")] : [path];
  }
}

function* queryKeyNormsOf(attention: LayerDescription["attention"]): Generator<string> {
  const { queryKeyNorm, heads, keyValueHeads, sharing } = attention;
  if (queryKeyNorm === undefined) return;
  const counts = { queryNorm: heads, ...(sharing?.stores !== false && { keyNorm: keyValueHeads }) };
  for (const [part, count] of Object.entries(counts))
    if (queryKeyNorm !== "headLayerNorms") yield `attention.${part}`;
    else for (let head = 0; head < count; head++) yield `attention.${part}.norms.${head}`;
}

/** Whether checkpoints of a fused preset have separate projections. A GGUF file says whether it has fused ones. */
const hasSeparateProjections = (name: ArchitectureName, style: Style): boolean =>
  style !== "gguf" && ![true, "queryKeyValue"].includes(rowOf(name).fused!) && !rowOf(name).groupedHeads;

/** The style of names in a file. */
export type Style = "huggingFace" | "gguf";

/** Returns the place of every layer with weights. */
export function placesOf(name: ArchitectureName, description: DecoderDescription, style: Style): Place[] {
  const names = style === "gguf" ? llamaCpp(name) : name === "gpt2" ? gpt2 : huggingFace(name);
  const { tied, learnedPositions, embeddingNorm, layers } = description;
  const change = changesOf(name, style);
  const top = (path: keyof Names["top"]): Place => ({ path, names: names.top[path], change: change(path) });
  return [
    { ...top("tokenEmbedding"), names: [...names.top.tokenEmbedding, ...(tied ? names.top.head : [])] },
    ...(learnedPositions ? [top("positionEmbedding")] : []),
    ...(embeddingNorm ? [top("embeddingNorm")] : []),
    ...(style === "gguf" ? ggufTops(description) : furtherTops(description)),
    ...layers.flatMap((layer, index) =>
      [...pathsOf(layer), ...gemmaPathsOf(layer)].flatMap((path) =>
        path === "attention.queryKeyValue" && hasSeparateProjections(name, style)
          ? projectionPlaces(names, layer, index)
          : blockPlaces(names, layer, index, path, headsOf(name, style, layer, path) ?? change(path)),
      ),
    ),
    top("finalNorm"),
    ...(tied ? [] : [top("head")]),
  ];
}

/** Returns the places of layers that only Gemma 3n and Gemma 4 have outside of their blocks. */
function furtherTops({ layerInputs, streams }: DecoderDescription): Place[] {
  const at = ([path, name]: readonly [string, string]) => ({
    path,
    names: modelPrefixes.map((prefix) => `${prefix}${name}`),
  });
  const numbered = Array.from({ length: (streams?.count ?? 1) - 1 }, (_, index) =>
    Object.entries(streamNames).map((entry) => entry.map((text) => text.replace("#", `${index}`)) as [string, string]),
  );
  return [...(layerInputs ? Object.entries(layerInputNames) : []), ...numbered.flat()].map(at);
}

/**
 * Places in GGUF files of the layers that only Gemma 3n and Gemma 4 have outside of the blocks. A tensor holds all
 * streams.
 */
function ggufTops({ layerInputs, streams }: DecoderDescription): Place[] {
  const inputs = layerInputs ? Object.entries(ggufLayerInputs) : [];
  return [
    ...inputs.map(([path, name]) => ({ path, names: [name] })),
    ...Array.from({ length: (streams?.count ?? 1) - 1 }, (_, index) =>
      Object.entries(ggufStreams).map(([path, name]) => ({
        path: path.replace("#", `${index}`),
        names: [name],
        change: { kind: "part", index } as const,
      })),
    ).flat(),
  ];
}

function blockPlaces(
  { block, prefixes }: Names,
  layer: LayerDescription,
  index: number,
  path: string,
  change: Change | undefined,
): Place[] {
  const names = block(layer);
  const named = (at: string) => at.split("|").flatMap((own) => prefixes(index).map((prefix) => `${prefix}${own}`));
  const [, norm, head] = /^(.*)\.norms\.(\d+)$/.exec(path) ?? [];
  if (norm !== undefined) {
    const own = names[norm].replace("#", head);
    // a weight for each head: one tensor for all heads, unless the name has the index of the head
    const part = { kind: "part", index: Number(head) } as const;
    return [{ path: `blocks.${index}.${path}`, names: named(own), change: own === names[norm] ? part : undefined }];
  }
  const tensorName = names[path];
  if (!path.includes("#")) return [{ path: `blocks.${index}.${path}`, names: named(tensorName), change }];
  const experts = path.startsWith("beside.") ? layer.beside!.experts! : layer.feedForward.experts!;
  return Array.from({ length: experts.count }, (_, expert) => ({
    path: `blocks.${index}.${path.replace("#", `${expert}`)}`,
    names: named(tensorName.replace("#", `${expert}`)),
    change: tensorName.includes("#") ? change : { ...change, kind: "part", index: expert },
  }));
}

const codegenParts = ["query", "value", "key"];

/**
 * Returns the rows of a projection in a tensor that stores, for each key head, its queries, then its key and value; and
 * of DBRX's experts, which a tensor joins.
 */
function headsOf(name: ArchitectureName, style: Style, layer: LayerDescription, path: string): Change | undefined {
  const part = /^attention\.(query|key|value|gate)$/.exec(path)?.[1];
  const isOfKeyHead = name === "qwen3_next" && style === "gguf" && /^mixer\.(strengths|rates)$/.test(path);
  if (isOfKeyHead && layer.recurrent?.kind === "deltaNet") {
    const count = layer.recurrent.valueHeads / layer.recurrent.keyHeads;
    return { kind: "heads", of: 2 * count, first: path.endsWith("rates") ? count : 0, count, headWidth: 1 };
  }
  const joined = name === "dbrx" && style !== "gguf" && layer.feedForward.experts;
  const ofExpert = /^feedForward\.experts\.#\.(\w+)$/.exec(path)?.[1];
  if (joined && ofExpert)
    return { kind: "part", index: 0, joined: joined.count, ...(ofExpert === "down" && { transposed: true }) };
  if (part !== undefined && rowOf(name).gatedHeads === true && (part === "query" || part === "gate"))
    return { kind: "heads", of: 2, first: part === "query" ? 0 : 1, count: 1, headWidth: layer.attention.headWidth };
  if (part === undefined || style === "gguf") return undefined;
  const { heads, keyValueHeads, headWidth } = layer.attention;
  // CodeGen stores the queries of a quarter of the heads, then their values and keys
  if (name === "codegen")
    return { kind: "heads", of: 3, first: codegenParts.indexOf(part), count: 1, headWidth: (heads * headWidth) / 4 };
  if (!rowOf(name).groupedHeads) return undefined;
  const count = heads / keyValueHeads;
  const [first, rows] = part === "query" ? [0, count] : [part === "key" ? count : count + 1, 1];
  return { kind: "heads", of: count + 2, first, count: rows, headWidth };
}

/** Places of a fused projection whose parts are separate tensors in the checkpoint: each fills some of its rows. */
function projectionPlaces(names: Names, layer: LayerDescription, index: number): Place[] {
  const { heads, keyValueHeads, headWidth } = layer.attention;
  const counts = { query: heads, key: keyValueHeads, value: keyValueHeads };
  let first = 0;
  return Object.entries(counts).flatMap(([part, heads]) => {
    const count = heads * headWidth;
    const places = blockPlaces(names, layer, index, `attention.${part}`, { kind: "rows", first, count });
    first += count;
    return places.map((place) => ({ ...place, path: `blocks.${index}.attention.queryKeyValue` }));
  });
}

function changesOf(name: ArchitectureName, style: Style): (path: string) => Change | undefined {
  if (style === "gguf") return () => undefined; // llama.cpp's converter has already applied these changes
  if (rowOf(name).normsFromOne) return (path) => (path.endsWith("Norm") ? { kind: "plusOne" } : recurrentChange(path));
  if (name === "gpt_oss") return gptOssChange;
  if (name === "llama4_text") return llama4Change;
  if (name === "ernie4_5_moe") return (path) => (path.endsWith(".correction") ? { kind: "reshaped" } : undefined);
  if (name === "opt") return (path) => (path === "positionEmbedding" ? { kind: "after", first: 2 } : undefined);
  if (name !== "gpt2") return recurrentChange;
  return (path) => (/^(attention|feedForward)\./.test(path) ? { kind: "transposed" } : undefined);
}

/** Weights of convolutions have an axis of size 1, Kimi Linear's decays have three axes, and numbers of xIELU none. */
const recurrentChange = (path: string): Change | undefined =>
  /^(mixer\.(\w*[cC]onvolution|logDecay)$|feedForward\.xielu)/.test(path) ? { kind: "reshaped" } : undefined;

/** GPT-OSS alternates the rows of gate and up. It stores unquantized weights of experts as [inputs, outputs]. */
function gptOssChange(path: string): Change | undefined {
  const part = /experts\.#\.(gate|up|down)$/.exec(path)?.[1];
  if (part === undefined) return undefined;
  const alternate = part === "down" ? undefined : part === "gate" ? 0 : 1;
  return { kind: "part", index: 0, transposed: true, ...(alternate !== undefined && { alternate }) };
}

/** Llama 4 stores experts as [inputs, outputs], with gate and up in one weight: first gate, then up. */
function llama4Change(path: string): Change | undefined {
  const part = /experts\.#\.(gate|up|down)$/.exec(path)?.[1];
  if (part === undefined) return undefined;
  const half = part === "down" ? undefined : part === "gate" ? 0 : 1;
  return { kind: "part", index: 0, transposed: true, ...(half !== undefined && { half }) };
}

const gpt2: Names = {
  top: {
    tokenEmbedding: ["transformer.wte", "wte"],
    positionEmbedding: ["transformer.wpe", "wpe"],
    embeddingNorm: [],
    finalNorm: ["transformer.ln_f", "ln_f"],
    head: ["lm_head"],
  },
  prefixes: (index) => [`transformer.h.${index}.`, `h.${index}.`],
  block: () => ({
    attentionNorm: "ln_1",
    "attention.queryKeyValue": "attn.c_attn",
    "attention.output": "attn.c_proj",
    feedForwardNorm: "ln_2",
    "feedForward.up": "mlp.c_fc",
    "feedForward.down": "mlp.c_proj",
  }),
};

/** Prefixes of a bare model, of a model with a head, and of vision-language models. */
const modelPrefixes = ["model.", "", "language_model.model.", "model.language_model.", "model.text_model."];

const huggingFace = (name: ArchitectureName): Names => ({
  top: {
    tokenEmbedding: modelPrefixes.map((prefix) => `${prefix}embed_tokens`),
    positionEmbedding: [],
    embeddingNorm: [],
    finalNorm: modelPrefixes.map((prefix) => `${prefix}norm`),
    head: ["lm_head", "language_model.lm_head"],
    ...furtherTop[name],
  },
  prefixes: (index) =>
    (layerPrefixes[name] ?? modelPrefixes.map((prefix) => `${prefix}layers.`)).map((prefix) => `${prefix}${index}.`),
  block: ({ norms, parallel, attention, feedForward }) => ({
    attentionNorm: "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.queryKeyValue": "self_attn.qkv_proj",
    "attention.queryNorm": "self_attn.q_norm",
    "attention.keyNorm": "self_attn.k_norm",
    "attention.sinks": "self_attn.sinks",
    "attention.output": "self_attn.o_proj",
    attentionPostNorm: "post_attention_layernorm",
    feedForwardNorm: norms === "both" ? "pre_feedforward_layernorm" : "post_attention_layernorm",
    "feedForward.gate": "mlp.gate_proj",
    "feedForward.up": "mlp.up_proj",
    "feedForward.gateUp": "mlp.gate_up_proj",
    "feedForward.down": "mlp.down_proj",
    feedForwardPostNorm: "post_feedforward_layernorm",
    ...(feedForward.experts && (["mixtral", "phimoe"].includes(name) ? mixtralExperts : qwenExperts)),
    ...gemmaParts,
    ...further[name],
    ...(attention.latent && { "attention.latent.query": `self_attn.q_${attention.latent.queryRank ? "b_" : ""}proj` }),
    ...(name === "falcon" && parallel === "separateNorms" && { attentionNorm: "ln_attn", feedForwardNorm: "ln_mlp" }),
  }),
});

/**
 * llama.cpp's names (`gguf-py/gguf/constants.py`). A fused gate and up is `ffn_up`; the experts of a layer are one
 * tensor.
 */
const llamaCpp = (name: ArchitectureName): Names => ({
  top: {
    tokenEmbedding: ["token_embd"],
    positionEmbedding: ["position_embd"],
    embeddingNorm: ["token_embd_norm"],
    finalNorm: ["output_norm", "token_embd_norm"], // LFM2 uses the second name
    head: ["output"],
  },
  prefixes: (index) => [`blk.${index}.`],
  block: (layer) => ({
    attentionNorm: name === "falcon" && layer.parallel === "separateNorms" ? "attn_norm_2" : "attn_norm",
    "attention.query": "attn_q",
    "attention.key": "attn_k",
    "attention.value": "attn_v",
    "attention.queryKeyValue": "attn_qkv",
    "attention.queryNorm": "attn_q_norm",
    "attention.keyNorm": "attn_k_norm",
    "attention.sinks": "attn_sinks",
    "attention.output": "attn_output",
    attentionPostNorm: "post_attention_norm",
    feedForwardNorm: llamaCppFeedForwardNorms[name] ?? "ffn_norm",
    "feedForward.gate": "ffn_gate",
    "feedForward.up": "ffn_up",
    "feedForward.gateUp": "ffn_up",
    "feedForward.down": "ffn_down",
    feedForwardPostNorm: "post_ffw_norm",
    "feedForward.router": "ffn_gate_inp",
    "feedForward.experts.#.gate": "ffn_gate_exps",
    "feedForward.experts.#.up": "ffn_up_exps",
    "feedForward.experts.#.down": "ffn_down_exps",
    "feedForward.correction": "exp_probs_b",
    "feedForward.shared.gate": "ffn_gate_shexp",
    "feedForward.shared.up": "ffn_up_shexp",
    "feedForward.shared.down": "ffn_down_shexp",
    "feedForward.sharedGate": "ffn_gate_inp_shexp",
    ...ggufParts(name, layer),
  }),
});

/** llama.cpp's names of the norm before the feed-forward, where they differ from Llama's. */
const llamaCppFeedForwardNorms: Readonly<Partial<Record<ArchitectureName, string>>> = {
  seed_oss: "post_attention_norm",
  gpt_oss: "post_attention_norm",
  glm4_moe: "post_attention_norm",
  falcon: "attn_norm",
  dbrx: "attn_output_norm",
  qwen3_next: "post_attention_norm",
  qwen3_5_text: "post_attention_norm",
  qwen3_5_moe_text: "post_attention_norm",
  nemotron_h: "attn_norm",
};
