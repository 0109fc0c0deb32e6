/** A checkpoint's settings for generation: begin and end tokens, sampling, and the chat template. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isSafeInteger } from "../../../core/values.ts";
import { withFileErrors } from "../../../io/file_errors.ts";
import type { GgufReader } from "../../../io/gguf/file.ts";
import { readConfig } from "../hugging_face/config.ts";
import { Settings } from "./settings.ts";

/** The model's settings for generation. Each may be missing. */
export interface GenerationSettings {
  /** The token that begins a text. */
  readonly beginToken: number | undefined;
  /** The tokens that end a text. */
  readonly stopTokens: readonly number[];
  /** The token that pads a batch. */
  readonly paddingToken: number | undefined;
  /** The recommended temperature, if the model is meant for sampling. */
  readonly temperature: number | undefined;
  /** The recommended `topK`, if the model is meant for sampling. */
  readonly topK: number | undefined;
  /** The recommended `topP`, if the model is meant for sampling. */
  readonly topP: number | undefined;
  /** The recommended repetition penalty. */
  readonly repetitionPenalty: number | undefined;
}

/** @internal Reads a JSON file in a folder; no settings if the file does not exist. */
export function settingsIn(folder: string, name: string): Settings {
  const path = join(folder, name);
  if (!existsSync(path)) return new Settings(path, new Map());
  return new Settings(path, new Map(Object.entries(readConfig("loadModel", folder, name))));
}

/** Reads a folder's `generation_config.json`, with `config.json` as a fallback. */
export function generationOf(folder: string): GenerationSettings {
  const generation = settingsIn(folder, "generation_config.json");
  const whole = settingsIn(folder, "config.json");
  const text = whole.inner("text_config") ?? whole.with(new Map());
  const config = whole.with(new Map([...text.entries(), ...whole.entries()]));
  const token = (name: string) => generation.wholeIfAny(name, 0) ?? config.wholeIfAny(name, 0);
  const samples = generation.flag("do_sample", false);
  const ifSampled = (name: string) => (samples ? generation.positiveIfAny(name) : undefined);
  const stop = generation.get("eos_token_id") === undefined ? config : generation;
  return {
    beginToken: token("bos_token_id"),
    paddingToken: token("pad_token_id"),
    stopTokens: tokensIn(stop),
    temperature: ifSampled("temperature"),
    topK: ifSampled("top_k"),
    topP: ifSampled("top_p"),
    repetitionPenalty: generation.positiveIfAny("repetition_penalty"),
  };
}

/** @internal Returns the tokens that end a text. */
export function tokensIn(settings: Settings): number[] {
  const value = settings.get("eos_token_id");
  if (value === undefined) return [];
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.every((token): token is number => isSafeInteger(token) && token >= 0)) return list;
  throw settings.wrong("eos_token_id", "a token or a list of tokens", value);
}

/** Reads the tokenizer metadata of a GGUF file. */
export function generationOfGguf({ metadata }: GgufReader): GenerationSettings {
  const token = (name: string) => {
    const value = metadata[`tokenizer.ggml.${name}_token_id`]?.value;
    return typeof value === "number" ? value : undefined;
  };
  const ends = [token("eos"), token("eot"), token("eom")].filter((token) => token !== undefined);
  return {
    beginToken: token("bos"),
    stopTokens: [...new Set(ends)],
    paddingToken: token("padding"),
    temperature: undefined,
    topK: undefined,
    topP: undefined,
    repetitionPenalty: undefined,
  };
}

/**
 * Reads a folder's chat template: `chat_template.jinja`, or a field of `tokenizer_config.json`; or of
 * `chat_template.json`, which older versions write for models that read images.
 */
export function chatTemplateOf(folder: string): string | undefined {
  const path = join(folder, "chat_template.jinja");
  if (existsSync(path)) return withFileErrors("loadModel", path, () => readFileSync(path, "utf8"));
  const read = (name: string) => settingsIn(folder, name).get("chat_template");
  const value = read("chat_template.json") ?? read("tokenizer_config.json");
  if (typeof value === "string") return value;
  // There may be several templates by name, such as one for tools.
  const named: unknown = Array.isArray(value)
    ? value.find((template) => template?.name === "default")?.template
    : undefined;
  return typeof named === "string" ? named : undefined;
}

/** Reads the chat template of a GGUF file. */
export function chatTemplateOfGguf({ metadata }: GgufReader): string | undefined {
  const value = metadata["tokenizer.chat_template"]?.value;
  return typeof value === "string" ? value : undefined;
}
