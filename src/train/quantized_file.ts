/** The files of `orchard quantize`: weights, and the settings of their run in the metadata. */
import { FileFormatError, OrchardError } from "../core/errors.ts";
import { openGguf } from "../io/gguf/open.ts";
import { isJsonObject, parseJson } from "../io/json.ts";
import { openSafetensors } from "../io/safetensors/open.ts";
import { loadWeights } from "../io/weights.ts";
import type { LanguageModel } from "../nn/language_model.ts";
import { loadQuantized } from "../nn/quantized_model.ts";
import { Generator } from "../random/generator.ts";
import { makeModel } from "./model.ts";
import { architectures, checkSettings, presets, type Settings, tokenizers, trainingDTypes } from "./settings.ts";
import { tokenizerOf } from "./text.ts";

/** The key of the metadata. */
export const settingsKey = "orchard.settings";

/** The settings in a file, as text; undefined where it is no such file. */
function settingsText(path: string): string | undefined {
  if (path.endsWith(".gguf")) {
    using file = openGguf(path);
    const own = Object.hasOwn(file.metadata, settingsKey) ? file.metadata[settingsKey] : undefined;
    if (own?.type === "string") return String(own.value);
    throw new FileFormatError("generate", "notOfARun", path, "expected a file of `orchard quantize`, got another one");
  }
  if (!path.endsWith(".safetensors")) return undefined;
  using file = openSafetensors(path);
  return Object.hasOwn(file.metadata, settingsKey) ? file.metadata[settingsKey] : undefined;
}

/**
 * The model in a file of `orchard quantize`; undefined where it is another safetensors file.
 *
 * @throws {FileFormatError} for settings that no run has. @throws {StateDictError} for weights of another model.
 */
export function loadQuantizedFile(path: string): { model: LanguageModel; settings: Settings } | undefined {
  const text = settingsText(path);
  if (text === undefined) return undefined;
  const settings = readSettings(path, text);
  const weights = loadWeights(path);
  const model = makeModel(settings, tokenizerOf(settings).vocabularySize, new Generator(0)).eval();
  loadQuantized(model, weights);
  return { model, settings };
}

const choices = { architecture: architectures, tokenizer: tokenizers, dtype: trainingDTypes } as const;

/** A file that anybody may have written: its sizes decide how much memory the model takes. */
const MOST: Partial<Record<keyof Settings, number>> = { layers: 1024, width: 65_536, context: 2 ** 24, heads: 65_536 };

function readSettings(path: string, text: string): Settings {
  const fail = (message: string) => new FileFormatError("generate", "notOfARun", path, `its settings: ${message}`);
  const json = parseJson(text, (_, message) => fail(message));
  if (!isJsonObject(json)) throw fail("expected an object");
  const settings = { ...presets.cpu, ...json } as unknown as Settings;
  for (const [name, value] of Object.entries(presets.cpu) as [keyof Settings, unknown][]) {
    const own: unknown = settings[name];
    const among: readonly unknown[] | undefined = name in choices ? choices[name as keyof typeof choices] : undefined;
    const most = MOST[name] ?? Number.POSITIVE_INFINITY;
    const fits = typeof own === typeof value && Array.isArray(own) === Array.isArray(value);
    if (!fits || among?.includes(own) === false || (typeof own === "number" && own > most))
      throw fail(`${name} is none that a run has`);
  }
  try {
    return checkSettings(settings);
  } catch (cause) {
    throw cause instanceof OrchardError ? fail(cause.message) : cause;
  }
}
