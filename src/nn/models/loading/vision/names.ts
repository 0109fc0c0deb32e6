/** Where the weights of image encoders are in checkpoints, by Hugging Face's names. */
import type { EncoderLayerDescription } from "../../encoder/description.ts";
import type { DetectorDescription, DualDescription, VisionDescription } from "../../vision/description.ts";
import type { Change, Place } from "../names.ts";
import { type DualName, dualArchitectures, type VisionName } from "./architectures.ts";

type Names = Readonly<Record<string, string>>;

/** The names in checkpoints of one architecture. */
interface VisionNames {
  /** Prefixes of the model's weights: in models with a head, and without one. */
  readonly prefixes: readonly string[];
  readonly top: Names;
  /** The possible prefixes of blocks, without the index. */
  readonly blocks: readonly string[];
  readonly layer: Names;
}

const vitTop: Names = {
  "embeddings.patch": "embeddings.patch_embeddings.projection",
  "embeddings.classToken": "embeddings.cls_token",
  "embeddings.distillationToken": "embeddings.distillation_token",
  "embeddings.registers": "embeddings.register_tokens",
  "embeddings.detectionTokens": "embeddings.detection_tokens",
  "embeddings.position": "embeddings.position_embeddings",
  midPositions: "encoder.mid_position_embeddings|encoder.interpolation.mid_position_embeddings",
  finalNorm: "layernorm",
  "pooling.dense": "pooler.dense",
};

const vitAttention: Names = {
  "attention.query": "attention.attention.query",
  "attention.key": "attention.attention.key",
  "attention.value": "attention.attention.value",
  "attention.output": "attention.output.dense",
};

const vitLayer: Names = {
  ...vitAttention,
  attentionNorm: "layernorm_before",
  feedForwardNorm: "layernorm_after",
  "feedForward.up": "intermediate.dense",
  "feedForward.down": "output.dense",
};
const beitLayer: Names = {
  ...vitLayer,
  // these weights have no suffix such as `.weight`
  attentionScale: "lambda_1",
  feedForwardScale: "lambda_2",
};
const biasTable = "relative_position_bias.relative_position_bias_table";

const scales: Names = { attentionScale: "layer_scale1.lambda1", feedForwardScale: "layer_scale2.lambda1" };

const dinov2Layer: Names = {
  ...vitAttention,
  ...scales,
  attentionNorm: "norm1",
  feedForwardNorm: "norm2",
  "feedForward.up": "mlp.fc1",
  "feedForward.down": "mlp.fc2",
  "feedForward.gateUp": "mlp.weights_in",
};

const clipLayer: Names = {
  "attention.query": "self_attn.q_proj",
  "attention.key": "self_attn.k_proj",
  "attention.value": "self_attn.v_proj",
  "attention.output": "self_attn.out_proj",
  attentionNorm: "layer_norm1",
  feedForwardNorm: "layer_norm2",
  "feedForward.up": "mlp.fc1",
  "feedForward.down": "mlp.fc2",
};

const clipTop: Names = {
  "embeddings.patch": "embeddings.patch_embedding",
  "embeddings.classToken": "embeddings.class_embedding",
  "embeddings.position": "embeddings.position_embedding",
  "embeddings.norm": "pre_layrnorm",
  finalNorm: "post_layernorm",
  "pooling.probe": "head.probe",
  // the bias is named in_proj_bias
  "pooling.queryKeyValue": "head.attention.in_proj_weight|head.attention.in_proj",
  "pooling.output": "head.attention.out_proj",
  "pooling.norm": "head.layernorm",
  "pooling.feedForward.up": "head.mlp.fc1",
  "pooling.feedForward.down": "head.mlp.fc2",
};

const vit = { top: vitTop, blocks: ["encoder.layer."], layer: vitLayer } as const;
const dinov2 = { ...vit, layer: dinov2Layer } as const;
const internvlLayer: Names = {
  "attention.query": "attention.q_proj",
  "attention.key": "attention.k_proj",
  "attention.value": "attention.v_proj",
  "attention.output": "attention.projection_layer",
  attentionNorm: "layernorm_before",
  feedForwardNorm: "layernorm_after",
  // these weights have no suffix such as `.weight`
  attentionScale: "lambda_1",
  feedForwardScale: "lambda_2",
  "feedForward.up": "mlp.fc1",
  "feedForward.down": "mlp.fc2",
};

const clip = { prefixes: ["vision_model.", ""], top: clipTop, blocks: ["encoder.layers."], layer: clipLayer } as const;

const names: Readonly<Record<VisionName, VisionNames>> = {
  vit: { ...vit, prefixes: ["vit.", ""] },
  deit: { ...vit, prefixes: ["deit.", ""] },
  // with the mean of patches, the norm is in the pooler
  beit: {
    ...vit,
    top: { ...vitTop, finalNorm: "pooler.layernorm|layernorm" },
    layer: beitLayer,
    prefixes: ["beit.", ""],
  },
  yolos: { ...vit, prefixes: ["vit.", ""] },
  dinov2: { ...dinov2, prefixes: ["dinov2.", ""] },
  dinov2_with_registers: { ...dinov2, prefixes: ["dinov2_with_registers.", ""] },
  dinov3_vit: {
    prefixes: [""],
    blocks: ["layer.", "model.layer."],
    top: { ...vitTop, "embeddings.patch": "embeddings.patch_embeddings", finalNorm: "norm" },
    layer: {
      "attention.query": "attention.q_proj",
      "attention.key": "attention.k_proj",
      "attention.value": "attention.v_proj",
      "attention.output": "attention.o_proj",
      ...scales,
      attentionNorm: "norm1",
      feedForwardNorm: "norm2",
      "feedForward.gate": "mlp.gate_proj",
      "feedForward.up": "mlp.up_proj",
      "feedForward.down": "mlp.down_proj",
    },
  },
  internvl_vision: { ...vit, prefixes: [""], layer: internvlLayer },
  clip_vision_model: clip,
  siglip_vision_model: clip,
  siglip2_vision_model: clip,
};

/** Yields the layers of a block with weights. */
function* layerPaths({ feedForward, layerScale }: EncoderLayerDescription): Generator<string> {
  yield* ["attentionNorm", ...["query", "key", "value", "output"].map((part) => `attention.${part}`)];
  yield "feedForwardNorm";
  if (layerScale) yield* ["attentionScale", "feedForwardScale"];
  if (feedForward.fused) yield "feedForward.gateUp";
  else yield* feedForward.gated ? ["feedForward.gate", "feedForward.up"] : ["feedForward.up"];
  yield "feedForward.down";
}

function* topPaths(description: VisionDescription): Generator<string> {
  const { patches, embeddingNorm, finalNorm, pooling, midPositions, layers } = description;
  yield "embeddings.patch";
  if (patches.classToken) yield "embeddings.classToken";
  if (patches.distillationToken) yield "embeddings.distillationToken";
  if (patches.registers) yield "embeddings.registers";
  if (patches.detectionTokens) yield "embeddings.detectionTokens";
  if (patches.positions.kind === "learned") yield "embeddings.position";
  if (midPositions && layers.length > 1) yield "midPositions";
  if (embeddingNorm) yield "embeddings.norm";
  if (finalNorm !== "none") yield "finalNorm";
  if (pooling.kind === "dense") yield "pooling.dense";
  if (pooling.kind !== "attention") return;
  yield* ["probe", "queryKeyValue", "output", "norm", "feedForward.up", "feedForward.down"].map(
    (end) => `pooling.${end}`,
  );
}

/** Tables that have further axes of size 1 in checkpoints. */
const reshaped: Change = { kind: "reshaped" };
const isTable = (path: string): boolean =>
  /^embeddings\.(\w+Tokens?|registers|position)$|^pooling\.probe$|^midPositions$/.test(path);

/** Returns the place of every layer with weights, and of the head. */
export function visionPlaces(name: VisionName, description: VisionDescription): Place[] {
  const { prefixes, top, blocks, layer } = names[name];
  const named = (suffix: string) =>
    suffix.split("|").flatMap((each) => prefixes.map((prefix) => `${prefix}${renamed(each, description)}`));
  const { layers, head, projection, distances } = description;
  const headName = head?.of === "teacher" ? "cls_classifier" : "classifier";
  return [
    ...[...topPaths(description)].map((path) => ({
      path,
      names: named(top[path]),
      change: isTable(path) ? reshaped : undefined,
    })),
    ...layers.flatMap((described, index) =>
      [...layerPaths(described)].map((path) => ({
        path: `blocks.${index}.${path}`,
        names: blocks.flatMap((block) => named(`${block}${index}.${layer[path]}`)),
      })),
    ),
    ...(distances ? layers.slice(0, distances === "shared" ? 1 : undefined) : []).map((_, at) => ({
      path: `distances.${at}`,
      names: named(
        distances === "shared" ? `encoder.${biasTable}` : `encoder.layer.${at}.attention.attention.${biasTable}`,
      ),
    })),
    ...(projection === undefined ? [] : [{ path: "projection", names: ["visual_projection"] }]),
    ...(head ? [{ path: "head", names: [headName] }] : []),
    ...(head?.of === "teacher" ? [{ path: "distillationHead", names: ["distillation_classifier"] }] : []),
  ];
}

/** DINOv2's gated feed-forward has other names. */
const renamed = (suffix: string, { layers }: VisionDescription): string =>
  layers[0]?.feedForward.fused ? suffix.replace(/mlp\.fc2$/, "mlp.weights_out") : suffix;

/** Returns the place of every layer with weights. */
export function detectorPlaces(name: VisionName, { vision }: DetectorDescription): Place[] {
  const heads = { labelHead: "class_labels_classifier", boxHead: "bbox_predictor" };
  return [
    ...visionPlaces(name, vision).map((place) => ({ ...place, path: `vision.${place.path}` })),
    ...Object.entries(heads).flatMap(([path, head]) =>
      [0, 1, 2].map((at) => ({ path: `${path}.layers.${at}`, names: [`${head}.layers.${at}`] })),
    ),
  ];
}

const textTop: Names = {
  "embeddings.token": "embeddings.token_embedding",
  "embeddings.position": "embeddings.position_embedding",
  finalNorm: "final_layer_norm",
};

/** Returns the place of every layer with weights. */
export function dualPlaces(name: DualName, vision: VisionName, description: DualDescription): Place[] {
  const { text } = description;
  const under = (prefix: string) => (place: Place) => ({ ...place, path: `${prefix}.${place.path}` });
  const textName = (suffix: string) => [`text_model.${suffix}`];
  return [
    ...visionPlaces(vision, description.vision).map(under("vision")),
    ...Object.entries(textTop).map(([path, suffix]) => ({ path: `text.${path}`, names: textName(suffix) })),
    ...text.layers.flatMap((layer, index) =>
      [...layerPaths(layer)].map((path) => ({
        path: `text.blocks.${index}.${path}`,
        names: textName(`encoder.layers.${index}.${clipLayer[path]}`),
      })),
    ),
    { path: "textProjection", names: name === "clip" ? ["text_projection"] : ["text_model.head"] },
    // the weight is logit_scale, and the bias logit_bias
    { path: "scale", names: ["logit_scale", "logit"], change: reshaped },
  ];
}

/** Weights of other heads, of training, and tables of constants, which results do not depend on. */
const withoutUse = [
  /(^|\.)(position_ids|relative_position_index|mask_token|inv_freq|mid_position_embeddings)$/,
  /(^|\.)pooler\./,
  /^(classifier|decoder|lm_head)\./,
];

/** Weights of the text encoder, if only the image encoder is loaded. */
const textWeights = /^(text_model|text_projection|visual_projection|logit_scale|logit_bias)(\.|$)/;

/** Whether a tensor of a checkpoint has no effect on the results of a model whose places do not name it. */
export const isWithoutUse = (name: string, isDual: boolean): boolean =>
  withoutUse.some((pattern) => pattern.test(name)) || (!isDual && textWeights.test(name));

/** A model of this folder's architectures. */
interface Described {
  readonly description: VisionDescription | DualDescription | DetectorDescription;
}

/** @internal Returns the places of a model's weights. */
export const placesIn = ({ description }: Described): Place[] =>
  "labels" in description
    ? detectorPlaces(description.architecture as VisionName, description)
    : "vision" in description
      ? dualPlaces(
          description.architecture as DualName,
          dualArchitectures[description.architecture as DualName].vision,
          description,
        )
      : visionPlaces(description.architecture as VisionName, description);
