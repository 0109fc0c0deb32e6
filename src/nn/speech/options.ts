/** The options of `transcribe`. */
import { ArgumentError } from "../../core/errors.ts";
import { aNumber, choice, either, flag, instanceOf, listOf, text } from "../../core/kinds.ts";
import { count, finite, type NumberRule, notNegative } from "../../core/options.ts";
import { type Kind, named, type Parsed } from "../../core/parameters.ts";
import type { Generator } from "../../random/generator.ts";
import { aGenerator } from "../layers/kinds.ts";
import type { WhisperSettings } from "../models/whisper/settings.ts";
import { SAMPLE_RATE } from "./features.ts";
import { aSpeechRate } from "./samples.ts";
import type { SpeechDetector } from "./silence.ts";

/** Options of {@link transcribe}. */
export interface TranscribeOptions {
  /** The code of the spoken language, such as `"de"`. Default: detected in the first window. */
  readonly language?: string | undefined;
  /** Whether to transcribe the speech or to translate it into English. Default `"transcribe"`. */
  readonly task?: "transcribe" | "translate" | undefined;
  /** Whether segments have start and end times. Without them, each window is one segment. Default true. */
  readonly timestamps?: boolean | undefined;
  /** Whether to find the times of words; requires a model with a tokenizer and `timestamps`. Default false. */
  readonly wordTimestamps?: boolean | undefined;
  /**
   * The temperature, or several of them: if a window fails at one, the next is tried. 0 chooses the likeliest token.
   * Default [0, 0.2, 0.4, 0.6, 0.8, 1].
   */
  readonly temperature?: number | readonly number[] | undefined;
  /** A window fails if its compression ratio is above this. Infinity: never. Default 2.4. */
  readonly compressionRatioThreshold?: number | undefined;
  /** A window fails if its mean log probability is below this. −Infinity: never. Default −1. */
  readonly logProbabilityThreshold?: number | undefined;
  /**
   * A window is silent if its probability of no speech is above this, and its mean log probability is not above
   * `logProbabilityThreshold`. Infinity: never. Default 0.6.
   */
  readonly noSpeechThreshold?: number | undefined;
  /**
   * Whether the text of earlier windows is the prompt of the next one. False makes repetitions less likely. Default
   * true.
   */
  readonly conditionOnPreviousText?: boolean | undefined;
  /** Text before the first window, such as names that occur in the audio. Default: none. */
  readonly initialPrompt?: string | undefined;
  /** The maximum number of tokens of a window. Default: half of the model's context. */
  readonly maxTokens?: number | undefined;
  /** Samples per second of audio that is a tensor: a whole number of at least 1000. Default 16,000. */
  readonly sampleRate?: number | undefined;
  /** The maximum number of recordings whose windows are decoded together. Default 8. */
  readonly batch?: number | undefined;
  /**
   * A voice activity detector, silero's model from `io.loadOnnx("silero_vad.onnx")`: silence of more than two seconds
   * is not transcribed. Times refer to the whole recording. Default: none.
   */
  readonly vad?: SpeechDetector | undefined;
  /** The random number generator for temperatures above 0. Default: the global one, which `manualSeed` seeds. */
  readonly generator?: Generator | undefined;
  /** Aborts between two tokens, with the signal's reason as the error. */
  readonly signal?: AbortSignal | undefined;
}

const orInfinity: NumberRule = { holds: (value) => value > 0, expected: "a number above 0, or Infinity" };
const orMinusInfinity: NumberRule = { holds: (value) => value <= 0, expected: "a number of at most 0, or -Infinity" };
const aTemperature = aNumber({
  holds: (value) => notNegative.holds(value) && finite.holds(value),
  expected: "a finite number of at least 0",
});

const aDetector: Kind<SpeechDetector> = {
  expected: "silero's model from io.loadOnnx",
  parse: (value) =>
    typeof (value as Partial<SpeechDetector> | null | undefined)?.run === "function"
      ? (value as SpeechDetector)
      : undefined,
};

/** @internal The kinds of {@link TranscribeOptions}. */
export const transcribeOptions = {
  language: named(text),
  task: named(choice("transcribe", "translate"), "transcribe"),
  timestamps: named(flag, true),
  wordTimestamps: named(flag, false),
  temperature: named(either(aTemperature, listOf(aTemperature, "a list of temperatures"))),
  compressionRatioThreshold: named(aNumber(orInfinity), 2.4),
  logProbabilityThreshold: named(aNumber(orMinusInfinity), -1),
  noSpeechThreshold: named(aNumber(orInfinity), 0.6),
  conditionOnPreviousText: named(flag, true),
  initialPrompt: named(text),
  maxTokens: named(aNumber(count)),
  sampleRate: named(aSpeechRate, SAMPLE_RATE),
  batch: named(aNumber(count), 8),
  vad: named(aDetector),
  generator: named(aGenerator),
  signal: named(instanceOf(AbortSignal, "an AbortSignal")),
} as const;

/** @internal Checked options. */
export type TranscribeSettings = Parsed<typeof transcribeOptions>;

/** @internal Returns the temperatures to try in order. @throws {ArgumentError} for an empty list. */
export function temperaturesOf({ temperature = [0, 0.2, 0.4, 0.6, 0.8, 1] }: TranscribeSettings): readonly number[] {
  const list = typeof temperature === "number" ? [temperature] : temperature;
  if (list.length > 0) return list;
  throw new ArgumentError("transcribe", "noTemperature", "expected at least one temperature, got an empty list");
}

/**
 * @internal Checks the language and the task. @throws {ArgumentError} for a language or task that the model does not
 * support.
 */
export function checkLanguage({ languages, tasks }: WhisperSettings, { language, task }: TranscribeSettings): void {
  const isEnglish = languages.size === 0;
  if (isEnglish ? language !== undefined && language !== "en" : language !== undefined && !languages.has(language)) {
    const known = isEnglish ? "en: the model only knows English" : [...languages.keys()].join(", ");
    throw new ArgumentError(
      "transcribe",
      "unknownLanguage",
      `expected language to be one of ${known}, got ${language}`,
    );
  }
  if (task === "translate" && !tasks.has("translate"))
    throw new ArgumentError("transcribe", "noTranslation", "this model can't translate; use the task transcribe");
}
