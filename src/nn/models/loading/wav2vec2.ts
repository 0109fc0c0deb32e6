/** Opens the folder of a {@link Wav2Vec2} model: wav2vec2, HuBERT or WavLM with a CTC head or a classifier. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { tupleOf } from "../../../core/tuples.ts";
import { recordIn } from "../../../core/values.ts";
import type { SafetensorsReader } from "../../../io/safetensors/file.ts";
import { toDType } from "../../../ops/copy/cast.ts";
import { mul } from "../../../ops/elementwise/arithmetic.ts";
import { div } from "../../../ops/elementwise/division.ts";
import { sqrt } from "../../../ops/elementwise/power.ts";
import { sum } from "../../../ops/reduction/sum.ts";
import type { Tensor } from "../../../tensor/tensor.ts";
import { tidy } from "../../../tensor/tidy.ts";
import type { EncoderLabels } from "../encoder/labels.ts";
import type { ConvolutionDescription, Wav2Vec2Description } from "../wav2vec2/description.ts";
import type { CtcSettings } from "../wav2vec2/settings.ts";
import { Wav2Vec2 } from "../wav2vec2/wav2vec2.ts";
import { checkKeys, hasNoEffectAnywhere } from "./config_fields.ts";
import { encoderActivation } from "./encoder/activations.ts";
import { namesOf, scoresOf } from "./encoder/heads.ts";
import { generationOf, settingsIn } from "./generation.ts";
import type { Place } from "./names.ts";
import { openWeights } from "./open_weights.ts";
import type { Opened } from "./opened.ts";
import { sourceOf } from "./packed/methods.ts";
import { Settings } from "./settings.ts";
import type { WeightSource } from "./source.ts";

/** The name of a supported architecture. */
export type Wav2Vec2Name = Wav2Vec2Description["architecture"];

/** Whether a `model_type` belongs to a supported architecture. */
export const isWav2Vec2 = (type: unknown): type is Wav2Vec2Name =>
  type === "wav2vec2" || type === "hubert" || type === "wavlm";

/** The fields that are read, with the defaults of `transformers` 5.23.0. */
const fields = {
  vocab_size: 32,
  hidden_size: 768,
  num_hidden_layers: 12,
  num_attention_heads: 12,
  intermediate_size: 3072,
  hidden_act: "gelu",
  layer_norm_eps: 1e-5,
  feat_extract_norm: "group",
  feat_extract_activation: "gelu",
  conv_dim: Array(7).fill(512),
  conv_stride: [5, 2, 2, 2, 2, 2, 2],
  conv_kernel: [10, 3, 3, 3, 3, 2, 2],
  conv_bias: false,
  num_conv_pos_embeddings: 128,
  num_conv_pos_embedding_groups: 16,
  do_stable_layer_norm: false,
  feat_proj_layer_norm: true,
  num_feat_extract_layers: 7,
  use_weighted_layer_sum: false,
  classifier_proj_size: 256,
} as const;

/** The fields that only WavLM has. */
const wavLmFields = { num_buckets: 320, max_bucket_distance: 800 } as const;

/** Keys for which only one value is supported. */
const only: Readonly<Record<string, unknown>> = {
  add_adapter: false,
  adapter_attn_dim: null,
  conv_pos_batch_norm: false,
};

/** Settings of training, of other heads, and of adapters that a model lacks. */
const notes: ReadonlySet<string> = new Set([
  "apply_spec_augment",
  "layerdrop",
  "ctc_loss_reduction",
  "ctc_zero_infinity",
  "diversity_loss_weight",
  "num_codevectors_per_group",
  "num_codevector_groups",
  "contrastive_logits_temperature",
  "num_negatives",
  "codevector_dim",
  "proj_codevector_dim",
  "tdnn_dim",
  "tdnn_kernel",
  "tdnn_dilation",
  "xvector_output_dim",
  "adapter_kernel_size",
  "adapter_stride",

  "num_adapter_layers",
  "output_hidden_size",
  "gradient_checkpointing",
  "freeze_feat_extract_train",
  "feature_grad_mult",
  "no_mask_channel_overlap",
  "no_mask_time_overlap",
  "mask_channel_length",
  "mask_channel_min_space",
  "mask_channel_other",
  "mask_channel_prob",
  "mask_channel_selection",
  "mask_feature_length",
  "mask_feature_prob",
  "mask_feature_min_masks",
  "mask_time_length",
  "mask_time_min_masks",
  "mask_time_min_space",
  "mask_time_other",
  "mask_time_prob",
  "mask_time_selection",
]);

/**
 * Opens the folder of a model. @throws {FileError} @throws {FileFormatError} @throws {ArgumentError} for
 * unsupported settings.
 */
export function openWav2Vec2(path: string, name: Wav2Vec2Name, config: object, prefix: string): Opened {
  const settings = new Settings(join(path, "config.json"), new Map(Object.entries(config)));
  const description = describe(name, settings);
  const symbols = ctcSettingsOf(path, description);
  const labels = description.classifier && labelsOf(settings);
  const file = openWeights(path, prefix);
  try {
    return {
      places: placesOf(description),
      style: "huggingFace",
      generation: generationOf(path),
      source: withWholePositions(file, sourceOf(file, settings)),
      config: recordIn(config),
      chatTemplate: undefined,
      newModel: (options) => Object.assign(new Wav2Vec2(description, options), { settings: symbols, labels }),
      [Symbol.dispose]: () => file.close(),
    };
  } catch (cause) {
    file.close();
    throw cause;
  }
}

function describe(name: Wav2Vec2Name, given: Settings): Wav2Vec2Description {
  const isWavLm = name === "wavlm";
  const isKnown = (key: string) =>
    Object.hasOwn(fields, key) ||
    (isWavLm && (Object.hasOwn(wavLmFields, key) || key === "num_ctc_classes" || key === "replace_prob")) ||
    notes.has(key) ||
    hasNoEffectAnywhere(key) ||
    (Object.hasOwn(only, key) && only[key] === given.get(key));
  checkKeys(given, isKnown, `is not a supported setting of ${name}`);
  const isClassifier = classOf(given) === "ForSequenceClassification";
  const config = given.with(
    new Map<string, unknown>([
      ...Object.entries({ ...fields, ...wavLmFields }),
      ...given.entries().filter(([, value]) => value !== null),
    ]),
  );
  const [width, heads] = [config.whole("hidden_size"), config.whole("num_attention_heads")];
  if (width % heads !== 0) throw config.wrong("hidden_size", "a multiple of num_attention_heads", width);
  const [kernel, groups] = [config.whole("num_conv_pos_embeddings"), config.whole("num_conv_pos_embedding_groups")];
  if (width % groups !== 0) throw config.wrong("num_conv_pos_embedding_groups", "a divisor of hidden_size", groups);
  const activation = encoderActivation(config, "hidden_act");
  if (activation === "tanh") throw config.wrong("hidden_act", "gelu, relu or silu", activation);
  const convolutionActivation = encoderActivation(config, "feat_extract_activation");
  const distances = { buckets: config.whole("num_buckets", 4), longest: config.whole("max_bucket_distance") };
  if (isWavLm && distances.longest <= distances.buckets / 4)
    throw config.wrong(
      "max_bucket_distance",
      `above ${distances.buckets / 4}, a quarter of num_buckets`,
      distances.longest,
    );
  return {
    architecture: name,
    vocabularySize: isClassifier ? namesOf(given).length : config.whole("vocab_size"),
    classifier: isClassifier
      ? { width: config.whole("classifier_proj_size"), weighted: config.flag("use_weighted_layer_sum") }
      : undefined,
    width,
    convolutions: convolutionsOf(config),
    convolutionBias: config.flag("conv_bias"),
    convolutionNorm: normOf(config),
    convolutionActivation,
    projectionNorm: name !== "hubert" || config.flag("feat_proj_layer_norm"),
    distances: isWavLm ? distances : undefined,
    positions: { kernel, groups, activation: convolutionActivation },
    norm: { kind: "layerNorm", eps: config.positive("layer_norm_eps"), bias: true },
    normPlace: config.flag("do_stable_layer_norm") ? "before" : "after",
    layers: config.whole("num_hidden_layers"),
    layer: {
      attentionNorm: true,
      attention: { heads, headWidth: width / heads, bias: true, fused: false, gatedDistances: isWavLm },
      feedForward: { hidden: config.whole("intermediate_size"), bias: true, activation, gated: false },
    },
  };
}

const classes = ["ForCTC", "ForSequenceClassification"] as const;

/** Returns the end of the class's name. @throws {ArgumentError} `unsupportedHead` for other heads. */
function classOf(config: Settings): (typeof classes)[number] {
  const list = config.get("architectures");
  const className = Array.isArray(list) ? `${list[0]}` : "Model";
  const found = classes.find((end) => className.endsWith(end));
  if (found !== undefined) return found;
  throw config.refused(
    "unsupportedHead",
    `expected architectures to end with ${classes.join(" or ")}, got "${className}"`,
  );
}

/** Returns the names of a classifier's results. */
function labelsOf(config: Settings): EncoderLabels {
  const names = namesOf(config);
  return { names, scores: scoresOf(config, names.length), relevance: "sigmoid" };
}

function normOf(config: Settings): "group" | "layer" {
  const norm = config.get("feat_extract_norm");
  if (norm === "group" || norm === "layer") return norm;
  throw config.wrong("feat_extract_norm", '"group" or "layer"', norm);
}

function convolutionsOf(config: Settings): ConvolutionDescription[] {
  const [widths, kernels, strides] = tupleOf(
    (["conv_dim", "conv_kernel", "conv_stride"] as const).map((key) => {
      const list = config.numbers(key);
      if (list.length > 0 && list.length < 64 && list.every((size) => Number.isInteger(size) && size < 2 ** 16))
        return list;
      throw config.wrong(key, "a list of whole numbers", config.get(key));
    }),
    3,
  );
  if (kernels.length !== widths.length || strides.length !== widths.length)
    throw config.wrong("conv_dim", "a list as long as conv_kernel and conv_stride", widths);
  return widths.map((width, at) => ({ width, kernel: kernels[at], stride: strides[at] }));
}

/** Reads the symbols of a folder; undefined if it has no `vocab.json`. A classifier has no symbols. */
function ctcSettingsOf(path: string, { vocabularySize, classifier }: Wav2Vec2Description): CtcSettings | undefined {
  const normalizes = settingsIn(path, "preprocessor_config.json").flag("do_normalize", true);
  if (classifier) return { symbols: [], blank: 0, wordDelimiter: "", wordSeparator: "", lowerCase: false, normalizes };
  if (!existsSync(join(path, "vocab.json"))) return undefined;
  const vocabulary = settingsIn(path, "vocab.json");
  const tokenizer = settingsIn(path, "tokenizer_config.json");
  const special = settingsIn(path, "special_tokens_map.json");
  const spelled = (key: string): string | undefined =>
    [tokenizer, special].map((settings) => contentOf(settings.get(key))).find((text) => text !== undefined);
  const symbols = new Array<string>(vocabularySize).fill(spelled("unk_token") ?? "<unk>");
  for (const settings of [vocabulary, settingsIn(path, "added_tokens.json")])
    for (const symbol of settings.names) symbols[settings.whole(symbol, 0)] = symbol;
  const blank = symbols.indexOf(spelled("pad_token") ?? "<pad>");
  if (blank < 0)
    throw vocabulary.fail(`expected the blank's symbol ${spelled("pad_token") ?? "<pad>"} in the vocabulary`);
  if (symbols.length > vocabularySize)
    throw vocabulary.fail(`expected numbers below vocab_size (${vocabularySize}), got ${symbols.length - 1}`);
  return {
    symbols,
    blank,
    wordDelimiter: spelled("word_delimiter_token") ?? "|",
    wordSeparator: tokenizer.textIfAny("replace_word_delimiter_char") ?? " ",
    lowerCase: tokenizer.flag("do_lower_case", false),
    normalizes,
  };
}

/** Returns the text of a special token. The file stores it as a text, or as an object with `content`. */
function contentOf(value: unknown): string | undefined {
  const content = typeof value === "object" && value !== null ? (value as { content?: unknown }).content : value;
  return typeof content === "string" ? content : undefined;
}

/**
 * Presents the weight of the positional convolution as one tensor. Checkpoints have its direction v and its norm g for
 * each element of the kernel: w = g · v / ‖v‖.
 *
 * Source: T. Salimans and D. Kingma, "Weight Normalization", 2016, equation 2.
 */
function withWholePositions(file: SafetensorsReader, source: WeightSource): WeightSource {
  const isNeutral = (key: string) => key.endsWith("masked_spec_embed") || (source.isNeutral?.(key) ?? false);
  const norm = /^(.*pos_conv_embed\.conv)\.(?:parametrizations\.weight\.original0|weight_g)$/;
  const g = source.names.find((name) => norm.test(name));
  if (g === undefined) return { ...source, isNeutral };
  const v = g.replace(/original0$/, "original1").replace(/weight_g$/, "weight_v");
  const whole = `${norm.exec(g)![1]}.weight`;
  return {
    ...source,
    isNeutral,
    names: [...source.names.filter((key) => key !== g && key !== v), whole],
    has: (key) => key === whole || source.has(key),
    // in float32, because a product of rounded weights would be rounded again
    describe: (key) =>
      key === whole ? { ...source.describe(v), dtype: "float32", isComputed: true } : source.describe(key),
    read: (key) => (key === whole ? wholeWeight(file.tensor(g), file.tensor(v)) : source.read(key)),
  };
}

function wholeWeight(norms: Tensor, directions: Tensor): Tensor {
  return tidy(() => {
    const [g, v] = tupleOf(
      [norms, directions].map((x) => toDType(x, "float64")),
      2,
    );
    const lengths = sqrt(sum(mul(v, v), { dim: [0, 1], keepdim: true }));
    return toDType(mul(v, div(g, lengths)), "float32");
  });
}

const positionsName = "encoder.pos_conv_embed.conv";

const block: Readonly<Record<string, string>> = {
  "attention.query": "attention.q_proj",
  "attention.key": "attention.k_proj",
  "attention.value": "attention.v_proj",
  "attention.output": "attention.out_proj",
  attentionNorm: "layer_norm",
  "feedForward.up": "feed_forward.intermediate_dense",
  "feedForward.down": "feed_forward.output_dense",
  feedForwardNorm: "final_layer_norm",
};

/** The names of WavLM's gates of distances in a block. */
const gates: typeof block = {
  "attention.distanceGate.projection": "attention.gru_rel_pos_linear",
  "attention.distanceGate.factors": "attention.gru_rel_pos_const",
};

/** Returns the place of every layer with weights. */
function placesOf(description: Wav2Vec2Description): Place[] {
  const { architecture, convolutions, convolutionNorm, projectionNorm, layers, distances, classifier } = description;
  const names = distances ? { ...block, ...gates } : block;
  const place = (path: string, name: string): Place => ({ path, names: [`${architecture}.${name}`] });
  return [
    ...convolutions.flatMap((_, index) => {
      const name = `feature_extractor.conv_layers.${index}`;
      const hasNorm = convolutionNorm === "layer" || index === 0;
      const norm = hasNorm ? [place(`convolutions.${index}.norm`, `${name}.layer_norm`)] : [];
      return [place(`convolutions.${index}.convolution`, `${name}.conv`), ...norm];
    }),
    ...(projectionNorm ? [place("projectionNorm", "feature_projection.layer_norm")] : []),
    place("projection", "feature_projection.projection"),
    place("positions.convolution", positionsName),
    ...(distances ? [place("distanceEmbedding", "encoder.layers.0.attention.rel_attn_embed")] : []),
    place("norm", "encoder.layer_norm"),
    ...Array.from({ length: layers }, (_, index) =>
      Object.entries(names).map(([path, name]) => ({
        ...place(`blocks.${index}.${path}`, `encoder.layers.${index}.${name}`),
        ...(path.endsWith("factors") && { change: { kind: "reshaped" } as const }),
      })),
    ).flat(),
    ...(classifier?.weighted
      ? [{ path: "layerWeights", names: ["layer_weights"], change: { kind: "reshaped" } as const }]
      : []),
    ...(classifier ? [{ path: "projector", names: ["projector"] }] : []),
    { path: "head", names: [classifier ? "classifier" : "lm_head"] },
  ];
}
