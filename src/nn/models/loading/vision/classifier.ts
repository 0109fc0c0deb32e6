/** The `config.json` of ResNet, ConvNeXt, Swin and SegFormer as classifiers, and the names of their weights. */
import type { EncoderLabels } from "../../encoder/labels.ts";
import type { ConvNextDescription, ImageClassifierDescription } from "../../vision/classifier/description.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import { encoderActivation } from "../encoder/activations.ts";
import { namesOf, scoresOf } from "../encoder/heads.ts";
import type { Place } from "../names.ts";
import type { Settings } from "../settings.ts";
import { describeResNet, resNetPlaces } from "./resnet.ts";
import { describeSegformerStages, segformerStagePlaces } from "./segformer.ts";
import { describeSwin, swinPlaces } from "./swin.ts";

/** A `model_type` whose models are classifiers of images. */
export type ImageClassifierName = ImageClassifierDescription["architecture"];

/** A classifier that a config describes. */
export interface DescribedClassifier {
  readonly description: ImageClassifierDescription;
  readonly labels: EncoderLabels | undefined;
}

/** Whether a config names SegFormer's classifier, or its encoder alone, instead of the segmentation model. */
export const isSegformerClassifier = (config: Settings): boolean =>
  /^Segformer(ForImageClassification|Model)$/.test(`${config.get("architectures")}`);

/** The fields of ConvNeXt that are read, with the defaults of `transformers` 5.23.0. */
const convNextFields = {
  num_channels: 3,
  patch_size: 4,
  num_stages: 4,
  hidden_sizes: [96, 192, 384, 768],
  depths: [3, 3, 9, 3],
  hidden_act: "gelu",
  layer_norm_eps: 1e-12,
  layer_scale_init_value: 1e-6,
} as const;

/** Keys without an effect on results: of training, and of models that read several stages. */
const notes: ReadonlySet<string> = new Set([
  ...["drop_path_rate", "image_size", "out_features", "out_indices", "stage_names"],
]);

/** Returns the description of a classifier. @throws {ArgumentError} for unsupported settings. */
export function describeClassifier(name: ImageClassifierName, config: Settings): DescribedClassifier {
  const list = config.get("architectures");
  const className = Array.isArray(list) ? `${list[0]}` : "Model";
  const hasHead = className.endsWith("ForImageClassification");
  if (!hasHead && !className.endsWith("Model"))
    throw config.refused(
      "unsupportedHead",
      `expected architectures to end with ForImageClassification or Model, got "${className}"`,
    );
  const names = hasHead ? namesOf(config) : undefined;
  const labels = names && ({ names, scores: scoresOf(config, names.length), relevance: "sigmoid" } as const);
  return { description: { ...networkOf(name, config), labels: names?.length }, labels };
}

function networkOf(name: ImageClassifierName, config: Settings): ImageClassifierDescription {
  if (name === "resnet") {
    const network = describeResNet(config.with(new Map([...config.entries(), ["out_features", null]])));
    const { channels, stages } = network;
    return { architecture: name, channels, network: { kind: "resnet", ...network }, width: stages.at(-1)!.width };
  }
  if (name === "segformer") {
    const { channels, stages, activation } = describeSegformerStages(config);
    const network = { kind: "segformer", stages, activation } as const;
    return { architecture: name, channels, network, width: stages.at(-1)!.width };
  }
  return name === "swin" ? describeSwin(config) : describeConvNext(name, config);
}

function describeConvNext(name: "convnext" | "convnextv2", given: Settings): ImageClassifierDescription {
  const isRead = (key: string) =>
    Object.hasOwn(convNextFields, key) && (key !== "layer_scale_init_value" || name === "convnext");
  const isKnown = (key: string) => isRead(key) || notes.has(key) || hasNoEffectAnywhere(key);
  checkKeys(given, isKnown, `is not a setting of ${name}`);
  const config = given.with(
    new Map([...Object.entries(convNextFields), ...given.entries().filter(([, value]) => value !== null)]),
  );
  const activation = encoderActivation(config, "hidden_act");
  if (activation === "tanh") throw config.wrong("hidden_act", "gelu, relu or silu", activation);
  const [widths, depths] = [config.numbers("hidden_sizes"), config.numbers("depths")];
  const count = config.whole("num_stages");
  const isSize = (size: number) => Number.isInteger(size) && size > 0 && size < 2 ** 16;
  if (widths.length !== count || depths.length !== count || ![...widths, ...depths].every(isSize))
    throw config.wrong("hidden_sizes", `whole numbers, one for each of num_stages (${count}) and depths`, widths);
  const network: ConvNextDescription = {
    patch: config.whole("patch_size"),
    stages: widths.map((width, at) => ({ width, layers: depths[at] })),
    activation,
    scaled: name === "convnext" && config.number("layer_scale_init_value") > 0,
    responses: name === "convnextv2",
  };
  return {
    architecture: name,
    channels: config.whole("num_channels"),
    network: { kind: "convnext", ...network },
    width: widths.at(-1)!,
    eps: config.positive("layer_norm_eps"),
  };
}

/** The names in a block of ConvNeXt. */
const convNextBlock = {
  convolution: "dwconv",
  norm: "layernorm",
  up: "pwconv1",
  responses: "grn",
  down: "pwconv2",
  scale: "layer_scale_parameter",
} as const;

function convNextPlaces(name: ImageClassifierName, { stages, scaled, responses }: ConvNextDescription): Place[] {
  const place = (path: string, end: string): Place => ({ path: `network.${path}`, names: [`${name}.${end}`, end] });
  const isThere = (part: string) => (part === "responses" ? responses : part !== "scale" || scaled);
  return [
    place("patch", "embeddings.patch_embeddings"),
    place("norm", "embeddings.layernorm"),
    ...stages.flatMap(({ layers }, stage) => [
      ...(stage > 0
        ? ["norm", "reduction"].map((part, at) =>
            place(`stages.${stage}.${part}`, `encoder.stages.${stage}.downsampling_layer.${at}`),
          )
        : []),
      ...Array.from({ length: layers }, (_, index) =>
        Object.entries(convNextBlock)
          .filter(([part]) => isThere(part))
          .map(([part, own]) => ({
            ...place(`stages.${stage}.blocks.${index}.${part}`, `encoder.stages.${stage}.layers.${index}.${own}`),
            ...(part === "responses" && { change: { kind: "reshaped" } as const }),
          })),
      ).flat(),
    ]),
  ];
}

/** Returns the place of every layer with weights. */
export function classifierPlaces({ architecture: name, network, labels, eps }: ImageClassifierDescription): Place[] {
  const bare = ({ path, names }: Place): Place => ({
    path,
    names: [...names, ...names.map((each) => each.slice(name.length + 1))],
  });
  const places =
    network.kind === "resnet"
      ? resNetPlaces("network", name, network).map(bare)
      : network.kind === "segformer"
        ? segformerStagePlaces(network.stages, "network.").map(bare)
        : network.kind === "swin"
          ? swinPlaces(network).map(bare)
          : convNextPlaces(name, network);
  return [
    ...places,
    ...(eps === undefined ? [] : [{ path: "norm", names: [`${name}.layernorm`, "layernorm"] }]),
    ...(labels === undefined ? [] : [{ path: "head", names: ["classifier", "classifier.1"] }]),
  ];
}
