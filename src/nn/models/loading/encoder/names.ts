/** Where the weights of an {@link Encoder} are in checkpoints, by Hugging Face's names. */
import type { EncoderDescription, EncoderLayerDescription, EncoderTask } from "../../encoder/description.ts";
import type { Place } from "../names.ts";
import { type EncoderName, encoderRow } from "./architectures.ts";

type Names = Readonly<Record<string, string>>;

/** The names in checkpoints of one architecture. */
interface EncoderNames {
  /** Prefixes of the model's weights: with a head, and without one. */
  readonly prefixes: readonly string[];
  readonly top: Names;
  /** The prefix of a block. */
  readonly block: (index: number, description: EncoderDescription) => string;
  readonly layer: Names;
  /** The layers of heads. Names that begin with `~` follow the model's prefix. */
  readonly heads: Readonly<Record<EncoderTask, Names>>;
}

const bertTop: Names = {
  "embeddings.token": "embeddings.word_embeddings",
  "embeddings.position": "embeddings.position_embeddings",
  "embeddings.tokenType": "embeddings.token_type_embeddings",
  "embeddings.taskType": "embeddings.task_type_embeddings",
  "embeddings.norm": "embeddings.LayerNorm",
  "embeddings.projection": "embeddings_project",
};

const bertLayer: Names = {
  "attention.query": "attention.self.query",
  "attention.key": "attention.self.key",
  "attention.value": "attention.self.value",
  "attention.output": "attention.output.dense",
  attentionNorm: "attention.output.LayerNorm",
  "feedForward.up": "intermediate.dense",
  "feedForward.down": "output.dense",
  feedForwardNorm: "output.LayerNorm",
};

const tagAndAnswer = { tag: { output: "classifier" }, answer: { output: "qa_outputs" } } as const;
const pooler = { dense: "~pooler.dense", output: "classifier" } as const;
const predictions = (norm: string): Names => ({
  dense: "cls.predictions.transform.dense",
  norm: `cls.predictions.transform.${norm}`,
  output: "cls.predictions",
});
const lmHead = { dense: "lm_head.dense", norm: "lm_head.layer_norm", output: "lm_head" } as const;
const denseHead = { dense: "classifier.dense", output: "classifier.out_proj" } as const;
const bertBlock = (index: number): string => `encoder.layer.${index}.`;

const bertHeads = { ...tagAndAnswer, classify: pooler, fillMask: predictions("LayerNorm") } as const;
const robertaHeads = { ...tagAndAnswer, classify: denseHead, fillMask: lmHead } as const;

const bertLike = (prefix: string, heads: EncoderNames["heads"]): EncoderNames => ({
  prefixes: [`${prefix}.`, ""],
  top: bertTop,
  block: bertBlock,
  layer: bertLayer,
  heads,
});

const names: Readonly<Record<EncoderName, EncoderNames>> = {
  bert: bertLike("bert", bertHeads),
  jina_bert: {
    ...bertLike("bert", bertHeads),
    layer: {
      ...bertLayer,
      "feedForward.gateUp": "mlp.gated_layers",
      "feedForward.down": "mlp.wo",
      feedForwardNorm: "mlp.layernorm",
    },
  },
  roberta: bertLike("roberta", robertaHeads),
  "xlm-roberta": bertLike("roberta", robertaHeads),
  camembert: bertLike("roberta", robertaHeads),
  "data2vec-text": bertLike("data2vec_text", robertaHeads),
  "roberta-prelayernorm": {
    ...bertLike("roberta_prelayernorm", robertaHeads),
    top: { ...bertTop, finalNorm: "LayerNorm" },
    layer: { ...bertLayer, attentionNorm: "attention.LayerNorm", feedForwardNorm: "intermediate.LayerNorm" },
  },
  "xlm-roberta-xl": {
    ...bertLike("roberta", robertaHeads),
    top: { ...bertTop, finalNorm: "encoder.LayerNorm" },
    layer: { ...bertLayer, attentionNorm: "attention.self_attn_layer_norm", feedForwardNorm: "LayerNorm" },
  },
  "megatron-bert": {
    ...bertLike("bert", bertHeads),
    top: { ...bertTop, finalNorm: "encoder.ln" },
    layer: { ...bertLayer, attentionNorm: "attention.ln", feedForwardNorm: "ln" },
  },
  ernie: bertLike("ernie", bertHeads),
  electra: bertLike("electra", {
    ...tagAndAnswer,
    classify: denseHead,
    tag: {
      dense: "discriminator_predictions.dense",
      output: "classifier|discriminator_predictions.dense_prediction",
    },
    fillMask: {
      dense: "generator_predictions.dense",
      norm: "generator_predictions.LayerNorm",
      output: "generator_lm_head",
    },
  }),
  distilbert: {
    prefixes: ["distilbert.", ""],
    top: bertTop,
    block: (index) => `transformer.layer.${index}.`,
    layer: {
      "attention.query": "attention.q_lin",
      "attention.key": "attention.k_lin",
      "attention.value": "attention.v_lin",
      "attention.output": "attention.out_lin",
      attentionNorm: "sa_layer_norm",
      "feedForward.up": "ffn.lin1",
      "feedForward.down": "ffn.lin2",
      feedForwardNorm: "output_layer_norm",
    },
    heads: {
      ...tagAndAnswer,
      classify: { dense: "pre_classifier", output: "classifier" },
      fillMask: { dense: "vocab_transform", norm: "vocab_layer_norm", output: "vocab_projector" },
    },
  },
  mpnet: {
    prefixes: ["mpnet.", ""],
    block: bertBlock,
    heads: robertaHeads,
    top: { ...bertTop, distanceEmbedding: "encoder.relative_attention_bias" },
    layer: {
      ...bertLayer,
      "attention.query": "attention.attn.q",
      "attention.key": "attention.attn.k",
      "attention.value": "attention.attn.v",
      "attention.output": "attention.attn.o",
      attentionNorm: "attention.LayerNorm",
    },
  },
  albert: {
    prefixes: ["albert.", ""],
    top: { ...bertTop, "embeddings.projection": "encoder.embedding_hidden_mapping_in" },
    block: (index, { groupSize = 1 }) => albertBlock(index, groupSize),
    layer: {
      "attention.query": "attention.query",
      "attention.key": "attention.key",
      "attention.value": "attention.value",
      "attention.output": "attention.dense",
      attentionNorm: "attention.LayerNorm",
      "feedForward.up": "ffn",
      "feedForward.down": "ffn_output",
      feedForwardNorm: "full_layer_layer_norm",
    },
    heads: {
      ...tagAndAnswer,
      classify: { dense: "~pooler", output: "classifier" },
      fillMask: { dense: "predictions.dense", norm: "predictions.LayerNorm", output: "predictions" },
    },
  },
  modernbert: {
    prefixes: ["model.", ""],
    top: {
      "embeddings.token": "embeddings.tok_embeddings",
      "embeddings.norm": "embeddings.norm",
      finalNorm: "final_norm",
    },
    block: (index) => `layers.${index}.`,
    layer: {
      attentionNorm: "attn_norm",
      "attention.queryKeyValue": "attn.Wqkv",
      "attention.output": "attn.Wo",
      feedForwardNorm: "mlp_norm",
      "feedForward.gateUp": "mlp.Wi",
      "feedForward.down": "mlp.Wo",
    },
    heads: modernHeads(),
  },
  nomic_bert: {
    prefixes: ["nomic_bert.", ""],
    top: { ...bertTop, "embeddings.norm": "emb_ln" },
    block: (index) => `encoder.layers.${index}.`,
    layer: {
      "attention.queryKeyValue": "attn.Wqkv",
      "attention.output": "attn.out_proj",
      attentionNorm: "norm1",
      "feedForward.gate": "mlp.fc12",
      "feedForward.up": "mlp.fc11",
      "feedForward.down": "mlp.fc2",
      feedForwardNorm: "norm2",
    },
    heads: { ...tagAndAnswer, classify: pooler, fillMask: predictions("layer_norm") },
  },
  gte: {
    prefixes: ["gte.", "new.", ""],
    top: bertTop,
    block: bertBlock,
    layer: {
      "attention.queryKeyValue": "attention.qkv_proj",
      "attention.output": "attention.o_proj",
      attentionNorm: "attn_ln",
      "feedForward.gateUp": "mlp.up_gate_proj",
      "feedForward.down": "mlp.down_proj",
      feedForwardNorm: "mlp_ln",
    },
    heads: {
      ...tagAndAnswer,
      classify: pooler,
      fillMask: { dense: "lm_head.dense", norm: "lm_head.norm", output: "lm_head.decoder" },
    },
  },
  jina_embeddings_v3: {
    prefixes: ["roberta.", ""],
    top: { ...bertTop, "embeddings.norm": "emb_ln" },
    block: (index) => `encoder.layers.${index}.`,
    layer: {
      "attention.queryKeyValue": "mixer.Wqkv",
      "attention.output": "mixer.out_proj",
      attentionNorm: "norm1",
      "feedForward.up": "mlp.fc1",
      "feedForward.down": "mlp.fc2",
      feedForwardNorm: "norm2",
    },
    heads: robertaHeads,
  },
  deberta: {
    prefixes: ["deberta.", ""],
    block: bertBlock,
    top: { ...bertTop, "embeddings.projection": "embeddings.embed_proj", distanceEmbedding: "encoder.rel_embeddings" },
    layer: {
      ...bertLayer,
      // q and v only name the biases: see headRowsOf
      "attention.query": "attention.self.q",
      "attention.key": "attention.self.k",
      "attention.value": "attention.self.v",
      "attention.distanceKey": "attention.self.pos_proj",
      "attention.distanceQuery": "attention.self.pos_q_proj",
    },
    heads: {
      ...tagAndAnswer,
      classify: { dense: "pooler.dense", output: "classifier" },
      fillMask: predictions("LayerNorm"),
    },
  },
  "deberta-v2": {
    prefixes: ["deberta.", ""],
    block: bertBlock,
    top: {
      ...bertTop,
      "embeddings.projection": "embeddings.embed_proj",
      distanceEmbedding: "encoder.rel_embeddings",
      distanceNorm: "encoder.LayerNorm",
    },
    layer: {
      ...bertLayer,
      "attention.query": "attention.self.query_proj",
      "attention.key": "attention.self.key_proj",
      "attention.value": "attention.self.value_proj",
      "attention.distanceKey": "attention.self.pos_key_proj",
      "attention.distanceQuery": "attention.self.pos_query_proj",
    },
    heads: {
      ...tagAndAnswer,
      classify: { dense: "pooler.dense", output: "classifier" },
      fillMask: predictions("LayerNorm"),
    },
  },
};

function modernHeads(): EncoderNames["heads"] {
  const head = { dense: "head.dense", norm: "head.norm" };
  const classifier = { ...head, output: "classifier" };
  return { classify: classifier, tag: classifier, answer: classifier, fillMask: { ...head, output: "decoder" } };
}

const albertBlock = (index: number, inner: number): string =>
  `encoder.albert_layer_groups.${Math.floor(index / inner)}.albert_layers.${index % inner}.`;

/** Yields the layers with weights, by their paths in the model. */
function* layerPaths({ attentionNorm, attention, feedForward }: EncoderLayerDescription): Generator<string> {
  if (attentionNorm) yield "attentionNorm";
  yield* attention.fused ? ["attention.queryKeyValue"] : ["query", "key", "value"].map((part) => `attention.${part}`);
  const { distances } = attention;
  if (distances?.ofKeys && !distances.shared) yield "attention.distanceKey";
  if (distances?.ofQueries && !distances.shared) yield "attention.distanceQuery";
  yield* ["attention.output", "feedForwardNorm"];
  yield* feedForward.fused
    ? ["feedForward.gateUp"]
    : feedForward.gated
      ? ["feedForward.gate", "feedForward.up"]
      : ["feedForward.up"];
  yield "feedForward.down";
}

function* topPaths({ embeddings, distances, finalNorm }: EncoderDescription): Generator<string> {
  yield "embeddings.token";
  if (embeddings.positions) yield "embeddings.position";
  if (embeddings.tokenTypes > 0) yield "embeddings.tokenType";
  if (embeddings.taskTypes !== undefined) yield "embeddings.taskType";
  if (embeddings.norm) yield "embeddings.norm";
  if (embeddings.projection) yield "embeddings.projection";
  if (distances) yield "distanceEmbedding";
  if (distances?.kind === "disentangled" && distances.norm) yield "distanceNorm";
  if (finalNorm) yield "finalNorm";
}

/** Returns the place of every layer with weights. */
export function encoderPlaces(name: EncoderName, description: EncoderDescription): Place[] {
  const { prefixes, top, block, layer, heads } = names[name];
  const named = (suffix: string) => prefixes.map((prefix) => `${prefix}${suffix}`);
  const { head, layers } = description;
  const headPaths = head ? ["dense", "norm", "output"].filter((path) => has(head, path)) : [];
  const headName = (suffix: string) => {
    if (suffix.startsWith("~")) return named(suffix.slice(1));
    // The bias of an output that is not tied is next to its weight, under another name.
    return head?.tied === false ? [...otherHeads(suffix), suffix] : [suffix, ...otherHeads(suffix)];
  };
  // accelerate's save_model may keep only the head's name of a tied weight
  const tied = head?.tied ? heads[head.task].output.split("|").flatMap(headName) : [];
  return [
    ...[...topPaths(description)].map((path) => ({
      path,
      names: path === "embeddings.token" ? [...named(top[path]), ...tied] : named(top[path]),
    })),
    ...layers.flatMap((described, index) =>
      [...layerPaths(described)].map((path) => ({
        path: `blocks.${index}.${path}`,
        names: named(`${block(index, description)}${layer[path]}`),
        ...(encoderRow(name).headRows && headRowsOf(path, described, named(block(index, description)))),
      })),
    ),
    ...headPaths.map((path) => ({
      path: `head.${path}`,
      names: heads[head!.task][path].split("|").flatMap(headName),
    })),
  ];
}

/** Returns the rows of DeBERTa's combined weight for a projection. The biases have separate names. */
function headRowsOf(
  path: string,
  { attention: { headWidth } }: EncoderLayerDescription,
  blocks: readonly string[],
): Partial<Place> {
  const first = ["attention.query", "attention.key", "attention.value"].indexOf(path);
  if (first < 0) return {};
  const names = ["in_proj", "qkv"[first]].flatMap((name) => blocks.map((block) => `${block}attention.self.${name}`));
  return { names, plainBias: true, change: { kind: "heads", of: 3, first, count: 1, headWidth } };
}

const has = ({ dense, tied, bias }: NonNullable<EncoderDescription["head"]>, path: string): boolean =>
  path === "dense" ? dense !== undefined : path === "norm" ? dense?.norm === true : !tied || bias;

/** Names in other versions: outputs whose weight is not tied, and the head of DeBERTa-v3. */
function otherHeads(name: string): string[] {
  if (name.startsWith("cls.predictions."))
    return [`lm_predictions.lm_head.${name.slice("cls.predictions.transform.".length)}`];
  if (name === "cls.predictions") return ["cls.predictions.decoder", "lm_predictions.lm_head"];
  return name === "lm_head" || name === "predictions" ? [`${name}.decoder`] : [];
}

/** Weights of other heads, tables of constants, and copies of tied weights, which results do not depend on. */
const withoutUse = [
  /(^|\.)(position_ids|token_type_ids|inv_freq)$/,
  /(^|\.)pooler\./,
  /^(cls|lm_head|lm_predictions|mask_predictions|predictions|sop_classifier|classifier|qa_outputs|head|decoder)\./,
  /^(pre_classifier|vocab_transform|vocab_layer_norm|vocab_projector|distilbert\.distilbert)\./,
  /^(generator_predictions|generator_lm_head|discriminator_predictions)\./,
  // DeBERTa's tables of positions and norms that the config disables; `transformers` ignores them too
  /^(deberta\.)?embeddings\.position_embeddings\./,
  /^(deberta\.)?encoder\.LayerNorm\./,
];

/** Whether a tensor of a checkpoint has no effect on the results of a model whose places do not name it. */
export const isWithoutUse = (name: string): boolean => withoutUse.some((pattern) => pattern.test(name));
