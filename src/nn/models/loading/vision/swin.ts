/** Swin's `config.json`, and the names of its weights. */
import type { ImageClassifierDescription, SwinDescription } from "../../vision/classifier/description.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import { encoderActivation } from "../encoder/activations.ts";
import type { Place } from "../names.ts";
import type { Settings } from "../settings.ts";

/** The fields that are read, with the defaults of `transformers` 5.23.0. */
const fields = {
  num_channels: 3,
  patch_size: 4,
  embed_dim: 96,
  depths: [2, 2, 6, 2],
  num_heads: [3, 6, 12, 24],
  window_size: 7,
  mlp_ratio: 4,
  qkv_bias: true,
  hidden_act: "gelu",
  layer_norm_eps: 1e-5,
} as const;

/** Keys without an effect on results: of training, of models of masked or several stages, and what others repeat. */
const notes: ReadonlySet<string> = new Set([
  ...["drop_path_rate", "image_size", "out_features", "out_indices", "stage_names", "encoder_stride", "path_norm"],
  ...["hidden_size", "num_layers"],
]);

/** Reads the description of Swin. @throws {ArgumentError} for unsupported settings. */
export function describeSwin(given: Settings): ImageClassifierDescription {
  const isKnown = (key: string) => Object.hasOwn(fields, key) || notes.has(key) || hasNoEffectAnywhere(key);
  checkKeys(given, isKnown, "is not a setting of swin", { use_absolute_embeddings: false });
  const config = given.with(
    new Map([...Object.entries(fields), ...given.entries().filter(([, value]) => value !== null)]),
  );
  const activation = encoderActivation(config, "hidden_act");
  if (activation === "tanh") throw config.wrong("hidden_act", "gelu, relu or silu", activation);
  const [depths, heads, first] = [config.numbers("depths"), config.numbers("num_heads"), config.whole("embed_dim")];
  const widths = depths.map((_, stage) => first * 2 ** stage);
  const isSize = (size: number) => Number.isInteger(size) && size > 0 && size < 2 ** 16;
  if (depths.length === 0 || ![...depths, ...widths].every(isSize))
    throw config.wrong("depths", "a list of whole numbers above 0", depths);
  if (heads.length !== depths.length || !heads.every((count, at) => isSize(count) && widths[at] % count === 0))
    throw config.wrong("num_heads", "divisors of embed_dim · 2^stage, one for each of depths", heads);
  const ratio = config.positive("mlp_ratio");
  const network: SwinDescription = {
    patch: config.whole("patch_size"),
    window: config.whole("window_size"),
    stages: widths.map((width, at) => ({
      width,
      layers: depths[at],
      heads: heads[at],
      feedForward: { hidden: Math.trunc(ratio * width), gated: false, activation, bias: true },
    })),
    bias: config.flag("qkv_bias"),
    eps: config.positive("layer_norm_eps"),
  };
  const channels = config.whole("num_channels");
  return { architecture: "swin", channels, network: { kind: "swin", ...network }, width: widths.at(-1)! };
}

/** The names in a block. */
const block = {
  attentionNorm: "layernorm_before",
  "attention.query": "attention.self.query",
  "attention.key": "attention.self.key",
  "attention.value": "attention.self.value",
  "attention.output": "attention.output.dense",
  distances: "attention.self.relative_position_bias_table",
  feedForwardNorm: "layernorm_after",
  "feedForward.up": "intermediate.dense",
  "feedForward.down": "output.dense",
} as const;

/** Returns the place of every layer with weights. */
export function swinPlaces({ stages }: SwinDescription): Place[] {
  const place = (path: string, name: string): Place => ({ path: `network.${path}`, names: [`swin.${name}`] });
  return [
    place("patch", "embeddings.patch_embeddings.projection"),
    place("patchNorm", "embeddings.norm"),
    ...stages.flatMap(({ layers }, stage) => [
      ...Array.from({ length: layers }, (_, index) =>
        Object.entries(block).map(([path, name]) =>
          place(`stages.${stage}.blocks.${index}.${path}`, `encoder.layers.${stage}.blocks.${index}.${name}`),
        ),
      ).flat(),
      ...(stage < stages.length - 1 ? ["norm", "reduction"] : []).map((part) =>
        place(`stages.${stage}.${part}`, `encoder.layers.${stage}.downsample.${part}`),
      ),
    ]),
    place("norm", "layernorm"),
  ];
}
