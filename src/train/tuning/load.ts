/** Models that exist, with what they learned. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { loadCheckpoint } from "../../io/checkpoint/load.ts";
import { openGguf } from "../../io/gguf/open.ts";
import type { Decoder } from "../../nn/models/decoder/decoder.ts";
import { type LoadModelOptions, loadModel } from "../../nn/models/loading/load_model.ts";
import { loadLora } from "../../nn/models/lora/peft.ts";
import { defaultGenerator } from "../../random/generator.ts";
import { loadTokenizer } from "../../text/load_tokenizer.ts";
import type { PretrainedTokenizer } from "../../text/pretrained_tokenizer.ts";
import { settingsKey } from "../quantized_file.ts";
import { adapt, restoreAdapter } from "./adapter.ts";
import type { TuningCheckpoint } from "./session.ts";

/** A model and what is needed to generate with it. */
export interface AdaptedModel {
  readonly model: Decoder;
  readonly tokenizer: PretrainedTokenizer;
  /** The tokens that end a text, besides the tokenizer's own. */
  readonly stopTokens: readonly number[];
}

/** Whether `loadModel` is to load it: a folder with a config, or a GGUF file that is none of `orchard quantize`. */
export function isModel(path: string): boolean {
  if (existsSync(join(path, "config.json"))) return true;
  if (!path.endsWith(".gguf") || !statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  using file = openGguf(path);
  return !Object.hasOwn(file.metadata, settingsKey);
}

/** @param adapter its folder, in PEFT's format */
export async function loadAdapted(path: string, options: LoadModelOptions, adapter?: string): Promise<AdaptedModel> {
  const tokenizer = loadTokenizer(path); // before the weights: a mistake is found at once
  const { model, generation } = await loadModel(path, options);
  if (adapter !== undefined) loadLora(model, adapter);
  return { model: model.eval() as Decoder, tokenizer, stopTokens: generation.stopTokens };
}

/** The model of a run that adapted one; undefined for another run. @param path a checkpoint, or a folder of some */
export async function loadTuned(path: string): Promise<AdaptedModel | undefined> {
  const checkpoint: TuningCheckpoint = await loadCheckpoint(path);
  const settings = checkpoint.extra?.tuning;
  if (settings === undefined) return undefined;
  const { model: own, dtype, quantize } = settings;
  const loaded = await loadAdapted(own, { ...(dtype && { dtype }), ...(quantize && { quantize }) });
  restoreAdapter(adapt(loaded.model, settings, defaultGenerator), checkpoint.model);
  return loaded;
}
