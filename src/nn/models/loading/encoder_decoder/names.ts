/** Where the weights of an {@link EncoderDecoder} are in checkpoints, by Hugging Face's names. */
import type { EncoderDescription } from "../../encoder/description.ts";
import type { EncoderDecoderDescription } from "../../encoder_decoder/description.ts";
import type { Place } from "../names.ts";
import { type EncoderDecoderName, rowOf } from "./architectures.ts";

type Names = Readonly<Record<string, string>>;

/** The names of one family of checkpoints; `@` stands for the encoder or the decoder. */
interface FamilyNames {
  readonly prefixes: readonly string[];
  /** The prefix of a block. */
  readonly block: (index: number) => string;
  readonly top: Names;
  readonly encoder: Names;
  readonly decoder: Names;
}

const t5Attention = (part: string, path: string): Names =>
  Object.fromEntries(
    Object.entries({ query: "q", key: "k", value: "v", output: "o" }).map(([key, name]) => [
      `${path}.${key}`,
      `${part}.${name}`,
    ]),
  );

const t5FeedForward = (layer: number): Names => ({
  "feedForward.gate": `layer.${layer}.DenseReluDense.wi_0`,
  "feedForward.gatedUp": `layer.${layer}.DenseReluDense.wi_1`,
  "feedForward.up": `layer.${layer}.DenseReluDense.wi`,
  "feedForward.down": `layer.${layer}.DenseReluDense.wo`,
  feedForwardNorm: `layer.${layer}.layer_norm`,
});

const t5Self: Names = {
  ...t5Attention("layer.0.SelfAttention", "attention"),
  attentionNorm: "layer.0.layer_norm",
  distanceEmbedding: "layer.0.SelfAttention.relative_attention_bias",
};

const t5: FamilyNames = {
  prefixes: [""],
  block: (index) => `@.block.${index}.`,
  top: { finalNorm: "@.final_layer_norm" },
  encoder: { ...t5Self, ...t5FeedForward(1) },
  decoder: {
    ...t5Self,
    ...t5Attention("layer.1.EncDecAttention", "crossAttention"),
    ...t5FeedForward(2),
    crossAttentionNorm: "layer.1.layer_norm",
  },
};

const bartAttention = (part: string, path: string): Names => ({
  [`${path}.query`]: `${part}.q_proj`,
  [`${path}.key`]: `${part}.k_proj`,
  [`${path}.value`]: `${part}.v_proj`,
  [`${path}.output`]: `${part}.out_proj`,
  [`${path}Norm`]: `${part}_layer_norm`,
});

const bartBlock: Names = {
  ...bartAttention("self_attn", "attention"),
  "feedForward.up": "fc1",
  "feedForward.down": "fc2",
  feedForwardNorm: "final_layer_norm",
};

const bart: FamilyNames = {
  prefixes: ["model.", ""],
  block: (index) => `@.layers.${index}.`,
  encoder: bartBlock,
  top: { position: "@.embed_positions", norm: "@.layernorm_embedding", finalNorm: "@.layer_norm" },
  decoder: { ...bartBlock, ...bartAttention("encoder_attn", "crossAttention") },
};

/** Yields the layers of a block with weights: their paths, and their keys in the names. */
function* blockPaths({ layers }: EncoderDescription, index: number, isDecoder: boolean): Generator<[string, string]> {
  const { gated } = layers[index].feedForward;
  for (const attention of isDecoder ? ["attention", "crossAttention"] : ["attention"]) {
    yield [`${attention}Norm`, `${attention}Norm`];
    for (const part of ["query", "key", "value", "output"]) yield [`${attention}.${part}`, `${attention}.${part}`];
  }
  yield ["feedForwardNorm", "feedForwardNorm"];
  if (gated) yield ["feedForward.gate", "feedForward.gate"];
  yield ["feedForward.up", gated ? "feedForward.gatedUp" : "feedForward.up"];
  yield ["feedForward.down", "feedForward.down"];
}

/** Returns the places of the encoder's or the decoder's layers, except its token embedding. */
export function placesOfPart(
  name: EncoderDecoderName,
  description: EncoderDescription,
  side: "encoder" | "decoder",
  path = `${side}.`,
): Place[] {
  const { prefixes, block, top, ...names } = rowOf(name).t5 ? t5 : bart;
  const { embeddings, distances, finalNorm, layers } = description;
  const place = (end: string, suffix: string): Place => ({
    path: `${path}${end}`,
    names: prefixes.map((prefix) => `${prefix}${suffix.replace("@", side)}`),
  });
  const isEncoder = side === "encoder";
  const places: Place[] = [];
  if (embeddings.positions && !embeddings.positions.sinusoids)
    places.push(place(isEncoder ? "embeddings.position" : "positionEmbedding", top["position"]));
  if (embeddings.norm) places.push(place(isEncoder ? "embeddings.norm" : "embeddingNorm", top["norm"]));
  const perBlock = distances?.kind === "buckets" && distances.perBlock === true;
  for (const index of layers.keys()) {
    const within = (suffix: string) => `${block(index)}${suffix}`;
    if (distances && (perBlock || index === 0))
      places.push(
        place(perBlock ? `distanceEmbeddings.${index}` : "distanceEmbedding", within(names[side]["distanceEmbedding"])),
      );
    for (const [end, key] of blockPaths(description, index, !isEncoder))
      places.push(place(`blocks.${index}.${end}`, within(names[side][key])));
  }
  if (finalNorm) places.push(place("finalNorm", top["finalNorm"]));
  return places;
}

/** Returns the names of the table of token embeddings that the encoder and the decoder share. */
export const sharedNames = (name: EncoderDecoderName): string[] =>
  ["shared", "encoder.embed_tokens", "decoder.embed_tokens"].flatMap((table) =>
    (rowOf(name).t5 ? t5 : bart).prefixes.map((prefix) => `${prefix}${table}`),
  );

/** Returns the place of every layer with weights; first the token embedding. */
export function encoderDecoderPlaces(name: EncoderDecoderName, description: EncoderDecoderDescription): Place[] {
  const { encoder, decoder, separateEmbeddings, tied, logitsBias } = description;
  const tokens = separateEmbeddings
    ? [
        { path: "encoder.embeddings.token", names: ["model.encoder.embed_tokens", "encoder.embed_tokens"] },
        { path: "decoder.tokenEmbedding", names: ["model.decoder.embed_tokens", "decoder.embed_tokens"] },
      ]
    : [{ path: "encoder.embeddings.token", names: sharedNames(name) }];
  return [
    ...tokens,
    ...placesOfPart(name, encoder, "encoder"),
    ...placesOfPart(name, decoder, "decoder"),
    ...(tied ? [] : [{ path: "head", names: ["lm_head"] }]),
    ...(logitsBias ? [{ path: "logitsBias", names: ["final_logits"] }] : []),
  ];
}

/** Returns the place of every layer of a classifier: see {@link encoderDecoderPlaces}. */
export function classifierPlaces(name: EncoderDecoderName, description: EncoderDecoderDescription): Place[] {
  const whole = encoderDecoderPlaces(name, { ...description, tied: true, logitsBias: false });
  const moved = (path: string) => path.replace(/^encoder\./, "").replace(/^decoder\./, "crossDecoder.");
  return [
    ...whole.map((place) => ({ ...place, path: moved(place.path) })),
    { path: "head.dense", names: ["classification_head.dense"] },
    { path: "head.output", names: ["classification_head.out_proj"] },
  ];
}

/** Weights that results do not depend on: copies of tied weights, tables of constants, and unused scores. */
const withoutUse = [
  /^(model\.)?((encoder|decoder)\.)?(embed_tokens|embed_positions|version)(\.weights?|\.weight)?$/,
  /^(model\.)?shared\.weight$/,
  /^(model\.)?(encoder|decoder)\.(version|embed_positions\._float_tensor)$/,
  /^decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight$/,
  /^lm_head\.weight$/,
];

/** Whether a tensor of a checkpoint has no effect on the results of a model whose places do not name it. */
export const isWithoutUse = (name: string): boolean => withoutUse.some((pattern) => pattern.test(name));
