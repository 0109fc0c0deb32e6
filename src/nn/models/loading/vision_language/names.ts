/** Where the weights of towers are in checkpoints, by Hugging Face's names. */
import type {
  EncoderTowerDescription,
  PatchTowerDescription,
  VisionLanguageDescription,
} from "../../vision_language/description.ts";
import type { ArchitectureName } from "../architectures.ts";
import { type Place, placesOf } from "../names.ts";
import type { VisionName } from "../vision/architectures.ts";
import { visionPlaces } from "../vision/names.ts";

/** Returns the place of every layer with weights. */
export const visionLanguagePlaces = ({ text, tower }: VisionLanguageDescription): Place[] => [
  ...placesOf(text.architecture as ArchitectureName, text, "huggingFace"),
  ...(tower.kind === "patches" ? towerPlaces(tower) : encoderPlaces(tower)),
];

/**
 * Returns the names of the layers of blocks in the modules of `transformers`, which adapters have. Names in checkpoints
 * have other prefixes.
 */
export function moduleNames(description: VisionLanguageDescription): Map<string, string> {
  const isIdefics = /^(idefics3|smolvlm)$/.test(description.architecture);
  const [text, encoder] = isIdefics ? ["text_model", "vision_model"] : ["language_model", "vision_tower"];
  const named = ({ path, names }: Place): string => {
    const within = (part: RegExp, prefix: string) => {
      const suffix = part.exec(names[0])?.[0];
      return suffix === undefined ? names[0] : `model.${prefix}.${suffix}`;
    };
    if (path.startsWith("tower.encoder.")) return within(/encoder\.layers?\.\d+\..*$/, encoder);
    return path.startsWith("tower.") ? within(/blocks\.\d+\..*$/, "visual") : within(/layers\.\d+\..*$/, text);
  };
  return new Map(visionLanguagePlaces(description).map((place) => [place.path, named(place)]));
}

/** Prefixes of an encoder's names in vision-language checkpoints. */
const encoderPrefixes = ["vision_tower.", "model.vision_tower.", "model.", ""] as const;
const projectorPrefixes = ["multi_modal_projector.", "model.multi_modal_projector.", "model.connector."] as const;

function encoderPlaces({ encoder, projector }: EncoderTowerDescription): Place[] {
  const place = (path: string, name: string, change?: Place["change"]): Place => ({
    path: `tower.projector.${path}`,
    names: projectorPrefixes.map((prefix) => `${prefix}${name}`),
    change,
  });
  return [
    ...visionPlaces(encoder.architecture as VisionName, encoder).map(({ path, names, change }) => ({
      path: `tower.encoder.${path}`,
      change,
      names: names.flatMap((name) => encoderPrefixes.map((prefix) => `${prefix}${name}`)),
    })),
    ...(projector.norm
      ? [projector.hidden ? place("norm", "layer_norm") : place("norm", "mm_soft_emb_norm", { kind: "plusOne" })]
      : []),
    ...(projector.hidden ? [place("hidden", "linear_1")] : []),
    projector.hidden
      ? place("output", "linear_2")
      : projector.norm
        ? place("output", "mm_input_projection_weight", { kind: "transposed" })
        : place("output", "modality_projection.proj"),
  ];
}

const prefixes = ["visual.", "model.visual."] as const;

function towerPlaces({ layers, positionRows, deep = [] }: PatchTowerDescription): Place[] {
  const isThird = positionRows !== undefined; // Qwen3-VL uses other names
  const plain = isThird ? thirdLayers : plainLayers;
  const mergers = [["merger", "merger"], ...deep.map((_, at) => [`deepMergers.${at}`, `deepstack_merger_list.${at}`])];
  const place = (path: string, name: string, change?: Place["change"]): Place => ({
    path: `tower.${path}`,
    names: prefixes.map((prefix) => `${prefix}${name}`),
    change,
  });
  return [
    place("patch", "patch_embed.proj", { kind: "reshaped" }),
    ...layers.flatMap(({ feedForward }, index) =>
      Object.entries({ ...block, ...(feedForward.gated ? gatedLayers : plain) }).map(([path, name]) =>
        place(`blocks.${index}.${path}`, `blocks.${index}.${name}`),
      ),
    ),
    ...(isThird ? [place("position", "pos_embed")] : []),
    ...mergers.flatMap(([path, name]) =>
      Object.entries(isThird ? thirdMerger : merger).map(([end, layer]) => place(`${path}.${end}`, `${name}.${layer}`)),
    ),
  ];
}

const block = {
  attentionNorm: "norm1",
  "attention.queryKeyValue": "attn.qkv",
  "attention.output": "attn.proj",
  feedForwardNorm: "norm2",
} as const;
const plainLayers = { "feedForward.up": "mlp.fc1", "feedForward.down": "mlp.fc2" } as const;
const gatedLayers = {
  "feedForward.gate": "mlp.gate_proj",
  "feedForward.up": "mlp.up_proj",
  "feedForward.down": "mlp.down_proj",
} as const;
const thirdLayers = { "feedForward.up": "mlp.linear_fc1", "feedForward.down": "mlp.linear_fc2" } as const;
const thirdMerger = { norm: "norm", hidden: "linear_fc1", output: "linear_fc2" } as const;
const merger = { norm: "ln_q", hidden: "mlp.0", output: "mlp.2" } as const;
