/** Converts a `config.json` of an encoder-decoder model to a description. */
import type { FeedForwardDescription } from "../../decoder/description.ts";
import type {
  EmbeddingsDescription,
  EncoderAttentionDescription,
  EncoderDescription,
  HeadDescription,
  PositionsDescription,
} from "../../encoder/description.ts";
import type { EncoderLabels } from "../../encoder/labels.ts";
import type { ClassifierDescription } from "../../encoder_decoder/classifier.ts";
import type { EncoderDecoderDescription } from "../../encoder_decoder/description.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import { encoderActivation, encoderActivations } from "../encoder/activations.ts";
import { labelsOf, namesOf } from "../encoder/heads.ts";
import type { Settings } from "../settings.ts";
import { type EncoderDecoderName, type EncoderDecoderRow, encoderDecoderFields, rowOf } from "./architectures.ts";

/** Far more layers than any model has. */
const MOST_LAYERS = 65_536;
/** T5's scores depend only on distances, so that texts may have any length. */
const ANY_LENGTH = 65_536;

/** Keys that have no effect on results, besides those of all models. */
const withoutEffect: ReadonlySet<string> = new Set([
  "init_std",
  "initializer_factor",
  "encoder_layerdrop",
  "decoder_layerdrop",
  "n_positions",
  "num_hidden_layers",

  "output_past",
  "dense_act_fn",
  "is_gated_act",
  "scale_decoder_outputs",
  // distillation
  ...["replacing_rate", "save_step", "student_encoder_layers", "student_decoder_layers"],
  "normalize_before",
  "normalize_embedding",
  "add_bias_logits",
  "add_final_layer_norm",
  "static_position_embeddings",
  "extra_pos_embeddings",

  "force_bos_token_to_be_generated",
  "gradient_checkpointing",
  "classif_dropout",
  "hidden_size",
  "tokenizer_config",
]);

/** The ends of names of classes with the language model's head, or without a head. */
const generating = /(ForConditionalGeneration|Model)$/;

/** Whether a folder has the encoder alone. */
export const isEncoderAlone = (config: { readonly architectures?: unknown }): boolean =>
  Array.isArray(config.architectures) && /EncoderModel$/.test(String(config.architectures[0]));

/** Facts about a checkpoint that its config does not have. */
export interface Stored {
  /** Whether the encoder and the decoder have tables of token embeddings. */
  readonly hasTables: boolean;
  /** Whether these tables differ from the shared one. */
  readonly hasOtherTables: boolean;
  /** Whether the head's weight differs from the token embedding. */
  readonly hasHead: boolean;
  /** Whether there is a bias of the logits. */
  readonly hasLogitsBias: boolean;
}

/**
 * Returns the description of a model from the contents of a `config.json`.
 *
 * @throws {ArgumentError} `unsupportedConfig` and other codes for unsupported settings, which the error names.
 */
export function describeEncoderDecoder(
  name: EncoderDecoderName,
  settings: Settings,
  stored: Stored,
): EncoderDecoderDescription {
  const row = rowOf(name);
  const config = completed(name, settings);
  checkClass(config);
  const width = config.whole("d_model");
  const saysTied = config.flag("tie_word_embeddings");
  const paddingToken = config.wholeIfAny("pad_token_id", 0) ?? 0;
  const isScaled = row.headScale === "always" || (row.headScale === "ifTied" && saysTied);
  // T5's config often says that weights are not tied, although they are
  const isTied = row.t5 === true || saysTied;
  const part = (side: Side) => (row.t5 ? t5Part(name, row, config, side) : bartPart(name, row, config, side));
  return {
    architecture: name,
    encoder: part("encoder"),
    decoder: part("decoder"),
    paddingToken,
    separateEmbeddings: hasTwoTables(row, config) || stored.hasOtherTables || (!isTied && stored.hasTables),
    tied: isTied && !stored.hasHead,
    headScale: isScaled ? width ** -0.5 : undefined,
    logitsBias: stored.hasLogitsBias,
    startToken: config.wholeIfAny("decoder_start_token_id", 0) ?? config.wholeIfAny("bos_token_id", 0) ?? paddingToken,
    shiftsLast: row.shiftsLast === true,
  };
}

/** Returns the description of the encoder alone, as of `T5EncoderModel`. */
export function describeEncoderAlone(name: EncoderDecoderName, settings: Settings): EncoderDescription {
  const [row, config] = [rowOf(name), completed(name, settings)];
  return row.t5 ? t5Part(name, row, config, "encoder") : bartPart(name, row, config, "encoder");
}

type Side = "encoder" | "decoder";

/** Returns the settings with defaults. @throws {ArgumentError} `unsupportedConfig` for unknown keys, naming them. */
function completed(name: EncoderDecoderName, config: Settings): Settings {
  const fields = encoderDecoderFields[name];
  const isKnown = (key: string) =>
    Object.hasOwn(fields, key) || withoutEffect.has(key) || hasNoEffectAnywhere(key) || key.startsWith("forced_");
  checkKeys(config, isKnown, `is not a setting of ${name}`);
  const given = config.names
    .filter((key) => config.get(key) !== undefined)
    .map((key) => [key, config.get(key)] as const);
  return config.with(new Map<string, unknown>([...Object.entries(fields), ...given]));
}

/** Whether the config names a classifier of texts that reads the decoder's last state. */
export const isTextClassifier = ({ architectures: list }: { readonly architectures?: unknown }): boolean =>
  Array.isArray(list) && /^M?BartForSequenceClassification$/i.test(String(list[0]));

/** Returns the description of a classifier, and its labels. @throws {ArgumentError} for unsupported settings. */
export function describeClassifier(
  name: EncoderDecoderName,
  settings: Settings,
  stored: Stored,
): { readonly description: ClassifierDescription; readonly labels: EncoderLabels | undefined } {
  const described = describeEncoderDecoder(name, settings, stored);
  const { width } = described.decoder;
  const fallback = name === "bart" ? 3 : 2;
  const head: HeadDescription = {
    task: "classify",
    pooling: "last",
    dense: { width, activation: "tanh", bias: true, norm: false },
    outputs: namesOf(settings, fallback).length,
    bias: true,
    tied: false,
  };
  const endToken = completed(name, settings).whole("eos_token_id", 0);
  return { description: { ...described, head, endToken }, labels: labelsOf(settings, head, fallback) };
}

function checkClass(config: Settings): void {
  const list = config.get("architectures");
  const className = Array.isArray(list) ? list[0] : undefined;
  if (className !== undefined && !generating.test(String(className)) && !isTextClassifier({ architectures: list }))
    throw config.refused(
      "unsupportedHead",
      `expected a model that generates texts, such as …ForConditionalGeneration, or BART for classes of texts, got ` +
        `"${className}"`,
    );
  for (const [key, only] of [
    ["is_decoder", false],
    ["is_encoder_decoder", true],
  ] as const)
    if (config.flag(key) !== only)
      throw config.refused("unsupportedConfig", `expected ${key} to be ${only}, got ${!only}`);
}

function countOf(config: Settings, key: string): number {
  const count = config.whole(key);
  if (count > MOST_LAYERS) throw config.wrong(key, `at most ${MOST_LAYERS}`, count);
  return count;
}

/** Describes T5's encoder or decoder. */
function t5Part(name: EncoderDecoderName, row: EncoderDecoderRow, config: Settings, side: Side): EncoderDescription {
  const [width, heads] = [config.whole("d_model"), config.whole("num_heads")];
  const key =
    side === "decoder" && config.get("num_decoder_layers") !== undefined ? "num_decoder_layers" : "num_layers";
  const attention = { heads, headWidth: config.whole("d_kv"), bias: false, fused: false, scale: 1 };
  const rows = config.whole("relative_attention_num_buckets", 4);
  const longest = config.whole("relative_attention_max_distance");
  if (longest <= rows / 2) throw config.wrong("relative_attention_max_distance", `above ${rows / 2}`, longest);
  return {
    ...partOf(name, { config, width, count: countOf(config, key), attention, feedForward: t5FeedForward(config) }),
    contextLength: ANY_LENGTH,
    norm: { kind: "rmsNorm", eps: config.positive("layer_norm_epsilon"), bias: false },
    embeddings: { width, norm: false, tokenTypes: 0 },
    normPlace: "before",
    finalNorm: true,
    distances: { kind: "buckets", rows, heads, longest, perBlock: row.distancesPerBlock },
  };
}

/** `feed_forward_proj` is the name of an activation, or `gated-` and the name. `gated-gelu` is a tanh approximation. */
function t5FeedForward(config: Settings): FeedForwardDescription {
  const value = config.textIfAny("feed_forward_proj") ?? "";
  const [, gated, name = ""] = /^(gated-)?([^-]*)$/.exec(value) ?? [];
  const activation = value === "gated-gelu" ? "geluTanh" : known(name);
  if (activation === undefined || activation === "tanh")
    throw config.refused("unknownActivation", `feed_forward_proj "${value}" is not supported`);
  return { hidden: config.whole("d_ff"), activation, gated: gated !== undefined, bias: false };
}

const known = (name: string) => (Object.hasOwn(encoderActivations, name) ? encoderActivations[name] : undefined);

/** The encoder or the decoder of BART and its descendants. */
function bartPart(name: EncoderDecoderName, row: EncoderDecoderRow, config: Settings, side: Side): EncoderDescription {
  const [width, heads] = [config.whole("d_model"), config.whole(`${side}_attention_heads`)];
  if (width % heads !== 0) throw config.wrong("d_model", `a multiple of ${side}_attention_heads`, width);
  if (width % 2 !== 0) throw config.wrong("d_model", "an even number", width);
  const activation = encoderActivation(config, "activation_function");
  if (activation === "tanh") throw config.refused("unknownActivation", 'activation_function "tanh" is not supported');
  const feedForward = { hidden: config.whole(`${side}_ffn_dim`), activation, gated: false, bias: true } as const;
  const attention = { heads, headWidth: width / heads, bias: true, fused: false };
  const embeddings: EmbeddingsDescription = {
    width,
    norm: !row.noEmbeddingNorm,
    tokenTypes: 0,
    positions: positionsOf(row, config, width),
    scale: config.flag("scale_embedding") ? Math.sqrt(width) : undefined,
  };
  const part = partOf(name, { config, width, count: countOf(config, `${side}_layers`), attention, feedForward });
  const size = side === "decoder" && row.separateEmbeddings ? config.wholeIfAny("decoder_vocab_size") : undefined;
  return {
    ...part,
    embeddings,
    vocabularySize: (hasTwoTables(row, config) ? size : undefined) ?? part.vocabularySize,
    contextLength: config.whole("max_position_embeddings"),
    norm: { kind: "layerNorm", eps: 1e-5, bias: true },
    normPlace: row.normsBefore ? "before" : "after",
    finalNorm: row.normsBefore === true,
  };
}

/** Whether the config says that the encoder and the decoder have tables of token embeddings. */
const hasTwoTables = (row: EncoderDecoderRow, config: Settings): boolean =>
  row.separateEmbeddings === true && !config.flag("share_encoder_decoder_embeddings");

function positionsOf({ sinusoids }: EncoderDecoderRow, config: Settings, width: number): PositionsDescription {
  const count = config.whole("max_position_embeddings");
  if (sinusoids === undefined) return { count: count + 2, first: 2 };
  if (sinusoids === "paper") return { count, sinusoids: { steps: width / 2, rounded: false } };
  return { count, padding: config.whole("pad_token_id", 0), sinusoids: { steps: width / 2 - 1, rounded: true } };
}

interface Part {
  readonly config: Settings;
  readonly width: number;
  readonly count: number;
  readonly attention: EncoderAttentionDescription;
  readonly feedForward: FeedForwardDescription;
}

/** The fields of a description that all models share. */
function partOf(name: EncoderDecoderName, { config, width, count, attention, feedForward }: Part) {
  return {
    architecture: name,
    width,
    vocabularySize: config.whole("vocab_size"),
    layers: Array.from({ length: count }, () => ({ attentionNorm: true, attention, feedForward })),
    order: Array.from({ length: count }, (_, index) => index),
  };
}
