/** Reads the `config.json` of SAM 2 and 2.1, and names their weights. */
import type { Json } from "../../../../io/json.ts";
import type { HieraDescription, HieraStageDescription, Sam2Description } from "../../vision/sam/description.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import { encoderActivation } from "../encoder/activations.ts";
import type { Place } from "../names.ts";
import type { Settings } from "../settings.ts";
import { decoderOf, decoderPlaces, partOf, place } from "./sam.ts";

type Fields = Readonly<Record<string, Json>>;

/** The fields of each part, with the defaults of `transformers` 5.23.0. */
const backboneFields = {
  hidden_size: 96,
  num_attention_heads: 1,
  num_channels: 3,
  image_size: [1024, 1024],
  patch_stride: [4, 4],
  patch_kernel_size: [7, 7],
  patch_padding: [3, 3],
  query_stride: [2, 2],
  num_query_pool_stages: 3,
  window_positional_embedding_background_size: [7, 7],
  blocks_per_stage: [1, 2, 7, 2],
  mlp_ratio: 4,
  embed_dim_per_stage: [96, 192, 384, 768],
  num_attention_heads_per_stage: [1, 2, 4, 8],
  hidden_act: "gelu",
  window_size_per_stage: [8, 4, 14, 7],
  global_attention_blocks: [5, 7, 9],
  layer_norm_eps: 1e-6,
} as const satisfies Fields;
const visionFields = {
  backbone_config: null,
  backbone_channel_list: [768, 384, 192, 96],
  num_feature_levels: 3,
  backbone_feature_sizes: null,
  fpn_hidden_size: 256,
  fpn_kernel_size: 1,
  fpn_stride: 1,
  fpn_padding: 0,
  fpn_top_down_levels: [2, 3],
} as const satisfies Fields;
const promptFields: Fields = { hidden_size: 256, image_size: 1024, patch_size: 16, num_point_embeddings: 4 };
const decoderFields: Fields = {
  hidden_size: 256,
  mlp_dim: 2048,
  num_hidden_layers: 2,
  num_attention_heads: 8,
  num_multimask_outputs: 3,
  attention_downsample_rate: 2,
  iou_head_depth: 3,
  iou_head_hidden_dim: 256,
  dynamic_multimask_via_stability: true,
  dynamic_multimask_stability_delta: 0.05,
  dynamic_multimask_stability_thresh: 0.98,
};

/** Keys that have no effect on masks from points and boxes. The norms of the decoder have PyTorch's default eps. */
const notes: ReadonlySet<string> = new Set(["mask_input_channels", "scale", "hidden_act", "layer_norm_eps"]);

/** Keys of files for videos. */
const ofVideos =
  /^(memory_|mask_downsampler_|num_maskmem$|image_size$|sigmoid_|enable_|multimask_|max_|rope_parameters$)/;

/** Reads the description. @throws {FileFormatError} @throws {ArgumentError} for unsupported settings */
export function describeSam2(given: Settings): Sam2Description {
  const isPart = (key: string) =>
    ["vision_config", "prompt_encoder_config", "mask_decoder_config"].includes(key) ||
    ofVideos.test(key) ||
    hasNoEffectAnywhere(key);
  checkKeys(given, isPart, "is not a setting of sam2");
  const read = (config: Settings, key: string, fields: Fields) => partOf(config, key, fields, notes, "sam2");
  const vision = read(given, "vision_config", visionFields);
  const backbone = read(vision, "backbone_config", backboneFields);
  const prompts = read(given, "prompt_encoder_config", promptFields);
  const decoder = read(given, "mask_decoder_config", decoderFields);
  const encoder = encoderOf(backbone);
  const [image, patch] = [prompts.whole("image_size"), prompts.whole("patch_size")];
  const width = vision.whole("fpn_hidden_size");
  checkSizes(backbone, encoder, image);
  checkParts({ vision, backbone, prompts, decoder }, encoder, { image, width });
  const sums = wholesOf(vision, "fpn_top_down_levels", 0);
  if (sums.some((at) => at < encoder.stages.length - 1 && encoder.stages[at + 1].pool !== 2))
    throw vision.wrong("fpn_top_down_levels", "indices of stages after which the next stage halves the grid", sums);
  return {
    architecture: "sam2",
    channels: backbone.whole("num_channels"),
    image,
    width,
    encoder,
    side: image / patch,
    neck: { kernel: vision.whole("fpn_kernel_size"), padding: vision.whole("fpn_padding", 0), sums },
    decoder: decoderOf(decoder, width, true),
    stability: decoder.flag("dynamic_multimask_via_stability")
      ? {
          delta: decoder.number("dynamic_multimask_stability_delta"),
          threshold: decoder.number("dynamic_multimask_stability_thresh"),
        }
      : null,
  };
}

/** Checks that the parts match each other. @throws {FileFormatError} @throws {ArgumentError} `unsupportedConfig` */
function checkParts(
  { vision, backbone, prompts, decoder }: Readonly<Record<"vision" | "backbone" | "prompts" | "decoder", Settings>>,
  { patch, stages }: HieraDescription,
  { image, width }: Pick<Sam2Description, "image" | "width">,
): void {
  const channels = stages.map((stage) => stage.width).toReversed();
  // the embedding has the grid of the third stage
  const stride = stages.slice(0, 3).reduce((product, { pool }) => product * pool, patch.stride);
  const side = image / stride;
  for (const [part, key, expected] of [
    [prompts, "hidden_size", width],
    [decoder, "hidden_size", width],
    [vision, "num_feature_levels", 3],
    [vision, "fpn_stride", 1],
    [vision, "backbone_channel_list", channels],
    [prompts, "num_point_embeddings", 4],
    [prompts, "patch_size", stride],
    [backbone, "hidden_size", stages[0].width],
    [
      vision,
      "backbone_feature_sizes",
      vision.get("backbone_feature_sizes") && [4, 2, 1].map((by) => [by * side, by * side]),
    ],
  ] as const)
    if (JSON.stringify(part.get(key)) !== JSON.stringify(expected))
      throw part.wrong(key, `${JSON.stringify(expected)}, to match the other parts`, part.get(key));
  if (width % 8 !== 0) throw vision.wrong("fpn_hidden_size", "a multiple of 8", width);
  const layers = decoder.whole("num_hidden_layers");
  if (layers > 2)
    throw decoder.refused(
      "unsupportedConfig",
      `expected mask_decoder_config.num_hidden_layers to be 1 or 2, got ${layers}`,
    );
}

/** Returns a list of whole numbers. */
function wholesOf(config: Settings, key: string, least = 1): number[] {
  const value = config.get(key);
  if (Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= least)) return [...value];
  throw config.wrong(key, `a list of whole numbers of at least ${least}`, value);
}

/** Returns the size of a square: a number, or two equal ones. */
function sideOf(config: Settings, key: string, least = 1): number {
  if (!Array.isArray(config.get(key))) return config.whole(key, least);
  const [rows, columns, ...others] = wholesOf(config, key, least);
  if (rows !== undefined && rows === columns && others.length === 0) return rows;
  throw config.refused("unsupportedConfig", `expected ${config.nameOf(key)} to be two equal numbers`);
}

function encoderOf(config: Settings): HieraDescription {
  const layers = wholesOf(config, "blocks_per_stage");
  const [widths, heads, windows] = (
    ["embed_dim_per_stage", "num_attention_heads_per_stage", "window_size_per_stage"] as const
  ).map((key) => {
    const list = wholesOf(config, key);
    if (list.length === layers.length) return list;
    throw config.wrong(key, `a list of ${layers.length} numbers, one for each of blocks_per_stage`, list);
  }) as [number[], number[], number[]];
  if (layers.length < 3) throw config.wrong("blocks_per_stage", "a list of at least 3 numbers", layers);
  const [pool, pools] = [sideOf(config, "query_stride"), config.whole("num_query_pool_stages", 0)];
  const stages = layers.map((count, at): HieraStageDescription => {
    if (widths[at] % heads[at] !== 0)
      throw config.wrong("embed_dim_per_stage", "multiples of num_attention_heads_per_stage", widths);
    const isPooled = at > 0 && at <= pools;
    return {
      width: widths[at],
      layers: count,
      heads: heads[at],
      window: windows[at],
      pool: isPooled ? pool : 1,
    };
  });
  const activation = encoderActivation(config, "hidden_act");
  if (activation === "tanh") throw config.wrong("hidden_act", "gelu, relu or silu", activation);
  return {
    patch: {
      size: sideOf(config, "patch_kernel_size"),
      stride: sideOf(config, "patch_stride"),
      padding: sideOf(config, "patch_padding", 0),
    },
    positions: sideOf(config, "window_positional_embedding_background_size"),
    stages,
    activation,
    unlimited: wholesOf(config, "global_attention_blocks", 0),
    ratio: config.positive("mlp_ratio"),
    eps: config.positive("layer_norm_eps"),
  };
}

/** Checks that grids and windows are pooled to whole ones. @throws {ArgumentError} `unsupportedConfig` */
function checkSizes(config: Settings, { patch, stages, unlimited }: HieraDescription, image: number): void {
  const fail = (message: string) => config.refused("unsupportedConfig", `expected ${message}`);
  if (sideOf(config, "image_size") !== image)
    throw config.wrong("image_size", `${image}, to match prompt_encoder_config`, config.get("image_size"));
  let side = Math.floor((image + 2 * patch.padding - patch.size) / patch.stride) + 1;
  if (side * patch.stride !== image) throw fail(`patches to cover images of ${image} pixels, got ${side} patches`);
  if (side % stages[0].window !== 0)
    throw fail(`window_size_per_stage[0] to divide ${side}, the number of patches, got ${stages[0].window}`);
  let block = 0;
  for (const [at, { pool, width, layers }] of stages.entries()) {
    const before = stages[at - 1];
    if (pool > 1 && before) {
      if (side % pool !== 0) throw fail(`query_stride to divide the grid of ${side} rows, got ${pool}`);
      if (!unlimited.includes(block) && before.window % pool !== 0)
        throw fail(`query_stride to divide window_size_per_stage[${at - 1}], got ${before.window}`);
      if (before.width === width)
        throw fail(`embed_dim_per_stage[${at}] to differ from the stage before, got ${width}`);
    }
    if ((at === 1 || at === 2) && pool !== 2)
      throw fail(`query_stride to be 2 and num_query_pool_stages to be at least 2, got ${pool} in stage ${at}`);
    side /= pool;
    block += layers;
  }
}

const reshaped = { kind: "reshaped" } as const;

/** Returns the place of every layer with weights. */
export function sam2Places(description: Sam2Description): Place[] {
  const [own, backbone] = ["vision_encoder.neck", "vision_encoder.backbone"];
  const { stages } = description.encoder;
  const count = stages.reduce((sum, { layers }) => sum + layers, 0);
  const changesWidth = new Set<number>();
  let first = 0;
  for (const [at, { layers, width }] of stages.entries()) {
    if (at > 0 && stages[at - 1].width !== width) changesWidth.add(first);
    first += layers;
  }
  return [
    place("encoder.patch", `${backbone}.patch_embed.projection`),
    { ...place("encoder.position", `${backbone}.pos_embed`), change: reshaped },
    { ...place("encoder.windowPosition", `${backbone}.pos_embed_window`), change: reshaped },
    ...Array.from({ length: count }, (_, at) => {
      const [path, name] = [`encoder.blocks.${at}`, `${backbone}.blocks.${at}`];
      return [
        place(`${path}.attentionNorm`, `${name}.layer_norm1`),
        place(`${path}.attention.queryKeyValue`, `${name}.attn.qkv`),
        place(`${path}.attention.output`, `${name}.attn.proj`),
        place(`${path}.feedForwardNorm`, `${name}.layer_norm2`),
        place(`${path}.feedForward.up`, `${name}.mlp.proj_in`),
        place(`${path}.feedForward.down`, `${name}.mlp.proj_out`),
        ...(changesWidth.has(at) ? [place(`${path}.projection`, `${name}.proj`)] : []),
      ];
    }).flat(),
    ...stages.map((_, at) => place(`neck.${at}`, `${own}.convs.${at}`)),
    { ...place("noMemory", "no_memory_embedding"), change: reshaped },
    place("frequencies", "shared_image_embedding.positional_embedding"),
    place("pointFrequencies", "prompt_encoder.shared_embedding.positional_embedding"),
    ...[0, 1, 2, 3].map((at) => ({
      ...place(`pointKinds.${at}`, "prompt_encoder.point_embed"),
      change: { kind: "heads", of: 4, first: at, count: 1, headWidth: 1 } as const,
    })),
    place("noPoint", "prompt_encoder.not_a_point_embed"),
    place("noMask", "prompt_encoder.no_mask_embed"),
    ...decoderPlaces(description),
  ];
}

/** Whether a weight is unused: those for mask prompts, and those for videos. */
export const isUnusedInSam2 = (name: string): boolean =>
  /^prompt_encoder\.mask_embed\.|^(memory_|mask_downsample|object_pointer_proj|temporal_positional_)/.test(name) ||
  /^(no_memory_positional_encoding|no_object_pointer|occlusion_spatial_embedding_parameter)/.test(name);
