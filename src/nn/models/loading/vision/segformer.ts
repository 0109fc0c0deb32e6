/** SegFormer's `config.json`, and the names of its weights. */
import type { EncoderLabels } from "../../encoder/labels.ts";
import type { SegmenterDescription, SegmenterStageDescription } from "../../vision/segformer/description.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import { encoderActivation } from "../encoder/activations.ts";
import { namesOf } from "../encoder/heads.ts";
import type { Place } from "../names.ts";
import type { Settings } from "../settings.ts";

/** The fields that are read, with the defaults of `transformers` 5.23.0. */
const fields = {
  num_channels: 3,
  num_encoder_blocks: 4,
  depths: [2, 2, 2, 2],
  sr_ratios: [8, 4, 2, 1],
  hidden_sizes: [32, 64, 160, 256],
  patch_sizes: [7, 3, 3, 3],
  strides: [4, 2, 2, 2],
  num_attention_heads: [1, 2, 5, 8],
  mlp_ratios: [4, 4, 4, 4],
  hidden_act: "gelu",
  decoder_hidden_size: 256,
} as const;

/** Keys without an effect on results: of training, of the size of training images, and of the layout of states. */
const notes: ReadonlySet<string> = new Set([
  "drop_path_rate",
  "semantic_loss_ignore_index",
  "reshape_last_stage",
  "image_size",
  "downsampling_rates",
  // SegFormer's code ignores this setting: its norms use PyTorch's default eps
  "layer_norm_eps",
]);

/**
 * Reads the description of a segmentation model. @throws {ArgumentError} `unsupportedConfig` and other codes for
 * unsupported settings, which the error names.
 */
export function describeSegformer(given: Settings): {
  readonly description: SegmenterDescription;
  readonly labels: EncoderLabels;
} {
  const list = given.get("architectures");
  if (Array.isArray(list) && !`${list[0]}`.endsWith("ForSemanticSegmentation"))
    throw given.refused(
      "unsupportedHead",
      `expected architectures to end with ForSemanticSegmentation or ForImageClassification, got "${list[0]}"`,
    );
  const { config, ...encoder } = describeSegformerStages(given);
  const names = namesOf(config);
  return {
    description: {
      architecture: "segformer",
      ...encoder,
      decoderWidth: config.whole("decoder_hidden_size"),
      labels: names.length,
    },
    labels: { names, scores: "softmax", relevance: "sigmoid" },
  };
}

/** Reads the description of the encoder. @throws {ArgumentError} for unsupported settings. */
export function describeSegformerStages(
  given: Settings,
): Pick<SegmenterDescription, "channels" | "stages" | "activation"> & { readonly config: Settings } {
  const isKnown = (key: string) => Object.hasOwn(fields, key) || notes.has(key) || hasNoEffectAnywhere(key);
  checkKeys(given, isKnown, "is not a setting of segformer");
  const config = given.with(
    new Map([...Object.entries(fields), ...given.entries().filter(([, value]) => value !== null)]),
  );
  const activation = encoderActivation(config, "hidden_act");
  if (activation === "tanh") throw config.wrong("hidden_act", "gelu, relu or silu", activation);
  return { channels: config.whole("num_channels"), stages: stagesOf(config), activation, config };
}

function stagesOf(config: Settings): SegmenterStageDescription[] {
  const count = config.whole("num_encoder_blocks");
  const listOf = (key: keyof typeof fields): number[] => {
    const list = config.numbers(key);
    if (list.length === count && count < 16 && list.every((size) => size < 2 ** 16)) return list;
    throw config.wrong(key, `a list of num_encoder_blocks (${count}) numbers`, config.get(key));
  };
  const [widths, layers, heads] = [listOf("hidden_sizes"), listOf("depths"), listOf("num_attention_heads")];
  const [patches, strides, reductions] = [listOf("patch_sizes"), listOf("strides"), listOf("sr_ratios")];
  const ratios = listOf("mlp_ratios");
  return widths.map((width, at) => {
    if (width % heads[at] !== 0) throw config.wrong("hidden_sizes", "multiples of num_attention_heads", width);
    const hidden = Math.trunc(width * ratios[at]);
    const [layer, patch, stride] = [layers[at], patches[at], strides[at]];
    return { width, layers: layer, heads: heads[at], patch, stride, reduction: reductions[at], hidden };
  });
}

/** The names in a block. */
const block: Readonly<Record<string, string>> = {
  attentionNorm: "layer_norm_1",
  "attention.query": "attention.self.query",
  "attention.key": "attention.self.key",
  "attention.value": "attention.self.value",
  "attention.output": "attention.output.dense",
  feedForwardNorm: "layer_norm_2",
  "feedForward.up": "mlp.dense1",
  "feedForward.convolution": "mlp.dwconv.dwconv",
  "feedForward.down": "mlp.dense2",
};
const reduced: typeof block = { reduction: "attention.self.sr", reductionNorm: "attention.self.layer_norm" };

/** Returns the places of the encoder's layers. */
export function segformerStagePlaces(stages: readonly SegmenterStageDescription[], prefix = ""): Place[] {
  const place = (path: string, name: string): Place => ({ path: `${prefix}${path}`, names: [name] });
  const encoder = "segformer.encoder";
  return [
    ...stages.flatMap(({ layers, reduction }, stage) => [
      place(`stages.${stage}.patch`, `${encoder}.patch_embeddings.${stage}.proj`),
      place(`stages.${stage}.patchNorm`, `${encoder}.patch_embeddings.${stage}.layer_norm`),
      ...Array.from({ length: layers }, (_, index) =>
        Object.entries(reduction > 1 ? { ...block, ...reduced } : block).map(([path, name]) =>
          place(`stages.${stage}.blocks.${index}.${path}`, `${encoder}.block.${stage}.${index}.${name}`),
        ),
      ).flat(),
      place(`stages.${stage}.norm`, `${encoder}.layer_norm.${stage}`),
    ]),
  ];
}

/** Returns the place of every layer with weights. */
export function segformerPlaces({ stages }: SegmenterDescription): Place[] {
  const place = (path: string, name: string): Place => ({ path, names: [name] });
  return [
    ...segformerStagePlaces(stages),
    ...stages.map((_, stage) => place(`projections.${stage}`, `decode_head.linear_c.${stage}.proj`)),
    place("fusion", "decode_head.linear_fuse"),
    place("fusionNorm", "decode_head.batch_norm"),
    place("head", "decode_head.classifier"),
  ];
}
