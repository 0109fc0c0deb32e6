/** Files of `orchard quantize`: weights, with the settings of their run in the metadata. */
import { FileFormatError, OrchardError } from "../core/errors.ts";
import { entriesOf } from "../core/records.ts";
import type { Tokenizer } from "../data/tokenizer.ts";
import { openGguf } from "../io/gguf/open.ts";
import { isJsonObject, parseJson } from "../io/json.ts";
import { openSafetensors } from "../io/safetensors/open.ts";
import { loadWeights } from "../io/weights.ts";
import type { LanguageModel } from "../nn/models/language_model.ts";
import { loadQuantized } from "../nn/quantized/model.ts";
import type { ProductPrecision } from "../quant/matmul/matmul.ts";
import { Generator } from "../random/generator.ts";
import { fromGgufWeights } from "./gguf_names.ts";
import { makeModel } from "./model.ts";
import { architectures, checkSettings, presets, type Settings, tokenizers, trainingDTypes } from "./settings.ts";
import { tokenizerOf } from "./text.ts";

/** The metadata key of the settings. */
export const settingsKey = "orchard.settings";

/** The metadata key of the `tokenizer.json` of a tokenizer that was trained on the text. */
export const tokenizerKey = "orchard.tokenizer";

/** Reads the settings and the tokenizer in a file as text; undefined if it is not such a file. */
function textsIn(path: string): { settings: string; tokenizer: string | undefined } | undefined {
  if (path.endsWith(".gguf")) {
    using file = openGguf(path);
    const of = (key: string) => {
      const field = Object.hasOwn(file.metadata, key) ? file.metadata[key] : undefined;
      return field?.type === "string" ? String(field.value) : undefined;
    };
    const settings = of(settingsKey);
    if (settings !== undefined) return { settings, tokenizer: of(tokenizerKey) };
    throw new FileFormatError(
      "generate",
      "notOfARun",
      path,
      "expected a file written by `orchard quantize`, got one written by another program",
    );
  }
  if (!path.endsWith(".safetensors")) return undefined;
  using file = openSafetensors(path);
  const of = (key: string) => (Object.hasOwn(file.metadata, key) ? file.metadata[key] : undefined);
  const settings = of(settingsKey);
  return settings === undefined ? undefined : { settings, tokenizer: of(tokenizerKey) };
}

/**
 * Loads the model in a file of `orchard quantize`; returns undefined for other safetensors files.
 *
 * @throws {FileFormatError} for invalid settings. @throws {StateDictError} for weights of a different model.
 */
export function loadQuantizedFile(
  path: string,
  precision?: ProductPrecision,
): { model: LanguageModel; tokenizer: Tokenizer } | undefined {
  const texts = textsIn(path);
  if (texts === undefined) return undefined;
  const settings = readSettings(path, texts.settings);
  const tokenizer = readTokenizer(path, settings, texts.tokenizer);
  const stored = loadWeights(path);
  const weights = path.endsWith(".gguf") ? fromGgufWeights(settings, stored) : stored;
  const model = makeModel(settings, tokenizer.vocabularySize, new Generator(0)).eval();
  loadQuantized(model, weights, { precision });
  return { model, tokenizer };
}

function readTokenizer(path: string, settings: Settings, text: string | undefined): Tokenizer {
  const fail = (message: string) => new FileFormatError("generate", "notOfARun", path, `its tokenizer: ${message}`);
  const json = text === undefined ? undefined : parseJson(text, (_, message) => fail(message));
  try {
    return tokenizerOf(settings, json);
  } catch (cause) {
    throw cause instanceof OrchardError ? fail(cause.message) : cause;
  }
}

const choices = { architecture: architectures, tokenizer: tokenizers, dtype: trainingDTypes } as const;

/** Upper bounds of settings. Files may be untrusted, and their sizes determine the model's memory. */
const MOST: Partial<Record<keyof Settings, number>> = { layers: 1024, width: 65_536, context: 2 ** 24, heads: 65_536 };

function readSettings(path: string, text: string): Settings {
  const fail = (message: string) => new FileFormatError("generate", "notOfARun", path, `its settings: ${message}`);
  const json = parseJson(text, (_, message) => fail(message));
  if (!isJsonObject(json)) throw fail("expected an object");
  const settings = { ...presets.cpu, ...json };
  for (const [name, value] of entriesOf(presets.cpu)) {
    const setting: unknown = settings[name];
    const among: readonly unknown[] | undefined = name in choices ? choices[name as keyof typeof choices] : undefined;
    const most = MOST[name] ?? Number.POSITIVE_INFINITY;
    const fits = typeof setting === typeof value && Array.isArray(setting) === Array.isArray(value);
    if (!fits || among?.includes(setting) === false || (typeof setting === "number" && setting > most))
      throw fail(`${name} is not a setting of a run`);
  }
  try {
    return checkSettings(settings);
  } catch (cause) {
    throw cause instanceof OrchardError ? fail(cause.message) : cause;
  }
}
