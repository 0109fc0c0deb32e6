/** Small encoder-decoder models of `transformers` with their results: scripts/fixtures/models/encoder_decoders.py. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../../src/core/paths.ts";
import { io, nn } from "../../../../src/index.ts";
import { weight } from "../encoder/oracle.ts";

/** A name of transformers' `generate`, with its value. */
export type Options = Readonly<Record<string, unknown>>;
export interface Generation {
  readonly options: Options;
  readonly tokens: readonly number[][];
  readonly scores: readonly number[] | null;
}
export interface Model {
  readonly config: Readonly<Record<string, unknown>>;
  /** By name: the shape, and for trained weights Σ gradient · probe and Σ |gradient|. */
  readonly weights: Readonly<Record<string, readonly [shape: number[], probe?: number, sum?: number]>>;
  readonly loss: number;
  readonly generations: readonly Generation[];
}

const fixture = join(packageRoot, "test", "fixtures", "encoder_decoders", "models");
export const { models }: { models: readonly Model[] } = JSON.parse(readFileSync(`${fixture}.json`, "utf8"));
export const answers = io.loadSafetensors(`${fixture}.safetensors`);
export const lengths = Array.from(answers["lengths"].dataSync(), Number);

/** Writes the folder of a model. */
export async function writeModel(path: string, { config, weights }: Model, changes: object = {}): Promise<string> {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "config.json"), JSON.stringify({ ...config, ...changes }));
  const tensors = Object.entries(weights).map(([key, [shape]]) => [key, weight(key, shape)] as const);
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
  return path;
}

export const load = async (path: string): Promise<nn.EncoderDecoder> =>
  (await nn.loadModel<nn.EncoderDecoder>(path, { dtype: "float32" })).model;
