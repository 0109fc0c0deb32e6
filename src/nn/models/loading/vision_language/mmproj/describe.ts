/**
 * Converts the metadata of an `mmproj` file to a description. llama.cpp's `convert_hf_to_gguf.py --mmproj` writes a
 * model's image encoder and projector to this GGUF file; the language model is in another file.
 *
 * Source: llama.cpp's conversion/ and tools/mtmd/clip.cpp, 2026.
 */
import { ArgumentError } from "../../../../../core/errors.ts";
import type { GgufReader } from "../../../../../io/gguf/file.ts";
import type { Json } from "../../../../../io/json.ts";
import type { DecoderDescription, LayerDescription } from "../../../decoder/description.ts";
import type {
  EncoderTowerDescription,
  PatchTowerDescription,
  VisionLanguageDescription,
} from "../../../vision_language/description.ts";
import { Settings } from "../../settings.ts";
import { describeVision } from "../../vision/describe.ts";
import { type EncoderFamily, encoderFamilies } from "../encoders.ts";
import { axesOf, qwenFamilies } from "../qwen.ts";
import { feedForwardNames } from "./names.ts";

/** The models, by `clip.projector_type`: their `model_type`, and the text of the image token. */
export const projectorTypes = {
  mlp: { family: "llava", token: "<image>" },
  gemma3: { family: "gemma3", token: "<image_soft_token>" },
  idefics3: { family: "idefics3", token: "<image>" },
  internvl: { family: "internvl", token: "<IMG_CONTEXT>" },
  qwen2vl_merger: { family: "qwen2_vl", token: "<|image_pad|>" },
  "qwen2.5vl_merger": { family: "qwen2_5_vl", token: "<|image_pad|>" },
  qwen3vl_merger: { family: "qwen3_vl", token: "<|image_pad|>" },
} as const;

type ProjectorType = keyof typeof projectorTypes;
type EncoderName = "llava" | "gemma3" | "idefics3" | "internvl";
type QwenName = "qwen2_vl" | "qwen2_5_vl" | "qwen3_vl";

/** Returns the settings of an mmproj file. Their keys omit `clip.`. */
export const mmprojSettings = (file: GgufReader, operation = "loadModel"): Settings => {
  const fields = Object.entries(file.metadata)
    .filter(([key]) => key.startsWith("clip."))
    .map(([key, { value }]) => [key.slice("clip.".length), typeof value === "bigint" ? Number(value) : value] as const);
  return new Settings(file.path, new Map(fields), "clip.", operation);
};

/** Returns the type of a projector. @throws {ArgumentError} `unknownProjector` */
export function projectorTypeOf(settings: Settings): ProjectorType {
  // the oldest files have no projector type
  const fallback = settings.flag("has_llava_projector", false) ? "mlp" : undefined;
  const type = settings.textIfAny("projector_type") ?? settings.textIfAny("vision.projector_type") ?? fallback;
  if (type !== undefined && Object.hasOwn(projectorTypes, type)) return type as ProjectorType;
  throw settings.refused(
    "unknownProjector",
    `expected clip.projector_type to be one of ${Object.keys(projectorTypes).join(", ")}, got ${JSON.stringify(type)}`,
  );
}

/**
 * Returns the description of a model whose parts are in two files.
 *
 * @param language the description of the language model in `text`
 *
 * @throws {FileFormatError} @throws {ArgumentError} for unsupported settings, and parts that do not fit.
 */
export function describeMmproj(
  text: GgufReader,
  file: GgufReader,
  language: DecoderDescription,
): VisionLanguageDescription {
  const settings = mmprojSettings(file);
  const type = projectorTypeOf(settings);
  const { family } = projectorTypes[type];
  const width = settings.wholeIfAny("vision.projection_dim", 0);
  // LLaVA's files have CLIP's width in this field
  const isFitting = width === undefined || width === language.width || family === "llava";
  if (!isFitting)
    throw new ArgumentError(
      "loadModel",
      "otherProjector",
      `expected features of the language model's width, ${language.width}, got ${width} in ${file.path}; ` +
        "use the mmproj file of this model",
    );
  const described = { architecture: family, imageToken: imageTokenOf(text, type) };
  if (isEncoderFamily(family)) {
    const bidirectional = family === "gemma3" ? true : undefined;
    return { ...described, text: language, bidirectional, tower: encoderTower(settings, file, family, language) };
  }
  return { ...described, text: withAxes(text, language, family), tower: patchTower(settings, file, family, language) };
}

const isEncoderFamily = (family: EncoderName | QwenName): family is EncoderName => !family.startsWith("qwen");

/** Returns the image token. If the tokenizer has none, returns the unknown token, which does not occur in text. */
export function imageTokenOf({ metadata, path }: GgufReader, type: ProjectorType): number {
  const tokens = metadata["tokenizer.ggml.tokens"]?.value;
  const found = Array.isArray(tokens) ? tokens.indexOf(projectorTypes[type].token) : -1;
  const unknown = metadata["tokenizer.ggml.unknown_token_id"]?.value;
  const token = found >= 0 ? found : unknown;
  if (typeof token === "number") return token;
  throw new ArgumentError(
    "loadModel",
    "otherTokenizer",
    `expected a tokenizer with the token ${projectorTypes[type].token} in ${path}, got none`,
  );
}

/** Describes an image encoder of CLIP, SigLIP or InternVL from the equivalent fields of `config.json`. */
function encoderTower(
  settings: Settings,
  file: GgufReader,
  family: EncoderName,
  text: DecoderDescription,
): EncoderTowerDescription {
  const kind = family === "internvl" ? family : file.has("v.class_embd") ? "clip" : "siglip";
  const [image, patch] = [settings.whole("vision.image_size"), settings.whole("vision.patch_size")];
  const fields: Readonly<Record<string, Json>> = {
    image_size: image,
    patch_size: patch,
    hidden_size: settings.whole("vision.embedding_length"),
    intermediate_size: file.info(`${feedForwardNames(file)["feedForward.up"].replace("#", "0")}.bias`).shape[0],
    num_hidden_layers: settings.whole("vision.block_count"),
    num_attention_heads: settings.whole("vision.attention.head_count"),
    layer_norm_eps: settings.positive("vision.attention.layer_norm_epsilon"),
    hidden_act: activationOf(settings, family),
    ...(kind === "siglip" ? { vision_use_head: false } : {}),
    ...(kind === "internvl" ? internvlFields(file) : {}),
  };
  const name = kind === "internvl" ? "internvl_vision" : (`${kind}_vision_model` as const);
  const { description: encoder } = describeVision(name, settings.with(new Map(Object.entries(fields))), () => false);
  const config = settings.with(new Map(Object.entries(projectorFields(settings, file, family, image / patch))));
  const row: EncoderFamily = encoderFamilies[family];
  const tower = row.tower({ config, encoder, text });
  // the converter omits the final norm if the features do not depend on it
  const finalNorm = !file.has("v.post_ln.weight") ? "none" : tower.blocks === undefined ? encoder.finalNorm : "pooled";
  return { kind: "encoder", encoder: { ...encoder, finalNorm }, ...tower };
}

const internvlFields = (file: GgufReader): Readonly<Record<string, Json>> => ({
  attention_bias: file.has("v.blk.0.attn_q.bias"),
  use_qk_norm: file.has("v.blk.0.attn_q_norm.weight"),
  norm_type: file.has("v.blk.0.ln1.bias") ? "layer_norm" : "rms_norm",
  use_mean_pooling: !file.has("v.post_ln.weight"),
});

/** Returns the fields of `config.json` outside of its text and vision parts. */
function projectorFields(
  settings: Settings,
  file: GgufReader,
  family: EncoderName,
  rows: number,
): Readonly<Record<string, Json>> {
  if (family === "idefics3") return { scale_factor: settings.wholeIfAny("vision.projector.scale_factor") ?? 2 };
  if (family === "internvl") return internvlProjector(settings.wholeIfAny("vision.projector.scale_factor") ?? 2);
  if (family === "gemma3") {
    const side = Math.floor(rows / (settings.wholeIfAny("vision.projector.scale_factor") ?? 4));
    return { mm_tokens_per_image: side ** 2 };
  }
  const layers = settings.get("vision.feature_layer") === undefined ? [] : settings.numbers("vision.feature_layer");
  if (layers.length > 1) throw settings.wrong("vision.feature_layer", "at most one number", layers);
  // the converter omits the blocks after the one that computes the features
  const last = file.has("v.post_ln.weight") ? -1 : settings.whole("vision.block_count");
  return {
    vision_feature_layer: layers[0] ?? last,
    projector_hidden_act: "gelu",
    vision_feature_select_strategy: file.has("v.class_embd") ? "default" : "full",
    multimodal_projector_bias: file.has("mm.0.bias"),
  };
}

const internvlProjector = (size: number): Readonly<Record<string, Json>> => ({
  downsample_ratio: 1 / size,
  projector_hidden_act: "gelu",
  vision_feature_layer: -1,
  vision_feature_select_strategy: "default",
});

/** llama.cpp has one flag for all kinds of gelu but CLIP's quick gelu. SigLIP uses the tanh approximation. */
function activationOf(settings: Settings, family: EncoderName | QwenName): string {
  if (settings.flag("use_silu", false)) return "silu";
  if (!settings.flag("use_gelu", false)) return "quick_gelu";
  return family === "llava" || family === "internvl" ? "gelu" : "gelu_pytorch_tanh";
}

/** The side of an attention window in Qwen2.5-VL, in pixels. Files may lack it. */
const WINDOW_PIXELS = 112;

function patchTower(
  settings: Settings,
  file: GgufReader,
  family: QwenName,
  text: DecoderDescription,
): PatchTowerDescription {
  const depth = settings.whole("vision.block_count");
  const width = settings.whole("vision.embedding_length");
  const fields: Record<string, Json> = {
    ...qwenFamilies[family].visionFields,

    depth,
    num_heads: settings.whole("vision.attention.head_count"),
    patch_size: settings.whole("vision.patch_size"),
    spatial_merge_size: settings.wholeIfAny("vision.spatial_merge_size") ?? 2,
    hidden_act: activationOf(settings, family),
    ...(family === "qwen2_vl" ? { embed_dim: width, hidden_size: text.width } : { hidden_size: width }),
    ...(family === "qwen2_vl" ? {} : { out_hidden_size: text.width }),
  };
  if (family === "qwen2_5_vl") {
    const every = settings.whole("vision.n_wa_pattern");
    fields["fullatt_block_indexes"] = indices(depth).filter((index) => (index + 1) % every === 0);
    fields["window_size"] = settings.wholeIfAny("vision.window_size") ?? WINDOW_PIXELS;
  }
  if (family === "qwen3_vl") {
    const flags = settings.get("vision.is_deepstack_layers");
    fields["deepstack_visual_indexes"] = indices(depth).filter(
      (index) => Array.isArray(flags) && flags[index] === true,
    );
    fields["num_position_embeddings"] = file.info("v.position_embd.weight").shape[0];
  }
  const tower = qwenFamilies[family].tower(settings.with(new Map(Object.entries(fields))), text);
  // the size in Qwen2-VL's metadata is wrong, so read it from the weights
  const hidden = file.info(`${feedForwardNames(file)["feedForward.up"].replace("#", "0")}.bias`).shape[0];
  const layers = tower.layers.map(
    (layer, index): LayerDescription => ({
      ...layer,
      attention: { ...layer.attention, fused: file.has(`v.blk.${index}.attn_qkv.weight`) },
      feedForward: { ...layer.feedForward, hidden },
    }),
  );
  return { ...tower, layers };
}

const indices = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** Adds the axes of M-RoPE to the description of the language model. */
function withAxes(file: GgufReader, text: DecoderDescription, family: QwenName): DecoderDescription {
  const architecture = file.metadata["general.architecture"]?.value;
  const key = `${architecture}.rope.dimension_sections`;
  const sections = file.metadata[key]?.value;
  if (!Array.isArray(sections))
    throw new ArgumentError(
      "loadModel",
      "otherProjector",
      `expected a language model with ${key} for the mmproj file, got none in ${file.path}`,
    );
  const rope = new Settings(file.path, new Map([["mrope_section", sections.slice(0, 3).map(Number)]]), `${key} `);
  const layers = text.layers.map((layer): LayerDescription => {
    const { attention } = layer;
    const axes = axesOf(rope, attention.headWidth / 2, family === "qwen3_vl");
    return { ...layer, attention: { ...attention, rope: { ...attention.rope!, axes } } };
  });
  return { ...text, layers };
}
