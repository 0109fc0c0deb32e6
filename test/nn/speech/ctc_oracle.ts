/** Small wav2vec2, HuBERT and WavLM models of `transformers` with their results: scripts/fixtures/models/ctc.py. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { io } from "../../../src/index.ts";
import { weight } from "../models/weights.ts";
import type { Recording } from "./oracle.ts";

export interface CtcCase {
  readonly config: Readonly<Record<string, unknown>> & { readonly model_type: string };
  readonly vocabulary: readonly string[];
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly normalize: boolean;
  readonly audio: Recording;
  readonly shapes: Readonly<Record<string, number[]>>;
  readonly text: string;
  readonly words: readonly (readonly [word: string, start: number, end: number])[];
}

const fixture = join(packageRoot, "test", "fixtures", "speech", "ctc");
export const { cases }: { cases: CtcCase[] } = JSON.parse(readFileSync(`${fixture}.json`, "utf8"));
export const answers = io.loadSafetensors(`${fixture}.safetensors`);

/** Writes the folder of a model, with changes of its config and of the names of its weights. */
export async function writeCtcModel(
  path: string,
  own: CtcCase,
  changes: object = {},
  rename = (key: string): string => key,
): Promise<void> {
  mkdirSync(path, { recursive: true });
  const write = (file: string, value: object) => writeFileSync(join(path, file), JSON.stringify(value));
  write("config.json", { ...own.config, ...changes });
  write("vocab.json", Object.fromEntries(own.vocabulary.map((symbol, at) => [symbol, at])));
  write("tokenizer_config.json", own.tokenizer);
  write("preprocessor_config.json", {
    do_normalize: own.normalize,
    feature_extractor_type: "Wav2Vec2FeatureExtractor",
  });
  const tensors = Object.entries(own.shapes).map(([key, shape]) => [rename(key), weight(key, shape)] as const);
  await io.saveSafetensors(join(path, "model.safetensors"), Object.fromEntries(tensors));
}
