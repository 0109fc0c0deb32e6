/** Maps the weights of an mmproj file, under llama.cpp's names, to the model's layers. */
import type { GgufReader } from "../../../../../io/gguf/file.ts";
import type {
  EncoderTowerDescription,
  PatchTowerDescription,
  VisionLanguageDescription,
} from "../../../vision_language/description.ts";
import type { ArchitectureName } from "../../architectures.ts";
import { type Place, placesOf } from "../../names.ts";
import type { VisionName } from "../../vision/architectures.ts";
import { visionPlaces } from "../../vision/names.ts";

/** Names of a block's layers; `#` stands for the index of the block. */
const blockNames = {
  attentionNorm: "v.blk.#.ln1",
  feedForwardNorm: "v.blk.#.ln2",
  "attention.queryKeyValue": "v.blk.#.attn_qkv",
  "attention.query": "v.blk.#.attn_q",
  "attention.key": "v.blk.#.attn_k",
  "attention.value": "v.blk.#.attn_v",
  attentionScale: "v.blk.#.ls1",
  feedForwardScale: "v.blk.#.ls2",
  "attention.output": "v.blk.#.attn_out",
  "feedForward.gate": "v.blk.#.ffn_gate",
} as const;

const encoderNames: Readonly<Record<string, string>> = {
  "embeddings.patch": "v.patch_embd",
  "embeddings.classToken": "v.class_embd",
  "embeddings.position": "v.position_embd",
  "embeddings.norm": "v.pre_ln",
  finalNorm: "v.post_ln",
};

/** Returns the names of a feed-forward's layers. Older files have `ffn_up` and `ffn_down` exchanged. */
export function feedForwardNames(file: GgufReader): Record<"feedForward.up" | "feedForward.down", string> {
  const [up, down] = ["v.blk.#.ffn_up", "v.blk.#.ffn_down"] as const;
  const [rows = 0, columns = 0] = file.info("v.blk.0.ffn_up.weight").shape;
  const norm = file.info("v.blk.0.ln1.weight").shape[0];
  const isExchanged = columns !== norm && rows === norm;
  return { "feedForward.up": isExchanged ? down : up, "feedForward.down": isExchanged ? up : down };
}

/** Returns the place of every layer with weights, of the language model and of the tower. */
export const mmprojPlaces = ({ text, tower }: VisionLanguageDescription, file: GgufReader): Place[] => [
  ...placesOf(text.architecture as ArchitectureName, text, "gguf"),
  ...(tower.kind === "patches" ? towerPlaces(tower, file) : encoderPlaces(tower, file)),
];

function encoderPlaces({ encoder, projector }: EncoderTowerDescription, file: GgufReader): Place[] {
  const names: Readonly<Record<string, string>> = { ...blockNames, ...feedForwardNames(file) };
  const place = (path: string, name: string, change?: Place["change"]): Place => ({
    path: `tower.projector.${path}`,
    names: [name],
    change,
  });
  return [
    ...visionPlaces(encoder.architecture as VisionName, encoder).map(({ path, change }): Place => {
      const [, index, end] = /^blocks\.(\d+)\.(.+)$/.exec(path) ?? [];
      const name = end === undefined ? encoderNames[path] : names[end].replace("#", index);
      return { path: `tower.encoder.${path}`, names: [name], change };
    }),
    ...projectorPlaces(projector, place),
  ];
}

function projectorPlaces(
  { norm, hidden }: EncoderTowerDescription["projector"],
  place: (path: string, name: string, change?: Place["change"]) => Place,
): Place[] {
  const mlp = (end: number) => (norm ? `mm.model.mlp.${end}` : `mm.${end - 1}`); // InternVL's names, and LLaVA's
  if (hidden) return [...(norm ? [place("norm", mlp(0))] : []), place("hidden", mlp(1)), place("output", mlp(3))];
  if (!norm) return [place("output", "mm.model.fc")];
  return [place("norm", "mm.soft_emb_norm"), place("output", "mm.input_projection", { kind: "transposed" })];
}

function towerPlaces({ layers, positionRows, deep = [] }: PatchTowerDescription, file: GgufReader): Place[] {
  const names = { ...blockNames, ...feedForwardNames(file) };
  const place = (path: string, name: string, change?: Place["change"]): Place => ({
    path: `tower.${path}`,
    names: [name],
    change,
  });
  const merger = (path: string, [norm, hidden, output]: readonly [string, string, string]): Place[] => [
    place(`${path}.norm`, norm),
    place(`${path}.hidden`, hidden),
    place(`${path}.output`, output),
  ];
  return [
    place("patch", "v.patch_embd", { kind: "reshaped" }),
    ...layers.flatMap(({ attention, feedForward }, index) =>
      Object.entries(names)
        .filter(([path]) => !path.endsWith("Scale") && (path !== "feedForward.gate" || feedForward.gated))
        .filter(([path]) => !/\.(query|key|value|queryKeyValue)$/.test(path) || /Value$/.test(path) === attention.fused)
        .map(([path, name]) => place(`blocks.${index}.${path}`, name.replace("#", `${index}`))),
    ),
    ...(positionRows === undefined ? [] : [place("position", "v.position_embd")]),
    ...merger("merger", ["v.post_ln", "mm.0", "mm.2"]),
    ...deep.flatMap((block, at) => {
      const end = (name: string) => `v.deepstack.${block}.${name}`;
      return merger(`deepMergers.${at}`, [end("norm"), end("fc1"), end("fc2")]);
    }),
  ];
}
