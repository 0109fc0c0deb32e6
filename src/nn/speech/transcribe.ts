/** Transcribes speech with a {@link Whisper} model. */
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { aPath, either, instanceOf, listOf } from "../../core/kinds.ts";
import { type Kind, operand, parameters } from "../../core/parameters.ts";
import { type Audio, loadAudioFor } from "../../io/audio/load.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { clone } from "../../ops/copy/copy.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { indexSelect } from "../../ops/indexing/gather.ts";
import { cat } from "../../ops/join/cat.ts";
import { mean } from "../../ops/reduction/mean.ts";
import { narrow } from "../../ops/view/slice.ts";
import { defaultGenerator } from "../../random/generator.ts";
import { resampled } from "../../signal/resample.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { Whisper } from "../models/whisper/whisper.ts";
import { type Decoded, decodeWindows, likeliest } from "./decode.ts";
import { SAMPLE_RATE } from "./features.ts";
import {
  checkLanguage,
  type TranscribeOptions,
  type TranscribeSettings,
  temperaturesOf,
  transcribeOptions,
} from "./options.ts";
import { rulesOf } from "./rules.ts";
import { Session } from "./session.ts";
import type { Transcription } from "./transcription.ts";

/** A recording: a path, the result of `io.loadAudio`, or a tensor of floats [samples] or [channels, samples]. */
export type AudioInput = string | Audio | Tensor;

const anAudio: Kind<Audio> = {
  expected: "the result of loadAudio",
  parse(value) {
    const { samples, sampleRate } = (value ?? {}) as Partial<Audio>;
    return Tensor.isTensor(samples) && typeof sampleRate === "number" && sampleRate > 0 ? (value as Audio) : undefined;
  },
};
const anInput: Kind<AudioInput> = either(aPath, aTensor, anAudio);

const readCall = parameters("transcribe", {
  model: operand(instanceOf(Whisper, "a Whisper model")),
  audio: operand(either(anInput, listOf(anInput, "a list of recordings"))),
  ...transcribeOptions,
});

/**
 * Transcribes speech. Audio of any length is decoded in windows of 30 s, as OpenAI's `transcribe` does. Channels are
 * averaged, and other sample rates are converted. Several recordings are decoded together, in batches.
 *
 * @param audio a path of a WAV, FLAC or MP3 file, the result of `io.loadAudio`, or a tensor of floats [samples] or
 * [channels, samples] with the option `sampleRate`; or a list of them
 * @returns a transcript, or a list of transcripts
 *
 * @example
 * const { model } = await nn.loadModel<nn.Whisper>("openai/whisper-tiny");
 * const { text, segments } = await nn.transcribe(model, "speech.wav", { language: "en" });
 * segments[0]; // { id: 0, start: 0, end: 3.2, text: " Hello there.", … }
 *
 * @throws {ArgumentError} for a model without tokenizer or special tokens, and languages that it does not support.
 * @throws {PackageError} `packageMissing`, for formats that require a package.
 * @throws {FileError} for files that can't be read. @throws {FileFormatError} for damaged files.
 * @throws {DTypeError} for samples that are not floats. @throws {ShapeError} for samples of another rank.
 */
export function transcribe(model: Whisper, audio: AudioInput, options?: TranscribeOptions): Promise<Transcription>;
export function transcribe(
  model: Whisper,
  audio: readonly AudioInput[],
  options?: TranscribeOptions,
): Promise<Transcription[]>;
export async function transcribe(...values: unknown[]): Promise<Transcription | Transcription[]> {
  const { model, audio, ...options } = readCall(values);
  const { tokenizer, settings } = model;
  if (!tokenizer || !settings)
    throw new ArgumentError(
      "transcribe",
      "noTokenizer",
      "expected a model with a tokenizer and special tokens; load a folder with tokenizer.json and " +
        "generation_config.json",
    );
  checkLanguage(settings, options);
  if (options.wordTimestamps && !options.timestamps)
    throw new ArgumentError("transcribe", "noTimestamps", "wordTimestamps requires timestamps: true");
  temperaturesOf(options);
  const inputs = Array.isArray(audio) ? audio : [audio];
  const training = model.modules().filter((part) => part.training);
  for (const part of training) part.training = false;
  try {
    const results: Transcription[] = [];
    for (let first = 0; first < inputs.length; first += options.batch) {
      const sessions: Session[] = [];
      try {
        for (const input of inputs.slice(first, first + options.batch)) {
          using samples = await samplesOf(input, options.sampleRate);
          sessions.push(new Session(model, tokenizer, settings, options, samples));
        }
        await run(model, sessions, options);
        results.push(...sessions.map((session) => session.result()));
      } finally {
        for (const session of sessions) session[Symbol.dispose]();
      }
    }
    return Array.isArray(audio) ? results : results[0]!;
  } finally {
    for (const part of training) part.training = true;
  }
}

/** Returns the samples at 16 kHz: float32 [samples]. */
async function samplesOf(input: AudioInput, rate: number): Promise<Tensor> {
  const given = typeof input === "string" ? await loadAudioFor("transcribe", input) : input;
  const { samples, sampleRate } = Tensor.isTensor(given) ? { samples: given, sampleRate: rate } : given;
  if (!isFloat(samples.dtype))
    throw new DTypeError("transcribe", "notFloat", `expected samples to be floats, got ${samples.describe()}`);
  if (samples.rank !== 1 && samples.rank !== 2)
    throw new ShapeError(
      "transcribe",
      "wrongShape",
      `expected audio to be [samples] or [channels, samples], got ${samples.describe()}`,
    );
  return noGrad(() =>
    tidy(() => {
      const mono = samples.rank === 2 ? mean(toDType(samples, "float32"), { dim: 0 }) : toDType(samples, "float32");
      return clone(resampled("transcribe", mono, sampleRate, SAMPLE_RATE));
    }),
  );
}

/** Decodes window after window of all recordings that are not finished. */
async function run(model: Whisper, sessions: readonly Session[], options: TranscribeSettings): Promise<void> {
  for (;;) {
    const active = sessions.filter(({ isDone }) => !isDone);
    if (active.length === 0) return;
    options.signal?.throwIfAborted();
    using states = noGrad(() =>
      tidy(() =>
        model.encode(
          cat(
            active.map((session) => session.window()),
            { dim: 0 },
          ),
        ),
      ),
    );
    await detectLanguages(model, active, states);
    const decoded = await decodeWithFallback(model, active, states, options);
    for (const [at, session] of active.entries()) {
      using row = noGrad(() => narrow(states, 0, at, 1));
      await session.accept(decoded[at]!, row);
    }
  }
}

/** Finds the likeliest language after the start token. */
async function detectLanguages(model: Whisper, sessions: readonly Session[], states: Tensor): Promise<void> {
  if (sessions.every(({ language }) => language !== undefined)) return;
  const { startToken, languages } = sessions[0]!.settings;
  const codes = [...languages.keys()];
  const tokens = tensor(
    sessions.map(() => [startToken]),
    { dtype: "int32" },
  );
  using logits = noGrad(() => tidy(() => toDType(model.decode(tokens, states), "float32")));
  const values = (await logits.data()) as Float32Array;
  const size = values.length / sessions.length;
  for (const [at, session] of sessions.entries())
    session.language ??= codes[likeliest(codes.map((code) => values[at * size + languages.get(code)!]!))]!;
}

/** Decodes a window of each recording; those that fail are decoded again at the next temperature. */
async function decodeWithFallback(
  model: Whisper,
  sessions: readonly Session[],
  states: Tensor,
  options: TranscribeSettings,
): Promise<Decoded[]> {
  const { settings } = sessions[0]!;
  const rule = rulesOf(settings, options.timestamps);
  const results: Decoded[] = [];
  let pending = sessions.map((_, at) => at);
  for (const temperature of temperaturesOf(options)) {
    for (const group of Map.groupBy(pending, (at) => sessions[at]!.prompt.length).values()) {
      using rows = noGrad(() => indexSelect(states, 0, tensor(group, { dtype: "int32" })));
      const prompts = group.map((at) => sessions[at]!.prompt);
      const decoded = await decodeWindows(model, rows, prompts, {
        ...{ temperature, rule, startLength: sessions[group[0]!]!.start.length, signal: options.signal },
        maxTokens: options.maxTokens ?? Math.floor(model.description.contextLength / 2),
        ...{ endToken: settings.endToken, noSpeechToken: settings.noSpeechToken },
        generator: options.generator ?? defaultGenerator,
      });
      for (const [index, at] of group.entries()) results[at] = decoded[index]!;
    }
    pending = pending.filter((at) => sessions[at]!.fails(results[at]!));
    if (pending.length === 0) break;
  }
  return results;
}
