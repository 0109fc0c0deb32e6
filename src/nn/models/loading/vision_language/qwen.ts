/** Qwen's vision-language models: a tower for images of any size, and M-RoPE in the language model. */
import type { Json } from "../../../../io/json.ts";
import type { DecoderDescription, LayerDescription, NormDescription } from "../../decoder/description.ts";
import type { PatchTowerDescription, VisionLanguageDescription } from "../../vision_language/description.ts";
import { activationOf } from "../activations.ts";
import type { ArchitectureName } from "../architectures.ts";
import { checkKeys, completed, hasNoEffectAnywhere } from "../config_fields.ts";
import { ofText } from "../hugging_face.ts";
import type { Settings } from "../settings.ts";

type Fields = Readonly<Record<string, Json>>;

/** A version of Qwen-VL. */
export interface QwenFamily {
  /** The architecture of the language model. */
  readonly text: ArchitectureName;
  /** Defaults of the text part that differ from its architecture's defaults. */
  readonly textFields: Fields;
  /** Fields of the vision part with their defaults. */
  readonly visionFields: Fields;
  /** Whether the pairs of the three axes alternate. */
  readonly interleaved?: boolean;
  readonly tower: (vision: Settings, text: DecoderDescription) => PatchTowerDescription;
}

const qwenText = {
  vocab_size: 152_064,
  hidden_size: 8192,
  intermediate_size: 29_568,
  num_hidden_layers: 80,
  num_attention_heads: 64,
  num_key_value_heads: 8,
  rms_norm_eps: 1e-5,
  rope_theta: 1e6,
  use_sliding_window: false,
  sliding_window: 4096,
  max_window_layers: 80,
} as const;

const qwen3Text = {
  vocab_size: 151_936,
  hidden_size: 4096,
  intermediate_size: 22_016,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 32,
  max_position_embeddings: 128_000,
  rope_theta: 500_000,
} as const;

const qwenVision = {
  depth: 32,
  num_heads: 16,
  in_channels: 3,
  patch_size: 14,
  spatial_merge_size: 2,
  temporal_patch_size: 2,
  rope_parameters: null,
} as const;

/** The versions by the `model_type` of a `config.json`. */
export const qwenFamilies = {
  qwen2_vl: {
    text: "qwen2",
    textFields: qwenText,
    visionFields: { ...qwenVision, embed_dim: 1280, hidden_size: 3584, hidden_act: "quick_gelu", mlp_ratio: 4 },
    tower: (vision, text) =>
      qwenTower(vision, text, {
        width: vision.whole("embed_dim"),
        output: "hidden_size",
        gated: false,
        hidden: Math.trunc(vision.whole("embed_dim") * vision.positive("mlp_ratio")),
        norm: { kind: "layerNorm", eps: 1e-6 },
      }),
  },
  qwen2_5_vl: {
    text: "qwen2",
    textFields: qwenText,
    visionFields: {
      ...qwenVision,
      hidden_size: 3584,
      hidden_act: "silu",
      intermediate_size: 3420,
      tokens_per_second: 4,
      window_size: 112,
      out_hidden_size: 3584,
      fullatt_block_indexes: [7, 15, 23, 31],
    },
    tower: (vision, text) => ({
      ...qwenTower(vision, text, {
        width: vision.whole("hidden_size"),
        output: "out_hidden_size",
        gated: true,
        hidden: vision.whole("intermediate_size"),
        norm: { kind: "rmsNorm", eps: 1e-6 },
      }),
      window: windowOf(vision),
      unlimited: blocksIn(vision, "fullatt_block_indexes"),
    }),
  },
  qwen3_vl: {
    text: "qwen3",
    textFields: qwen3Text,
    interleaved: true,
    visionFields: {
      ...qwenVision,
      depth: 27,
      hidden_size: 1152,
      hidden_act: "gelu_pytorch_tanh",
      intermediate_size: 4304,
      patch_size: 16,
      out_hidden_size: 3584,
      num_position_embeddings: 2304,
      deepstack_visual_indexes: [8, 16, 24],
    },
    tower: (vision, text) => ({
      ...qwenTower(vision, text, {
        width: vision.whole("hidden_size"),
        output: "out_hidden_size",
        gated: false,
        hidden: vision.whole("intermediate_size"),
        norm: { kind: "layerNorm", eps: 1e-6 },
      }),
      patchBias: true,
      positionRows: sideOf(vision),
      deep: blocksIn(vision, "deepstack_visual_indexes"),
    }),
  },
} as const satisfies Readonly<Record<string, QwenFamily>>;

/** The part of a tower that differs between versions of Qwen. */
interface QwenTower {
  readonly width: number;
  readonly hidden: number;
  readonly gated: boolean;
  readonly norm: NormDescription;
  /** The field with the size of the features. */
  readonly output: string;
}

function qwenTower(vision: Settings, text: DecoderDescription, own: QwenTower): PatchTowerDescription {
  const { width, hidden, gated, norm, output } = own;
  const [heads, patch, merge] = [
    vision.whole("num_heads"),
    vision.whole("patch_size"),
    vision.whole("spatial_merge_size"),
  ];
  const headWidth = width / heads;
  if (headWidth % 4 !== 0) throw vision.wrong("num_heads", `such that ${width} / num_heads is a multiple of 4`, heads);
  const outputWidth = vision.whole(output);
  if (outputWidth !== text.width) throw vision.wrong(output, `${text.width}, the text part's hidden_size`, outputWidth);
  const layer: LayerDescription = {
    norms: "before",
    attention: {
      heads,
      keyValueHeads: heads,
      headWidth,
      fused: true,
      queryKeyValueBias: true,
      outputBias: true,
      bidirectional: true,
    },
    feedForward: { hidden, gated, activation: activationOf(vision, "hidden_act"), bias: true },
  };
  return {
    kind: "patches",
    width,
    norm,
    merge,
    outputWidth,
    base: baseOf(vision),
    patchWidth: vision.whole("in_channels") * vision.whole("temporal_patch_size") * patch ** 2,
    layers: Array.from({ length: vision.whole("depth") }, () => layer),
  };
}

/** The base of the rotation frequencies, 10,000 by default. */
function baseOf(vision: Settings): number {
  const rope = vision.inner("rope_parameters");
  const type = rope?.textIfAny("rope_type") ?? "axial";
  if (type !== "axial") throw rope!.wrong("rope_type", "axial", type);
  return rope?.positiveIfAny("rope_theta") ?? 10_000;
}

/** The size of windows in tokens. */
function windowOf(vision: Settings): number {
  const size = vision.whole("window_size");
  const window = Math.floor(Math.floor(size / vision.whole("spatial_merge_size")) / vision.whole("patch_size"));
  if (window >= 1) return window;
  throw vision.wrong("window_size", "at least patch_size · spatial_merge_size", size);
}

/** The number of rows of a square table of positions. */
function sideOf(vision: Settings): number {
  const count = vision.whole("num_position_embeddings");
  const side = Math.floor(Math.sqrt(count));
  if (side * side === count) return side;
  throw vision.wrong("num_position_embeddings", "a square", count);
}

function blocksIn(vision: Settings, name: string): number[] {
  const value = vision.get(name);
  if (Array.isArray(value) && value.every(Number.isSafeInteger)) return value;
  throw vision.wrong(name, "a list of block indices", value);
}

/** Keys of the vision part of older files, which repeat others. */
const notes: ReadonlySet<string> = new Set(["in_chans", "spatial_patch_size"]);

/** Keys around the text part. */
const aroundText: ReadonlySet<string> = new Set([
  "text_config",
  "vision_config",
  "tie_word_embeddings",
  "image_token_id",
  "video_token_id",
  "vision_start_token_id",
  "vision_end_token_id",
  "vision_token_id",
]);

/**
 * Returns the description of a model. Older files have the settings of the text part at the top.
 *
 * @throws {FileFormatError} @throws {ArgumentError} for unsupported settings.
 */
export function describeQwen(name: string, family: QwenFamily, config: Settings): VisionLanguageDescription {
  const nested = config.inner("text_config");
  if (nested)
    checkKeys(config, (key) => aroundText.has(key) || hasNoEffectAnywhere(key), `is not a setting of ${name}`);
  const text = describeText(family, nested ?? config.with(without(config, aroundText)));
  const given = config.inner("vision_config") ?? config.with(new Map());
  const isKnown = (key: string) =>
    Object.hasOwn(family.visionFields, key) || notes.has(key) || hasNoEffectAnywhere(key);
  checkKeys(given, isKnown, `is not a setting of ${name}`);
  const vision = given.with(new Map([...Object.entries(family.visionFields), ...given.entries()]));
  return {
    architecture: name,
    text: { ...text, tied: config.flag("tie_word_embeddings", false) },
    imageToken: config.wholeIfAny("image_token_id", 0) ?? 151_655,
    tower: family.tower(vision, text),
  };
}

const without = (settings: Settings, names: ReadonlySet<string>): Map<string, unknown> =>
  new Map(settings.entries().filter(([name]) => !names.has(name)));

/** Describes a text part with M-RoPE. */
function describeText({ text: name, textFields, interleaved }: QwenFamily, config: Settings): DecoderDescription {
  const [key, rope] = ["rope_scaling", "rope_parameters"]
    .map((each) => [each, config.inner(each)] as const)
    .find(([, settings]) => settings?.names.length) ?? ["rope_scaling", undefined];
  const fields = new Map<string, unknown>([...Object.entries(textFields), ...config.entries()]);
  fields.delete("model_type");
  if (rope) fields.set(key, plainRotation(rope));
  const described = ofText(name, completed(name, config.with(fields)));
  const { headWidth } = described.layers[0].attention;
  const axes = axesOf(rope ?? config, headWidth / 2, interleaved === true);
  const layers = described.layers.map((layer): LayerDescription => {
    const { rope: rotation } = layer.attention;
    if (rotation?.scaling?.type === "dynamic" || rotation?.scaling?.type === "longrope")
      throw rope!.wrong("rope_type", "a type that does not depend on the length of the text", rotation.scaling.type);
    return { ...layer, attention: { ...layer.attention, rope: { ...rotation!, axes } } };
  });
  return { ...described, layers };
}

/** Returns the rotation without its sections. `mrope` is an older name of `default`. */
function plainRotation(rope: Settings): Readonly<Record<string, unknown>> {
  const entries = rope.entries().filter(([name]) => name !== "mrope_section" && name !== "mrope_interleaved");
  return Object.fromEntries(entries.map(([name, value]) => [name, value === "mrope" ? "default" : value]));
}

/**
 * Returns the axis of each pair: `mrope_section` is the number of pairs for each axis in turn, or alternately as long
 * as the second and third axes have any.
 */
export function axesOf(rope: Settings, pairs: number, isInterleaved: boolean): (0 | 1 | 2)[] {
  const sections = rope.numbers("mrope_section");
  if (isInterleaved && sections.length === 3)
    return Array.from({ length: pairs }, (_, pair) => {
      const axis = (pair % 3) as 0 | 1 | 2;
      return pair < sections[axis] * 3 ? axis : 0;
    });
  const axes = sections.flatMap((count, at) => new Array<0 | 1 | 2>(count).fill((at % 3) as 0 | 1 | 2));
  if (axes.length === pairs) return axes;
  throw rope.wrong("mrope_section", `numbers that add up to ${pairs}, the pairs of a head`, sections);
}
