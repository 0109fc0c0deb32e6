/** The settings of a {@link ResNet} in a `config.json`, and the names of its weights. */
import type { ResNetDescription } from "../../vision/resnet/description.ts";
import { shortcutOf } from "../../vision/resnet/resnet.ts";
import { checkKeys, hasNoEffectAnywhere } from "../config_fields.ts";
import { encoderActivation } from "../encoder/activations.ts";
import type { Place } from "../names.ts";
import type { Settings } from "../settings.ts";

/** The fields that are read, with the defaults of `transformers` 5.23.0. */
const fields = {
  num_channels: 3,
  embedding_size: 64,
  hidden_sizes: [256, 512, 1024, 2048],
  depths: [3, 4, 6, 3],

  layer_type: "bottleneck",
  hidden_act: "relu",
  downsample_in_first_stage: false,
  downsample_in_bottleneck: false,
} as const;
const notes: ReadonlySet<string> = new Set(["out_features", "out_indices", "stage_names"]);

/** Networks of the package timm by name. */
const timm: Readonly<Record<string, object>> = {
  resnet18: { layer_type: "basic", hidden_sizes: [64, 128, 256, 512], depths: [2, 2, 2, 2] },
  resnet34: { layer_type: "basic", hidden_sizes: [64, 128, 256, 512], depths: [3, 4, 6, 3] },
  resnet50: {},
  resnet101: { depths: [3, 4, 23, 3] },
};

/** Returns the settings of a network of timm. @throws {ArgumentError} `unsupportedConfig` for an unknown name. */
export function timmNetwork(config: Settings, name: string): Settings {
  if (Object.hasOwn(timm, name)) return config.with(new Map(Object.entries(timm[name])));
  const known = Object.keys(timm).join(", ");
  throw config.refused("unsupportedConfig", `expected backbone to be one of ${known}, got "${name}"`);
}

/** Returns the description of a network up to the last stage that a model reads. */
export function describeResNet(given: Settings, deep = false): ResNetDescription {
  const isKnown = (key: string) => Object.hasOwn(fields, key) || notes.has(key) || hasNoEffectAnywhere(key);
  checkKeys(given, isKnown, "is not a setting of resnet");
  const config = given.with(
    new Map([...Object.entries(fields), ...given.entries().filter(([, value]) => value !== null)]),
  );
  const [block, activation] = [config.get("layer_type"), encoderActivation(config, "hidden_act")];
  if (block !== "basic" && block !== "bottleneck") throw config.wrong("layer_type", '"basic" or "bottleneck"', block);
  if (activation === "tanh" || activation === "geluTanh")
    throw config.wrong("hidden_act", "relu, gelu or silu", config.get("hidden_act"));
  const [widths, depths] = [config.numbers("hidden_sizes"), config.numbers("depths")];
  const isSize = (size: number) => Number.isInteger(size) && size < 2 ** 16;
  if (widths.length !== depths.length || ![...widths, ...depths].every(isSize))
    throw config.wrong("hidden_sizes", "whole numbers, one for each of depths", widths);
  const first = config.flag("downsample_in_first_stage") ? 2 : 1;
  const stages = widths.map((width, at) => ({ width, layers: depths[at], stride: at === 0 ? first : 2 }));
  return {
    channels: config.whole("num_channels"),
    stem: config.whole("embedding_size"),
    stages: stages.slice(0, lastStage(config, stages.length)),
    block,
    activation,
    ...(deep && { deep }),
    strideAt: config.flag("downsample_in_bottleneck") ? "first" : "second",
  };
}

function lastStage(config: Settings, count: number): number {
  const [indices, names] = [config.get("out_indices"), config.get("out_features")];
  const given = Array.isArray(indices)
    ? indices.map((index) => (Number(index) < 0 ? count + 1 + Number(index) : Number(index)))
    : Array.isArray(names)
      ? names.map((name) => Number(`${name}`.replace(/^stage/, "")))
      : [count];
  const last = Math.max(...given);
  if (Number.isInteger(last) && last > 0 && last <= count) return last;
  throw config.wrong("out_features", `stages up to ${count}`, indices ?? names);
}

/** Returns the place of every layer with weights: by the names of `transformers`, and by those of timm. */
export function resNetPlaces(path: string, prefix: string, description: ResNetDescription): Place[] {
  const { stages, block, stem, deep } = description;
  const place = (inside: string, newer: string, older: string): Place => ({
    path: `${path}.${inside}`,
    names: [`${prefix}.${newer}`, `${prefix}.${older}`],
  });
  const pair = (inside: string, newer: string, [convolution, norm]: readonly [string, string]) => [
    place(`${inside}.convolution`, `${newer}.convolution`, convolution),
    place(`${inside}.norm`, `${newer}.normalization`, norm),
  ];
  const count = block === "basic" ? 2 : 3;
  return [
    ...(deep ? [0, 1, 2] : [0]).flatMap((at) =>
      pair(`stem.${at}`, `embedder.embedder${deep ? `.${at}` : ""}`, ["conv1", "bn1"]),
    ),
    ...stages.flatMap(({ width, layers, stride }, stage) =>
      Array.from({ length: layers }, (_, index) => {
        const [inside, newer] = [`stages.${stage}.${index}`, `encoder.stages.${stage}.layers.${index}`];
        const older = `layer${stage + 1}.${index}`;
        const isFirst = index === 0;
        const inputs = isFirst ? (stages[stage - 1]?.width ?? stem) : width;
        const kind = shortcutOf(description, { inputs, width, stride: isFirst ? stride : 1, isFirst });
        const shortcut = `${newer}.shortcut${kind === "pooled" ? ".1" : ""}`;
        return [
          ...Array.from({ length: count }, (_, at) =>
            pair(`${inside}.convolutions.${at}`, `${newer}.layer.${at}`, [
              `${older}.conv${at + 1}`,
              `${older}.bn${at + 1}`,
            ]),
          ).flat(),
          ...(kind !== "none"
            ? pair(`${inside}.shortcut`, shortcut, [`${older}.downsample.0`, `${older}.downsample.1`])
            : []),
        ];
      }).flat(),
    ),
  ];
}
