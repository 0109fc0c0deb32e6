/** The `config.json` of DETR, and the names of its weights. */
import type { Json } from "../../../../io/json.ts";
import type { EncoderLabels } from "../../encoder/labels.ts";
import type { DetrDescription, DetrStack } from "../../vision/detr/description.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import { encoderActivation } from "../encoder/activations.ts";
import { namesOf } from "../encoder/heads.ts";
import type { Place } from "../names.ts";
import type { Settings } from "../settings.ts";
import { describeResNet, resNetPlaces, timmNetwork } from "./resnet.ts";

/** The fields that are read, with the defaults of `transformers` 5.23.0. */
const fields = {
  backbone: "resnet50",
  num_channels: 3,
  num_queries: 100,
  d_model: 256,
  activation_function: "relu",
  encoder_layers: 6,
  encoder_ffn_dim: 2048,
  encoder_attention_heads: 8,
  decoder_layers: 6,
  decoder_ffn_dim: 2048,
  decoder_attention_heads: 8,
  position_embedding_type: "sine",
  dilation: false,
} as const;

/** Keys of training, of older files, and of the network of convolutions. */
const notes: ReadonlySet<string> = new Set([
  "backbone_config",
  "use_timm_backbone",
  "use_pretrained_backbone",
  "backbone_kwargs",
  "is_encoder_decoder",
  "encoder_layerdrop",
  "decoder_layerdrop",
  "init_std",
  "init_xavier_std",
  "auxiliary_loss",
  "class_cost",
  "bbox_cost",
  "giou_cost",
  "mask_loss_coefficient",
  "dice_loss_coefficient",
  "bbox_loss_coefficient",
  "giou_loss_coefficient",
  "eos_coefficient",
  "scale_embedding",
  "max_position_embeddings",
  "num_hidden_layers",
  "hidden_size",
  "num_attention_heads",
  "classifier_dropout",
]);

/** Returns the settings of a detector, with defaults. @throws {ArgumentError} `unsupportedHead` for another head */
export function ofDetector(given: Settings, defaults: Readonly<Record<string, Json>>): Settings {
  const list = given.get("architectures");
  if (Array.isArray(list) && !`${list[0]}`.endsWith("ForObjectDetection"))
    throw given.refused("unsupportedHead", `expected architectures to end with ForObjectDetection, got "${list[0]}"`);
  return given.with(new Map([...Object.entries(defaults), ...given.entries().filter(([, value]) => value !== null)]));
}

/**
 * Reads the description of a detector. @throws {ArgumentError} `unsupportedConfig` and other codes for unsupported
 * settings, which the error names.
 */
export function describeDetr(given: Settings): {
  readonly description: DetrDescription;
  readonly labels: EncoderLabels;
} {
  const isKnown = (key: string) => Object.hasOwn(fields, key) || notes.has(key) || hasNoEffectAnywhere(key);
  checkKeys(given, isKnown, "is not a setting of detr");
  const config = ofDetector(given, fields);
  const type = config.get("position_embedding_type");
  if (type !== "sine") throw config.wrong("position_embedding_type", '"sine"', type);
  if (config.flag("dilation")) throw config.refused("unsupportedConfig", "expected dilation to be false, got true");
  const [width, activation] = [config.whole("d_model"), encoderActivation(config, "activation_function")];
  if (width % 4 !== 0) throw config.wrong("d_model", "a multiple of 4", width);
  if (activation === "tanh") throw config.wrong("activation_function", "relu, gelu or silu", activation);
  const names = namesOf(config);
  return {
    description: {
      architecture: "detr",
      backbone: describeResNet(networkOf(config)),
      width,
      activation,
      queries: config.whole("num_queries"),
      labels: names.length,
      encoder: stackOf(config, "encoder", width),
      decoder: stackOf(config, "decoder", width),
    },
    labels: { names, scores: "softmax", relevance: "sigmoid" },
  };
}

function stackOf(config: Settings, name: "encoder" | "decoder", width: number): DetrStack {
  const heads = config.whole(`${name}_attention_heads`);
  if (width % heads !== 0) throw config.wrong(`${name}_attention_heads`, `a divisor of d_model (${width})`, heads);
  return { layers: config.whole(`${name}_layers`), heads, hidden: config.whole(`${name}_ffn_dim`) };
}

/** Older files name a network of timm; newer ones have its settings, or those of a ResNet of `transformers`. */
function networkOf(config: Settings): Settings {
  const inner = config.inner("backbone_config");
  const type = inner?.textIfAny("model_type");
  if (!inner) return timmNetwork(config, config.textIfAny("backbone") ?? "");
  if (type === "timm_backbone") return timmNetwork(inner, inner.textIfAny("backbone") ?? "");
  if (type === "resnet") return inner;
  throw inner.wrong("model_type", '"resnet" or "timm_backbone"', type);
}

const attention = (path: string, name: string): Readonly<Record<string, string>> => ({
  [`${path}.query`]: `${name}.q_proj`,
  [`${path}.key`]: `${name}.k_proj`,
  [`${path}.value`]: `${name}.v_proj`,
  [`${path}.output`]: `${name}.out_proj`,
});
/** The names in a block of the encoder. */
export const encoderNames: Readonly<Record<string, string>> = {
  ...attention("attention", "self_attn"),
  attentionNorm: "self_attn_layer_norm",
  "feedForward.up": "fc1",
  "feedForward.down": "fc2",
  feedForwardNorm: "final_layer_norm",
};
/** The names in a block of the decoder. */
export const decoderNames: Readonly<Record<string, string>> = {
  ...encoderNames,
  ...attention("crossAttention", "encoder_attn"),
  crossNorm: "encoder_attn_layer_norm",
};

/** Returns the place of every layer with weights. */
export function detrPlaces({ backbone, encoder, decoder }: DetrDescription): Place[] {
  const place = (path: string, name: string): Place => ({ path, names: [name] });
  const stack = (path: string, name: string, layers: number, block: Readonly<Record<string, string>>) =>
    Array.from({ length: layers }, (_, index) =>
      Object.entries(block).map(([part, end]) =>
        place(`${path}.${index}.${part}`, `model.${name}.layers.${index}.${end}`),
      ),
    ).flat();
  return [
    place("projection", "model.input_projection"),
    ...resNetPlaces("backbone", "model.backbone.conv_encoder.model", backbone),
    ...stack("encoderBlocks", "encoder", encoder.layers, encoderNames),
    place("queries", "model.query_position_embeddings"),
    ...stack("blocks", "decoder", decoder.layers, decoderNames),
    place("finalNorm", "model.decoder.layernorm"),
    place("labelHead", "class_labels_classifier"),
    ...[0, 1, 2].map((at) => place(`boxHead.layers.${at}`, `bbox_predictor.layers.${at}`)),
  ];
}
