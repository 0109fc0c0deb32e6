/** Small image encoders of `transformers` with their results: scripts/fixtures/models/vision.py. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, type Tensor } from "../../../../src/index.ts";
import { weight } from "../weights.ts";

export interface Case {
  readonly config: Readonly<Record<string, unknown>> & { readonly architectures: readonly [string] };
  /** Height and width of the images. */
  readonly image: readonly [number, number];
  /** The names of results. */
  readonly outputs: readonly string[];
  /** The shapes of tensors in the order of the family's names; null for a tensor that the checkpoint lacks. */
  readonly shapes: readonly (number[] | null)[];
}

const fixture = join(packageRoot, "test", "fixtures", "vision", "models");
const { families }: { families: Record<string, { names: string[]; cases: Case[] }> } = JSON.parse(
  readFileSync(`${fixture}.json`, "utf8"),
);
const answers = io.loadSafetensors(`${fixture}.safetensors`);

export const cases: readonly (readonly [name: string, own: Case])[] = Object.entries(families).flatMap(
  ([family, { cases }]) => cases.map((own, at) => [`${family}.${at}`, own] as const),
);
export const tokens: Tensor = answers["tokens"];
export const answerOf = (name: string, output: string): Tensor => answers[`${name}.${output}`];

/** Writes the folder of a model; `more` are further files. */
export async function writeModel(path: string, name: string, { config, shapes }: Case): Promise<void> {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "config.json"), JSON.stringify(config));
  const { names } = families[name.replace(/\.\d+$/, "")];
  const tensors = names.flatMap((key, at) => {
    const shape = shapes[at];
    return shape ? [[key, weight(key, shape)] as const] : [];
  });
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
}
