/** Vision-language models with an image encoder, a projector, and a language model of any supported architecture. */
import type { Json } from "../../../../io/json.ts";
import type { DecoderDescription } from "../../decoder/description.ts";
import type { VisionDescription } from "../../vision/description.ts";
import type {
  EncoderTowerDescription,
  ProjectorDescription,
  VisionLanguageDescription,
} from "../../vision_language/description.ts";
import { activationOf } from "../activations.ts";
import { type ArchitectureName, architectures } from "../architectures.ts";
import { checkKeys, completed, hasNoEffectAnywhere } from "../config_fields.ts";
import { ofText, unknownArchitecture } from "../hugging_face.ts";
import type { Settings } from "../settings.ts";
import { isVision, type VisionName, visionArchitectures } from "../vision/architectures.ts";
import { describeVision } from "../vision/describe.ts";

type Fields = Readonly<Record<string, Json>>;

/** An architecture with an image encoder. */
export interface EncoderFamily {
  /** The fields around the text and vision parts, with their defaults. */
  readonly fields: Fields;
  /** The field with the token of images. */
  readonly imageToken: string;
  /** The architecture of the language model if the text part has no `model_type`. */
  readonly text: ArchitectureName;
  /** The image encoder, and its defaults. Default: the `model_type` of the vision part. */
  readonly vision?: { readonly name: VisionName; readonly fields: Fields };
  /** Whether the config of the text part may also state that weights are tied. */
  readonly textTies?: boolean;
  /** Whether the tokens of an image attend to later ones of the same image. */
  readonly bidirectional?: boolean;
  readonly tower: (parts: Parts) => Omit<EncoderTowerDescription, "kind" | "encoder">;
}

/** Inputs of a projector's description. */
export interface Parts {
  readonly config: Settings;
  readonly encoder: VisionDescription;
  readonly text: DecoderDescription;
}

const idefics3 = {
  fields: { image_token_id: 128_257, scale_factor: 2, tie_word_embeddings: false, image_seq_len: null },
  imageToken: "image_token_id",
  text: "llama",
  vision: {
    name: "siglip_vision_model",
    fields: {
      hidden_size: 1152,
      intermediate_size: 3072,
      num_attention_heads: 16,
      image_size: 224,
      patch_size: 32,
      vision_use_head: false,
    },
  },
  tower: ({ config, encoder, text }) => {
    const size = config.whole("scale_factor");
    checkSquares(config, "scale_factor", encoder, size);
    const projector = { gather: { kind: "values", size }, bias: false, outputWidth: text.width } as const;
    return { skip: 0, projector };
  },
} as const satisfies EncoderFamily;

/** The architectures by the `model_type` of a `config.json`. */
export const encoderFamilies = {
  llava: {
    imageToken: "image_token_index",
    text: "llama",
    textTies: true,
    fields: {
      image_token_index: 32_000,
      image_token_id: null,
      image_seq_length: 576,
      projector_hidden_act: "gelu",
      vision_feature_select_strategy: "default",
      vision_feature_layer: -2,
      multimodal_projector_bias: true,
      tie_word_embeddings: false,
    },
    tower: ({ config, encoder, text }) => ({
      ...featuresOf(config, encoder),
      projector: {
        hidden: { width: text.width, activation: activationOf(config, "projector_hidden_act") },
        bias: config.flag("multimodal_projector_bias"),
        outputWidth: text.width,
      },
    }),
  },
  gemma3: {
    imageToken: "image_token_index",
    text: "gemma3_text",
    bidirectional: true,
    fields: {
      image_token_index: 262_144,
      mm_tokens_per_image: 256,
      boi_token_index: 255_999,
      eoi_token_index: 256_000,
      image_token_id: null,
      boi_token_id: null,
      eoi_token_id: null,
      tie_word_embeddings: true,
      image_seq_length: null,
    },
    tower: ({ config, encoder, text }) => ({ skip: 0, projector: gemmaProjector(config, encoder, text) }),
  },
  internvl: {
    imageToken: "image_token_id",
    text: "qwen2",
    fields: {
      image_token_id: 151_667,
      image_seq_length: 256,
      downsample_ratio: 0.5,
      projector_hidden_act: "gelu",
      vision_feature_layer: -1,
      vision_feature_select_strategy: "default",
      tie_word_embeddings: true,
    },
    vision: { name: "internvl_vision", fields: {} },
    tower: ({ config, encoder, text }) => {
      const { skip, blocks } = featuresOf(config, encoder);
      const size = Math.trunc(1 / config.positive("downsample_ratio"));
      if (size < 1) throw config.wrong("downsample_ratio", "a number of at most 1", config.get("downsample_ratio"));
      checkSquares(config, "downsample_ratio", encoder, size);
      return {
        skip,
        // if all blocks run, the final norm may follow them
        ...(blocks === encoder.layers.length ? {} : { blocks }),
        projector: {
          gather: { kind: "values", size },
          norm: { kind: "layerNorm", eps: 1e-5, bias: true },
          bias: true,
          hidden: { width: text.width, activation: activationOf(config, "projector_hidden_act") },
          outputWidth: text.width,
        },
      };
    },
  },
  idefics3: idefics3,
  smolvlm: idefics3,
} as const satisfies Readonly<Record<string, EncoderFamily>>;

/** Which states of the encoder are features. */
function featuresOf(config: Settings, { layers, patches }: VisionDescription): { skip: number; blocks?: number } {
  const layer = config.number("vision_feature_layer");
  const strategy = config.textIfAny("vision_feature_select_strategy");
  if (strategy !== "default" && strategy !== "full")
    throw config.wrong("vision_feature_select_strategy", "default or full", strategy);
  const blocks = layer < 0 ? layers.length + 1 + layer : layer;
  if (!Number.isInteger(layer) || blocks < 0 || blocks > layers.length)
    throw config.wrong("vision_feature_layer", `a whole number from ${-layers.length - 1} to ${layers.length}`, layer);
  const skip = strategy === "default" ? 1 : 0;
  if (patches.classToken && skip === 0)
    throw config.refused(
      "unsupportedConfig",
      'expected vision_feature_select_strategy to be "default" for an encoder with a class token, got "full"',
    );
  if (!patches.classToken && skip === 1)
    throw config.refused(
      "unsupportedConfig",
      'expected vision_feature_select_strategy to be "full" for an encoder without a class token, got "default"',
    );
  return { skip, blocks };
}

/** Averages squares of adjacent patches, then applies a norm and a matrix. */
function gemmaProjector(config: Settings, encoder: VisionDescription, text: DecoderDescription): ProjectorDescription {
  const name = "mm_tokens_per_image";
  const side = Math.floor(Math.sqrt(config.whole(name)));
  const rows = encoder.patches.image[0] / encoder.patches.size[0];
  const size = Math.floor(rows / side);
  if (size < 1) throw config.wrong(name, `at most the number of patches, ${rows ** 2}`, side ** 2);
  checkSquares(config, name, encoder, size);
  const norm = { kind: "rmsNorm", eps: encoder.norm.eps } as const;
  return { gather: { kind: "mean", size }, norm, bias: false, outputWidth: text.width };
}

/** @throws {FileFormatError} unless patches are a square grid that divides into squares of `size` rows. */
function checkSquares(config: Settings, name: string, { patches }: VisionDescription, size: number): void {
  const [rows, columns] = patches.image.map((side, axis) => Math.floor(side / patches.size[axis]));
  if (rows === columns && rows % size === 0) return;
  throw config.wrong(name, `a number that divides the ${rows} x ${columns} patches of an image into squares`, size);
}

/** Keys in the configs of the parts that have no effect: settings of SmolVLM's training, and of image processors. */
const notes: ReadonlySet<string> = new Set([
  "perceiver_config",
  "resampler_config",
  "pixel_shuffle_factor",
  "qk_layer_norms",
  "use_resampler",
  "max_image_size",
  "size",
  "use_base_siglip",
  "do_image_splitting",
  "vocab_size",
  "projection_dim",
]);

/**
 * Returns the description of a model.
 *
 * @param isThere whether a checkpoint has a weight
 *
 * @throws {FileFormatError} @throws {ArgumentError} for unsupported settings.
 */
export function describeWithEncoder(
  name: string,
  family: EncoderFamily,
  given: Settings,
  isThere: (weight: RegExp) => boolean,
): VisionLanguageDescription {
  const parts = new Set(["text_config", "vision_config", "vocab_size", "ignore_index"]);
  const isKnown = (key: string) => Object.hasOwn(family.fields, key) || parts.has(key) || hasNoEffectAnywhere(key);
  checkKeys(given, isKnown, `is not a setting of ${name}`);
  const present = given.entries().filter(([, value]) => value !== null && value !== undefined);
  const config = given.with(new Map([...Object.entries(family.fields), ...present]));
  const text = textOf(family, config);
  const encoder = encoderOf(family, config, isThere);
  const other = family.imageToken.replace("_index", "_id");
  const tower = family.tower({ config, encoder, text });
  // the states after a given number of blocks are not normalized
  const isNormed = tower.blocks === undefined || encoder.finalNorm === "none";
  const finalNorm = isNormed ? encoder.finalNorm : "pooled";
  return {
    architecture: name,
    text,
    bidirectional: family.bidirectional,
    imageToken: config.wholeIfAny(other, 0) ?? config.whole(family.imageToken, 0),
    tower: { kind: "encoder", encoder: { ...encoder, finalNorm }, ...tower },
  };
}

function textOf(family: EncoderFamily, config: Settings): DecoderDescription {
  const text = config.inner("text_config") ?? config.with(new Map());
  const type = text.textIfAny("model_type") ?? family.text;
  if (!Object.hasOwn(architectures, type)) throw unknownArchitecture(config.path!, "text_config.model_type", type);
  const name = type as ArchitectureName;
  const settings = completed(
    name,
    text.with(
      without(
        text,
        text.names.filter((key) => notes.has(key) && key !== "vocab_size"),
      ),
    ),
  );
  const described = ofText(name, settings);
  const tied = config.flag("tie_word_embeddings") || (family.textTies === true && described.tied);
  return { ...described, tied };
}

const without = (settings: Settings, names: readonly string[]): Map<string, unknown> =>
  new Map(settings.entries().filter(([name]) => !names.includes(name)));

function encoderOf(
  { vision: row }: EncoderFamily,
  config: Settings,
  isThere: (weight: RegExp) => boolean,
): VisionDescription {
  const vision = config.inner("vision_config") ?? config.with(new Map());
  const type = row?.name ?? vision.textIfAny("model_type") ?? "siglip_vision_model";
  if (!isVision(type))
    throw unknownArchitecture(config.path!, "vision_config.model_type", type, Object.keys(visionArchitectures));
  const ignored = new Set([...notes, "architectures", "tie_word_embeddings"]);
  const kept = without(
    vision,
    vision.names.filter((key) => ignored.has(key) && !Object.hasOwn(visionArchitectures[type].fields, key)),
  );
  kept.delete("architectures");
  return describeVision(type, vision.with(new Map([...Object.entries(row?.fields ?? {}), ...kept])), isThere)
    .description;
}
