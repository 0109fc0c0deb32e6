/** Reads SAM's `config.json`, and names its weights. */
import { tupleOf } from "../../../../core/tuples.ts";
import type { Json } from "../../../../io/json.ts";
import type { FeedForwardDescription } from "../../decoder/description.ts";
import type {
  PromptedDescription,
  SamDecoderDescription,
  SamDescription,
  SamEncoderDescription,
} from "../../vision/sam/description.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import { encoderActivation } from "../encoder/activations.ts";
import type { Place } from "../names.ts";
import type { Settings } from "../settings.ts";

type Fields = Readonly<Record<string, Json>>;

/** The fields of each part, with the defaults of `transformers` 5.23.0. */
const parts = {
  vision_config: {
    hidden_size: 768,
    output_channels: 256,
    num_hidden_layers: 12,
    num_attention_heads: 12,
    num_channels: 3,
    image_size: 1024,
    patch_size: 16,
    hidden_act: "gelu",
    layer_norm_eps: 1e-6,
    qkv_bias: true,
    mlp_ratio: 4,
    mlp_dim: null,
    use_abs_pos: true,
    use_rel_pos: true,
    window_size: 14,
    num_pos_feats: 128,
    global_attn_indexes: [2, 5, 8, 11],
  },
  prompt_encoder_config: { hidden_size: 256, image_size: 1024, patch_size: 16, num_point_embeddings: 4 },
  mask_decoder_config: {
    hidden_size: 256,
    hidden_act: "relu",
    mlp_dim: 2048,
    num_hidden_layers: 2,
    num_attention_heads: 8,
    attention_downsample_rate: 2,
    num_multimask_outputs: 3,
    iou_head_depth: 3,
    iou_head_hidden_dim: 256,
    layer_norm_eps: 1e-6,
  },
} as const satisfies Readonly<Record<string, Fields>>;

/** Keys that have no effect on masks from points and boxes. */
const notes: ReadonlySet<string> = new Set([
  "mask_input_channels",
  "image_embedding_size",
  "scale",
  "hidden_act",
  "layer_norm_eps",
  "dropout",
  // in published files of SAM
  "intermediate_size",
  "projection_dim",
  "initializer_factor",
  "tie_word_embeddings",
]);

/** Reads the description. @throws {FileFormatError} @throws {ArgumentError} for unsupported settings */
export function describeSam(given: Settings): SamDescription {
  const isPart = (key: string) => Object.hasOwn(parts, key) || hasNoEffectAnywhere(key);
  checkKeys(given, isPart, "is not a setting of sam");
  const [vision, prompts, decoder] = tupleOf(
    Object.entries(parts).map(([key, fields]) => partOf(given, key, fields)),
    3,
  );
  const [image, patch, width] = [
    vision.whole("image_size"),
    vision.whole("patch_size"),
    vision.whole("output_channels"),
  ];
  for (const [part, key, expected] of [
    [prompts, "hidden_size", width],
    [decoder, "hidden_size", width],
    [prompts, "image_size", image],
    [prompts, "patch_size", patch],
    [vision, "num_pos_feats", width / 2],
    [prompts, "num_point_embeddings", 4],
  ] as const)
    if (part.whole(key) !== expected) throw part.wrong(key, `${expected}, to match the other parts`, part.get(key));
  if (width % 8 !== 0) throw vision.wrong("output_channels", "a multiple of 8", width);
  return {
    architecture: "sam",
    channels: vision.whole("num_channels"),
    image,
    patch,
    width,
    side: Math.floor(image / patch),
    encoder: encoderOf(vision),
    decoder: decoderOf(decoder, width),
  };
}

/** Reads a part of a config, with the defaults of `fields`. */
export function partOf(
  config: Settings,
  key: string,
  fields: Fields,
  others: ReadonlySet<string> = notes,
  name = "sam",
): Settings {
  const part = config.inner(key) ?? config.with(new Map());
  checkKeys(
    part,
    (own) => Object.hasOwn(fields, own) || others.has(own) || hasNoEffectAnywhere(own),
    `is not a setting of ${name}'s ${key}`,
  );
  const present = part.entries().filter(([, value]) => value !== null && value !== undefined);
  return part.with(new Map([...Object.entries(fields), ...present]));
}

function feedForwardOf(config: Settings, hidden: number): FeedForwardDescription {
  const activation = encoderActivation(config, "hidden_act");
  if (activation === "tanh") throw config.wrong("hidden_act", "gelu, relu or silu", activation);
  return { hidden, gated: false, activation, bias: true };
}

function encoderOf(config: Settings): SamEncoderDescription {
  const [width, heads] = [config.whole("hidden_size"), config.whole("num_attention_heads")];
  if (width % heads !== 0) throw config.wrong("hidden_size", "a multiple of num_attention_heads", width);
  const unlimited = config.get("global_attn_indexes");
  if (!Array.isArray(unlimited) || !unlimited.every((at) => Number.isSafeInteger(at)))
    throw config.wrong("global_attn_indexes", "a list of block indices", unlimited);
  const hidden = config.wholeIfAny("mlp_dim") ?? Math.trunc(width * config.positive("mlp_ratio"));
  return {
    width,
    heads,
    layers: config.whole("num_hidden_layers"),
    feedForward: feedForwardOf(config, hidden),
    bias: config.flag("qkv_bias"),
    eps: config.positive("layer_norm_eps"),
    unlimited,
    window: config.whole("window_size", 0),
    positions: config.flag("use_abs_pos"),
    distances: config.flag("use_rel_pos"),
  };
}

/** Reads the settings of a decoder of masks. Those of SAM 2 have further layers. */
export function decoderOf(config: Settings, width: number, isSecond = false): SamDecoderDescription {
  const [heads, reduction] = [config.whole("num_attention_heads"), config.whole("attention_downsample_rate")];
  if (width % (heads * reduction) !== 0)
    throw config.wrong("num_attention_heads", "a divisor of hidden_size / attention_downsample_rate", heads);
  return {
    heads,
    layers: config.whole("num_hidden_layers"),
    readsFiner: isSecond,
    // In transformers, blocks of SAM always halve their heads, and SAM 2 ignores hidden_act.
    reductions: [isSecond ? reduction : 2, reduction],
    eps: isSecond ? 1e-5 : config.positive("layer_norm_eps"),
    feedForward: isSecond
      ? { hidden: config.whole("mlp_dim"), gated: false, activation: "relu", bias: true }
      : feedForwardOf(config, config.whole("mlp_dim")),
    masks: config.whole("num_multimask_outputs"),
    scores: { width: config.whole("iou_head_hidden_dim"), layers: config.whole("iou_head_depth", 2) },
  };
}

export const place = (path: string, ...names: readonly string[]): Place => ({ path, names });

const attentionParts = {
  query: ["q_proj"],
  key: ["k_proj"],
  value: ["v_proj"],
  output: ["out_proj", "o_proj"], // SAM's name, then SAM 2's
} as const;

const attentionPlaces = (path: string, name: string): Place[] =>
  Object.entries(attentionParts).map(([part, names]) =>
    place(`${path}.${part}`, ...names.map((own) => `${name}.${own}`)),
  );

function encoderPlaces({ encoder }: SamDescription): Place[] {
  const own = "vision_encoder";
  return [
    place("encoder.patch", `${own}.patch_embed.projection`),
    ...(encoder.positions
      ? [{ ...place("encoder.position", `${own}.pos_embed`), change: { kind: "reshaped" } as const }]
      : []),
    ...Array.from({ length: encoder.layers }, (_, at) => {
      const [path, name] = [`encoder.blocks.${at}`, `${own}.layers.${at}`];
      return [
        place(`${path}.attentionNorm`, `${name}.layer_norm1`),
        place(`${path}.attention.queryKeyValue`, `${name}.attn.qkv`),
        place(`${path}.attention.output`, `${name}.attn.proj`),
        ...(encoder.distances
          ? [
              place(`${path}.attention.rows`, `${name}.attn.rel_pos_h`),
              place(`${path}.attention.columns`, `${name}.attn.rel_pos_w`),
            ]
          : []),
        place(`${path}.feedForwardNorm`, `${name}.layer_norm2`),
        place(`${path}.feedForward.up`, `${name}.mlp.lin1`),
        place(`${path}.feedForward.down`, `${name}.mlp.lin2`),
      ];
    }).flat(),
    place("encoder.projection", `${own}.neck.conv1`),
    place("encoder.projectionNorm", `${own}.neck.layer_norm1`),
    place("encoder.smoothing", `${own}.neck.conv2`),
    place("encoder.smoothingNorm", `${own}.neck.layer_norm2`),
  ];
}

/** Returns the places of the decoder of masks. */
export function decoderPlaces({ decoder }: PromptedDescription): Place[] {
  const own = "mask_decoder";
  const block = (at: number): Place[] => {
    const [path, name] = [`decoder.transformer.blocks.${at}`, `${own}.transformer.layers.${at}`];
    return [
      ...attentionPlaces(`${path}.attention`, `${name}.self_attn`),
      ...attentionPlaces(`${path}.toPlaces`, `${name}.cross_attn_token_to_image`),
      ...attentionPlaces(`${path}.toTokens`, `${name}.cross_attn_image_to_token`),
      ...["attentionNorm", "toPlacesNorm", "feedForwardNorm", "toTokensNorm"].map((norm, index) =>
        place(`${path}.${norm}`, `${name}.layer_norm${index + 1}`),
      ),
      place(`${path}.feedForward.up`, `${name}.mlp.lin1`, `${name}.mlp.proj_in`),
      place(`${path}.feedForward.down`, `${name}.mlp.lin2`, `${name}.mlp.proj_out`),
    ];
  };
  const head = (path: string, name: string, count: number): Place[] =>
    Array.from({ length: count }, (_, at) => {
      const layer = at === 0 ? "proj_in" : at === count - 1 ? "proj_out" : `layers.${at - 1}`;
      return place(`${path}.layers.${at}`, `${name}.${layer}`);
    });
  return [
    place("decoder.scoreToken", `${own}.iou_token`),
    place("decoder.maskTokens", `${own}.mask_tokens`),
    ...Array.from({ length: decoder.layers }, (_, at) => block(at)).flat(),
    ...attentionPlaces("decoder.transformer.last", `${own}.transformer.final_attn_token_to_image`),
    place("decoder.transformer.lastNorm", `${own}.transformer.layer_norm_final_attn`),
    place("decoder.upscale", `${own}.upscale_conv1`),
    place("decoder.upscaleNorm", `${own}.upscale_layer_norm`),
    place("decoder.enlarge", `${own}.upscale_conv2`),
    ...Array.from({ length: decoder.masks + 1 }, (_, at) =>
      head(`decoder.maskHeads.${at}`, `${own}.output_hypernetworks_mlps.${at}`, 3),
    ).flat(),
    ...head("decoder.scoreHead", `${own}.iou_prediction_head`, decoder.scores.layers),
    ...(decoder.readsFiner
      ? [
          place("decoder.presenceToken", `${own}.obj_score_token`),
          ...head("decoder.presenceHead", `${own}.pred_obj_score_head`, 3),
          place("decoder.fineProjection", `${own}.conv_s1`),
          place("decoder.finestProjection", `${own}.conv_s0`),
        ]
      : []),
  ];
}

/** Returns the place of every layer with weights. */
export const samPlaces = (description: SamDescription): Place[] => [
  ...encoderPlaces(description),
  place(
    "frequencies",
    "shared_image_embedding.positional_embedding",
    "prompt_encoder.shared_embedding.positional_embedding",
  ),
  ...[0, 1, 2, 3].map((at) => place(`pointKinds.${at}`, `prompt_encoder.point_embed.${at}`)),
  place("noPoint", "prompt_encoder.not_a_point_embed"),
  place("noMask", "prompt_encoder.no_mask_embed"),
  ...decoderPlaces(description),
];

/** Whether a weight is unused: mask prompts are not supported, and the frequencies are stored twice. */
export const isUnusedInSam = (name: string): boolean => /^prompt_encoder\.(mask_embed|shared_embedding)\./.test(name);
