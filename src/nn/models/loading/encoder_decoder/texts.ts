/** Reads the settings of generation, languages and tasks from an encoder-decoder model's files. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { tupleOf } from "../../../../core/tuples.ts";
import type { BatchDefaults, EarlyStopping, TextSettings } from "../../encoder_decoder/texts.ts";
import { settingsIn, tokensIn } from "../generation.ts";
import type { Settings } from "../settings.ts";
import { type EncoderDecoderName, encoderDecoderFields } from "./architectures.ts";

/** The settings for generation: `generation_config.json`, or older fields of `config.json`. */
function generationSettings(name: EncoderDecoderName, folder: string): Settings {
  const own = "generation_config.json";
  const config = settingsIn(folder, "config.json");
  if (existsSync(join(folder, own))) return settingsIn(folder, own);
  return config.with(new Map([...Object.entries(encoderDecoderFields[name]), ...config.entries()]));
}

/** Returns the defaults of `nn.generateBatch`. */
export function batchDefaultsOf(name: EncoderDecoderName, folder: string): BatchDefaults {
  const settings = generationSettings(name, folder);
  const own = defaultsIn(settings);
  return { ...own, stopTokens: own.stopTokens ?? tokensIn(settingsIn(folder, "config.json")) };
}

/** Returns the token that generated texts begin with, if the generation settings have it. */
export const startTokenOf = (folder: string): number | undefined =>
  settingsIn(folder, "generation_config.json").wholeIfAny("decoder_start_token_id", 0);

function defaultsIn(settings: Settings): BatchDefaults {
  const whole = (name: string, least = 0) => settings.wholeIfAny(name, least);
  // lengths include the start token
  const without = (name: string) => {
    const length = whole(name);
    return length === undefined || length < 1 ? undefined : length - 1;
  };
  return {
    maxTokens: whole("max_new_tokens", 1) ?? without("max_length"),
    minTokens: whole("min_new_tokens") ?? without("min_length"),
    stopTokens: settings.get("eos_token_id") === undefined ? undefined : tokensIn(settings),
    numBeams: whole("num_beams", 1),
    lengthPenalty: settings.numberIfAny("length_penalty"),
    earlyStopping: earlyStoppingOf(settings),
    noRepeatNgramSize: whole("no_repeat_ngram_size"),
    repetitionPenalty: settings.positiveIfAny("repetition_penalty"),
    forcedBeginToken: whole("forced_bos_token_id"),
    forcedEndToken: forcedEndOf(settings),
    badWords: badWordsOf(settings),
  };
}

function earlyStoppingOf(settings: Settings): EarlyStopping | undefined {
  const value = settings.get("early_stopping");
  if (value === undefined || typeof value === "boolean" || value === "never") return value;
  throw settings.wrong("early_stopping", 'true, false or "never"', value);
}

/** A list of forced end tokens allows any of them; the first one is used. */
function forcedEndOf(settings: Settings): number | undefined {
  const value = settings.get("forced_eos_token_id");
  return Array.isArray(value) ? (value[0] as number) : settings.wholeIfAny("forced_eos_token_id", 0);
}

function badWordsOf(settings: Settings): number[][] | undefined {
  const value = settings.get("bad_words_ids");
  if (value === undefined) return undefined;
  const isWord = (word: unknown) => Array.isArray(word) && word.length > 0 && word.every(Number.isSafeInteger);
  if (Array.isArray(value) && value.every(isWord)) return value;
  throw settings.wrong("bad_words_ids", "a list of lists of tokens", value);
}

/** Reads the languages and tasks of a model. */
export function textSettingsOf(folder: string): TextSettings {
  const [config, tokenizer] = tupleOf(
    ["config.json", "tokenizer_config.json"].map((name) => settingsIn(folder, name)),
    2,
  );
  const tasks = config.inner("task_specific_params");
  const name = tokenizer.textIfAny("tokenizer_class") ?? "";
  return {
    languageLast: /^MBartTokenizer/.test(name) || tokenizer.flag("legacy_behaviour", false),
    source: tokenizer.textIfAny("source_lang"),
    target: tokenizer.textIfAny("target_lang"),
    tasks: new Map(
      (tasks?.names ?? []).map((task) => {
        const own = tasks!.inner(task)!;
        return [task, { prefix: own.textIfAny("prefix") ?? "", defaults: defaultsIn(own) }];
      }),
    ),
  };
}
