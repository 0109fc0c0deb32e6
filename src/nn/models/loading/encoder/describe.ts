/** Converts a `config.json` of an encoder to a description. */
import type { FeedForwardDescription, RopeDescription } from "../../decoder/description.ts";
import { isRelative } from "../../decoder/rotation.ts";
import type {
  EncoderAttentionDescription,
  EncoderDescription,
  EncoderLayerDescription,
} from "../../encoder/description.ts";
import type { EncoderLabels } from "../../encoder/labels.ts";
import { checkKeys } from "../config_fields.ts";
import { kindsOfLayers, slides } from "../layer_types.ts";
import { ropeOf } from "../rope_settings.ts";
import { Settings } from "../settings.ts";
import { alibiSlopes } from "../unrotated.ts";
import { activationKey, encoderActivation } from "./activations.ts";
import { type EncoderArchitecture, type EncoderName, encoderRow } from "./architectures.ts";
import { completedEncoder } from "./config_fields.ts";
import { headOf, labelsOf } from "./heads.ts";

/** An upper bound, far above any model. */
const MOST_LAYERS = 65_536;

/** The encoder that a file describes. */
export interface DescribedEncoder {
  readonly name: EncoderName;
  readonly description: EncoderDescription;
  readonly labels: EncoderLabels | undefined;
}

/**
 * Returns the description of an encoder from the contents of a `config.json`.
 *
 * @throws {ArgumentError} `unsupportedConfig` and other codes for unsupported settings, which the error names.
 */
export function describeEncoder(name: EncoderName, settings: Settings): DescribedEncoder {
  const config = completedEncoder(name, settings);
  for (const key of ["is_decoder", "add_cross_attention"])
    if (config.flag(key)) throw config.refused("unsupportedConfig", `expected ${key} to be false, got true`);
  const positionType = config.textIfAny("position_embedding_type") ?? "absolute";
  const only = encoderRow(name).positions === "alibi" ? "alibi" : "absolute";
  if (encoderRow(name).positions !== "rotary" && positionType !== only)
    throw config.refused(
      "unsupportedConfig",
      `expected position_embedding_type to be "${only}", the only supported value, got "${positionType}"`,
    );
  const description = describe(name, config);
  const head = headOf(name, config, description);
  return { name, description: { ...description, head }, labels: head && labelsOf(config, head) };
}

/** @internal For tests: as {@link describeEncoder}, from an object. */
export const describeEncoderConfig = (operation: string, name: EncoderName, config: object): DescribedEncoder =>
  describeEncoder(name, new Settings(undefined, new Map(Object.entries(config)), "", operation));

/** The names of sizes in a config. */
interface Sizes {
  readonly width: number;
  readonly heads: number;
  readonly headWidth: number;
  readonly hidden: number;
  readonly count: number;
}

function sizesOf(name: EncoderName, config: Settings): Sizes {
  const isShort = name === "distilbert";
  const names = isShort
    ? { width: "dim", heads: "n_heads", hidden: "hidden_dim", count: "n_layers" }
    : { width: "hidden_size", heads: "num_attention_heads", hidden: "intermediate_size", count: "num_hidden_layers" };
  const [width, heads, hidden] = [config.whole(names.width), config.whole(names.heads), config.whole(names.hidden)];
  const count = config.whole(names.count);
  if (count > MOST_LAYERS) throw config.wrong(names.count, `at most ${MOST_LAYERS}`, count);
  const given = config.wholeIfAny("head_dim");
  if (given === undefined && width % heads !== 0)
    throw config.wrong(names.width, `a multiple of ${names.heads}`, width);
  const headWidth = given ?? width / heads;
  if (encoderRow(name).positions === "rotary" && headWidth % 2 !== 0)
    throw config.wrong(given === undefined ? names.heads : "head_dim", "such that heads have an even size", heads);
  return { width, heads, headWidth, hidden, count };
}

function describe(name: EncoderName, config: Settings): EncoderDescription {
  const row = encoderRow(name);
  const sizes = sizesOf(name, config);
  const { width } = sizes;
  const { layers, order, groupSize } = row.shared
    ? groupsOf(name, row, config, sizes)
    : eachOf(name, row, config, sizes);
  const positions = positionsOf(row, config);
  const eps = epsOf(name, config);
  const length = config.whole("max_position_embeddings");
  return {
    architecture: name,
    vocabularySize: config.whole("vocab_size"),
    width,
    order,
    groupSize,
    layers,
    contextLength: positions?.padding === undefined ? length : length - positions.padding - 1,
    norm: { kind: "layerNorm", eps, bias: name === "modernbert" ? config.flag("norm_bias") : true },
    embeddings: {
      width: embeddingWidth(row, config, width),
      norm: !row.noEmbeddingNorm,
      positions,
      taskTypes: row.taskTypes && config.flag("use_task_id") ? config.whole("task_type_vocab_size") : undefined,
      tokenTypes: row.noTokenTypes ? 0 : config.whole("type_vocab_size", row.optionalTokenTypes ? 0 : 1),
      projection: projectionOf(row, config, width),
    },
    normPlace: row.normsBefore ? "before" : "after",
    finalNorm: row.normsBefore !== undefined,
    distances: distancesOf(row, config, sizes),
  };
}

/** DistilBERT's norms have a fixed eps. */
function epsOf(name: EncoderName, config: Settings): number {
  if (name === "distilbert") return 1e-12;
  return config.positive(name === "modernbert" ? "norm_eps" : "layer_norm_eps");
}

function positionsOf(row: EncoderArchitecture, config: Settings) {
  if (row.positions === "rotary" || row.positions === "alibi") return undefined;
  if (row.positions === "ifConfigured" && !config.flag("position_biased_input")) return undefined;
  const count = config.whole("max_position_embeddings");
  if (row.positions !== "afterPadding") return { count };
  const padding = row.padding ?? config.whole("pad_token_id", 0);
  if (count <= padding + 1) throw config.wrong("max_position_embeddings", `at least ${padding + 2}`, count);
  return { count, padding };
}

const embeddingWidth = (row: EncoderArchitecture, config: Settings, width: number): number =>
  row.factorized === undefined ? width : (config.wholeIfAny("embedding_size") ?? width);

function projectionOf(row: EncoderArchitecture, config: Settings, width: number) {
  if (row.factorized === undefined) return undefined;
  const isBefore = row.factorized === "ifNarrowerBeforeNorm";
  if (row.factorized !== "always" && embeddingWidth(row, config, width) === width) return undefined;
  return isBefore ? ({ place: "before", bias: false } as const) : ({ place: "after", bias: true } as const);
}

/** Blocks with separate weights. */
function eachOf(name: EncoderName, row: EncoderArchitecture, config: Settings, sizes: Sizes) {
  const layers = Array.from({ length: sizes.count }, (_, index) => layerOf(name, row, config, sizes, index));
  return { layers, order: layers.map((_, index) => index), groupSize: undefined };
}

/**
 * ALBERT's groups of blocks: block i belongs to group ⌊i / (blocks / groups)⌋, and applies all of the group's blocks.
 */
function groupsOf(name: EncoderName, row: EncoderArchitecture, config: Settings, sizes: Sizes) {
  const [groups, inner] = [config.whole("num_hidden_groups"), config.whole("inner_group_num")];
  const layers = Array.from({ length: groups * inner }, (_, index) => layerOf(name, row, config, sizes, index));
  const order = Array.from({ length: sizes.count }, (_, index) => Math.trunc(index / (sizes.count / groups)));
  const blocks = order.flatMap((group) => Array.from({ length: inner }, (_, at) => group * inner + at));
  return { layers, order: blocks, groupSize: inner };
}

function layerOf(
  name: EncoderName,
  row: EncoderArchitecture,
  config: Settings,
  sizes: Sizes,
  index: number,
): EncoderLayerDescription {
  return {
    attentionNorm: !(row.normsBefore === true && index === 0),
    attention: attentionOf(row, config, sizes, index),
    feedForward: feedForwardOf(name, row, config, sizes),
  };
}

function attentionOf(
  row: EncoderArchitecture,
  config: Settings,
  { heads, headWidth, count }: Sizes,
  index: number,
): EncoderAttentionDescription {
  const isLocal = row.windows === true && isLocalBlock(config, count, index);
  const bias = row.attentionBias === "ifConfigured" ? config.flag("attention_bias") : (row.attentionBias ?? true);
  return {
    heads,
    headWidth,
    bias,
    fused: row.fused === true,
    biases: row.headRows ? { key: false } : undefined,
    window: isLocal ? Math.floor(config.whole("local_attention") / 2) : undefined,
    alibi: row.positions === "alibi" ? alibiSlopes(heads) : undefined,
    rope: row.positions === "rotary" ? ropeFor(row, config, headWidth, isLocal) : undefined,
    ...(row.distances === "disentangled" && projectionsOf(row, config, headWidth)),
  };
}

/** Whether a block of ModernBERT has local attention. @throws {FileFormatError} for a list of another length. */
const isLocalBlock = (config: Settings, count: number, index: number): boolean =>
  config.get("layer_types") === undefined
    ? index % config.whole("global_attn_every_n_layers") !== 0
    : slides(config, count, index);

/** The rotation of a block. ModernBERT has one for each kind of layer. */
function ropeFor(row: EncoderArchitecture, config: Settings, headWidth: number, isLocal: boolean): RopeDescription {
  const context = { config, row: { localBase: row.windows === true }, headWidth };
  const [older, all] = [config.inner("rope_scaling"), config.inner("rope_parameters")];
  const rope = row.windows
    ? twoRotations(config, { ...context, isLocal, older, all })
    : ropeOf(older?.names.length ? older : all, { ...context, base: () => config.positive("rope_theta") });
  if (isRelative(rope)) return rope;
  const key = older?.names.length ? "rope_scaling" : "rope_parameters";
  throw config.refused(
    "unknownScaling",
    `expected a rotation in ${key} that does not depend on the text's length, got rope_type "${rope.scaling?.type}"`,
  );
}

interface TwoRotations extends Omit<Parameters<typeof ropeOf>[1], "base"> {
  readonly isLocal: boolean;
  readonly older: Settings | undefined;
  readonly all: Settings | undefined;
}

function twoRotations(config: Settings, { isLocal, older, all, ...context }: TwoRotations): RopeDescription {
  if (all) checkKeys(all, (key) => key in kindsOfLayers, "is not a layer type");
  const nested = all?.inner(isLocal ? "sliding_attention" : "full_attention");
  const base = () => config.positive(isLocal ? "local_rope_theta" : "global_rope_theta");
  const before = nested?.entries() ?? [["rope_type", "default"]];
  return ropeOf(older?.with(new Map([...before, ...older.entries()])) ?? nested, { ...context, base });
}

/** Returns DeBERTa's products with distances, and the factor of the scores, which depends on the number of products. */
function projectionsOf(
  row: EncoderArchitecture,
  config: Settings,
  headWidth: number,
): Partial<EncoderAttentionDescription> {
  const types = distanceTypes(config);
  const [ofKeys, ofQueries] = [types.includes("c2p"), types.includes("p2c")];
  const scale = 1 / Math.sqrt(headWidth * (1 + Number(ofKeys) + Number(ofQueries)));
  if (!config.flag("relative_attention")) return { scale };
  const keyBias = row.headRows ? false : undefined;
  return { scale, distances: { ofKeys, ofQueries, shared: config.flag("share_att_key", false), keyBias } };
}

function distanceTypes(config: Settings): string[] {
  const value = config.get("pos_att_type") ?? [];
  const types =
    typeof value === "string"
      ? value
          .toLowerCase()
          .split("|")
          .map((type) => type.trim())
      : value;
  const isKnown = (type: unknown) => type === "c2p" || type === "p2c";
  if (Array.isArray(types) && types.every(isKnown)) return types;
  throw config.wrong("pos_att_type", "a list of c2p and p2c", value);
}

function distancesOf(row: EncoderArchitecture, config: Settings, { heads, width, headWidth }: Sizes) {
  if (row.distances === undefined) return undefined;
  if (row.distances === "buckets")
    return { kind: "buckets", rows: config.whole("relative_attention_num_buckets", 32), count: 32, heads } as const;
  const onlyWhole: readonly (readonly [key: string, only: number])[] = [
    ["conv_kernel_size", 0],
    ["attention_head_size", headWidth],
    ["pooler_hidden_size", width],
  ];
  for (const [key, only] of onlyWhole)
    if ((config.wholeIfAny(key, 0) ?? only) !== only)
      throw config.refused(
        "unsupportedConfig",
        `expected ${key} to be ${only}, the only supported value, got ${config.get(key)}`,
      );
  if (!config.flag("relative_attention")) return undefined;
  const positive = (key: string) => {
    const value = config.numberIfAny(key) ?? -1;
    return value > 0 ? config.whole(key) : undefined;
  };
  const longest = positive("max_relative_positions") ?? config.whole("max_position_embeddings");
  const count = positive("position_buckets");
  const norms = (config.textIfAny("norm_rel_ebd") ?? "none")
    .toLowerCase()
    .split("|")
    .map((type) => type.trim());
  return {
    kind: "disentangled" as const,
    span: count ?? longest,
    norm: norms.includes("layer_norm"),
    buckets: count === undefined ? undefined : { count, longest },
  };
}

/** The activation of Jina's feed-forward, regardless of `hidden_act`. */
function gateOf(config: Settings): FeedForwardDescription["activation"] {
  const type = config.textIfAny("feed_forward_type");
  if (type === "geglu") return "gelu";
  if (type === "reglu") return "relu";
  throw config.wrong("feed_forward_type", "geglu or reglu", type);
}

function feedForwardOf(
  name: EncoderName,
  { feedForward }: EncoderArchitecture,
  config: Settings,
  { hidden }: Sizes,
): FeedForwardDescription {
  if (feedForward === "gatedDownBias")
    return { hidden, activation: gateOf(config), gated: true, fused: true, bias: false, downBias: true };
  const key = activationKey(name);
  const activation = encoderActivation(config, key);
  if (activation === "tanh") throw config.refused("unknownActivation", `${key} "tanh" is not supported`);
  const isModern = feedForward === "gatedFused";
  return {
    hidden,
    activation,
    gated: feedForward !== undefined,
    bias: feedForward === undefined || (isModern && config.flag("mlp_bias")),
    ...(feedForward === "gatedUpGate" && { downBias: true, fused: "upGate" as const }),
    ...(isModern && { fused: true }),
  };
}
