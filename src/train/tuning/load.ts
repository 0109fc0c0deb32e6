/** Loads pretrained models with adapters. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { loadCheckpoint } from "../../io/checkpoint/load.ts";
import { openGguf } from "../../io/gguf/open.ts";
import { locateModel } from "../../io/hub/locate.ts";
import type { Decoder } from "../../nn/models/decoder/decoder.ts";
import { type LoadModelOptions, loadModel } from "../../nn/models/loading/load_model.ts";
import { loadLora } from "../../nn/models/lora/peft.ts";
import { defaultGenerator } from "../../random/generator.ts";
import { loadTokenizer } from "../../text/load_tokenizer.ts";
import type { PretrainedTokenizer } from "../../text/pretrained_tokenizer.ts";
import { settingsKey } from "../quantized_file.ts";
import { adapt, restoreAdapter } from "./adapter.ts";
import type { TuningCheckpoint } from "./session.ts";

/** A model with its tokenizer and other data for generation. */
export interface AdaptedModel {
  readonly model: Decoder;
  readonly tokenizer: PretrainedTokenizer;
  /** Tokens that end a text, in addition to the tokenizer's. */
  readonly stopTokens: readonly number[];
}

/** Whether `loadModel` can load it: a folder with a config, or a GGUF file not written by `orchard quantize`. */
export function isModel(path: string): boolean {
  if (existsSync(join(path, "config.json"))) return true;
  if (!path.endsWith(".gguf") || !statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  using file = openGguf(path);
  return !Object.hasOwn(file.metadata, settingsKey);
}

/** Loads a model. @param adapter folder of an adapter in PEFT's format */
export async function loadAdapted(given: string, options: LoadModelOptions, adapter?: string): Promise<AdaptedModel> {
  const path = await locateModel("loadModel", given, { offline: options.offline });
  const tokenizer = loadTokenizer(path); // before the weights, so that errors appear immediately
  const { model, generation } = await loadModel(path, options);
  if (adapter !== undefined) loadLora(model, adapter);
  return { model: model.eval(), tokenizer, stopTokens: generation.stopTokens };
}

/** Loads the adapted model of a run; undefined for other runs. @param path a checkpoint, or a folder of checkpoints */
export async function loadTuned(path: string): Promise<AdaptedModel | undefined> {
  const checkpoint: TuningCheckpoint = await loadCheckpoint(path);
  const settings = checkpoint.extra?.tuning;
  if (settings === undefined) return undefined;
  const { model: modelName, dtype, quantize } = settings;
  const loaded = await loadAdapted(modelName, { ...(dtype && { dtype }), ...(quantize && { quantize }) });
  restoreAdapter(adapt(loaded.model, settings, defaultGenerator), checkpoint.model);
  return loaded;
}
