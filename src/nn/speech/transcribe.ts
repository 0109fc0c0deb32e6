/** Transcribes speech with a {@link Whisper} or {@link Wav2Vec2} model. */
import { noGrad } from "../../autograd/modes.ts";
import { ArgumentError } from "../../core/errors.ts";
import { either, instanceOf, listOf } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { indexSelect } from "../../ops/indexing/gather.ts";
import { cat } from "../../ops/join/cat.ts";
import { narrow } from "../../ops/view/slice.ts";
import { defaultGenerator } from "../../random/generator.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { Wav2Vec2 } from "../models/wav2vec2/wav2vec2.ts";
import { Whisper } from "../models/whisper/whisper.ts";
import { checkCtc, transcribeWithCtc } from "./ctc.ts";
import { type Decoded, decodeWindows, likeliest } from "./decode.ts";
import { SAMPLE_RATE } from "./features.ts";
import {
  checkLanguage,
  type TranscribeOptions,
  type TranscribeSettings,
  temperaturesOf,
  transcribeOptions,
} from "./options.ts";
import { wholeRecording } from "./recording.ts";
import { rulesOf } from "./rules.ts";
import { type AudioInput, anInput, samplesOf } from "./samples.ts";
import { Session } from "./session.ts";
import { restored, samplesIn, speechProbabilities, speechRanges } from "./silence.ts";
import type { Transcription } from "./transcription.ts";

const readCall = parameters("transcribe", {
  model: operand(either(instanceOf(Whisper, "a Whisper model"), instanceOf(Wav2Vec2, "a Wav2Vec2 model"))),
  audio: operand(either(anInput, listOf(anInput, "a list of recordings"))),
  ...transcribeOptions,
});

/** A model of {@link transcribe}: a decoder of texts, or a CTC model such as wav2vec2 and HuBERT. */
export type SpeechModel = Whisper | Wav2Vec2;

/**
 * Transcribes speech. With Whisper, audio of any length is decoded in windows of 30 s, as OpenAI's `transcribe` does,
 * and several recordings are decoded together, in batches. A CTC model computes the likeliest symbol of each frame in
 * overlapping windows of 30 s. Channels are averaged, and other sample rates are converted.
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
 * @throws {ArgumentError} for a model without tokenizer or special tokens, languages that it does not support, and
 * options that a CTC model does not have.
 * @throws {PackageError} `packageMissing`, for formats that require a package.
 * @throws {FileError} for files that can't be read. @throws {FileFormatError} for damaged files.
 * @throws {DTypeError} for samples that are not floats. @throws {ShapeError} for samples of another rank.
 */
export function transcribe(model: SpeechModel, audio: AudioInput, options?: TranscribeOptions): Promise<Transcription>;
export function transcribe(
  model: SpeechModel,
  audio: readonly AudioInput[],
  options?: TranscribeOptions,
): Promise<Transcription[]>;
export async function transcribe(...values: unknown[]): Promise<Transcription | Transcription[]> {
  const { model, audio, ...options } = readCall(values);
  if (options.wordTimestamps && !options.timestamps)
    throw new ArgumentError("transcribe", "noTimestamps", "wordTimestamps requires timestamps: true");
  const inputs = Array.isArray(audio) ? audio : [audio];
  const results =
    model instanceof Wav2Vec2
      ? await transcribeEach(model, inputs, options)
      : await transcribeTogether(model, inputs, options);
  return Array.isArray(audio) ? results : results[0];
}

/** Transcribes one recording after the other. */
async function transcribeEach(
  model: Wav2Vec2,
  inputs: readonly AudioInput[],
  options: TranscribeSettings,
): Promise<Transcription[]> {
  const settings = checkCtc(model, options);
  return whileEvaluating(model, async () => {
    const results: Transcription[] = [];
    for (const input of inputs) {
      using speech = await speechOf(input, options);
      results.push(speech.silent ?? speech.restore(await transcribeWithCtc(model, settings, speech.samples, options)));
    }
    return results;
  });
}

/** @internal Returns the tokenizer and the special tokens. @throws {ArgumentError} for options that do not fit. */
export function checkWhisper(operation: string, model: Whisper, options: TranscribeSettings) {
  if (options.wordTimestamps && !options.timestamps)
    throw new ArgumentError(operation, "noTimestamps", "wordTimestamps requires timestamps: true");
  const { tokenizer, settings } = model;
  if (!tokenizer || !settings)
    throw new ArgumentError(
      operation,
      "noTokenizer",
      "expected a model with a tokenizer and special tokens; load a folder with tokenizer.json and " +
        "generation_config.json",
    );
  checkLanguage(settings, options);
  temperaturesOf(options);
  return { tokenizer, settings };
}

/** Decodes windows of several recordings together. */
async function transcribeTogether(
  model: Whisper,
  inputs: readonly AudioInput[],
  options: TranscribeSettings,
): Promise<Transcription[]> {
  const { tokenizer, settings } = checkWhisper("transcribe", model, options);
  return whileEvaluating(model, async () => {
    const results: Transcription[] = [];
    for (let first = 0; first < inputs.length; first += options.batch) {
      const sessions: Session[] = [];
      const finish: (() => Transcription)[] = [];
      try {
        for (const input of inputs.slice(first, first + options.batch)) {
          using speech = await speechOf(input, options);
          const { silent, restore } = speech;
          const { melBins } = model.description;
          const recording = silent ? undefined : wholeRecording(speech.samples, melBins, model.windowFrames);
          const session = recording && new Session(model, tokenizer, settings, options, recording);
          if (session) sessions.push(session);
          finish.push(() => silent ?? restore(session!.result()));
        }
        await run(model, sessions, options);
        results.push(...finish.map((result) => result()));
      } finally {
        for (const session of sessions) session[Symbol.dispose]();
      }
    }
    return results;
  });
}

/** The samples of a recording to transcribe. */
interface Speech extends Disposable {
  readonly samples: Tensor;
  /** The transcript of a recording without speech; undefined if there is some. */
  readonly silent: Transcription | undefined;
  /** Returns a transcript with the times of the recording. */
  readonly restore: (result: Transcription) => Transcription;
}

/** Reads a recording. With `vad`, removes silence. */
async function speechOf(input: AudioInput, options: TranscribeSettings): Promise<Speech> {
  const samples = await samplesOf(input, options.sampleRate);
  const dispose = { [Symbol.dispose]: () => samples.dispose() };
  const { vad, task, language = "und" } = options;
  if (!vad) return { samples, silent: undefined, restore: (result) => result, ...dispose };
  using whole = samples;
  const duration = samples.size / SAMPLE_RATE;
  const probabilities = await speechProbabilities(vad, (await whole.data()) as Float32Array);
  const ranges = speechRanges(probabilities, samples.size);
  if (ranges.length === 0)
    return {
      samples,
      silent: { text: "", language, task, duration, segments: [] },
      restore: (result) => result,
      ...dispose,
    };
  const kept = samplesIn(whole, ranges);
  return {
    samples: kept,
    silent: undefined,
    restore: (result) => restored(result, ranges, duration),
    [Symbol.dispose]: () => kept.dispose(),
  };
}

/** @internal Runs a function with a model in evaluation mode. */
export async function whileEvaluating<T>(model: SpeechModel, run: () => Promise<T>): Promise<T> {
  const training = model.modules().filter((part) => part.training);
  for (const part of training) part.training = false;
  try {
    return await run();
  } finally {
    for (const part of training) part.training = true;
  }
}

/** Decodes window after window of all recordings that are not finished. */
async function run(model: Whisper, sessions: readonly Session[], options: TranscribeSettings): Promise<void> {
  for (;;) {
    const active = sessions.filter(({ isDone }) => !isDone);
    if (active.length === 0) return;
    await decodeNext(model, active, options);
  }
}

/** @internal Decodes the next window of recordings. */
export async function decodeNext(
  model: Whisper,
  active: readonly Session[],
  options: TranscribeSettings,
): Promise<void> {
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
    await session.accept(decoded[at], row);
  }
}

/** Finds the likeliest language after the start token. */
async function detectLanguages(model: Whisper, sessions: readonly Session[], states: Tensor): Promise<void> {
  if (sessions.every(({ language }) => language !== undefined)) return;
  const { startToken, languages } = sessions[0].settings;
  const codes = [...languages.keys()];
  const tokens = tensor(
    sessions.map(() => [startToken]),
    { dtype: "int32" },
  );
  using logits = noGrad(() => tidy(() => toDType(model.decode(tokens, states), "float32")));
  const values = await logits.data();
  const size = values.length / sessions.length;
  for (const [at, session] of sessions.entries())
    session.language ??= codes[likeliest(codes.map((code) => values[at * size + languages.get(code)!]))];
}

/** Decodes a window of each recording; those that fail are decoded again at the next temperature. */
async function decodeWithFallback(
  model: Whisper,
  sessions: readonly Session[],
  states: Tensor,
  options: TranscribeSettings,
): Promise<Decoded[]> {
  const { settings } = sessions[0];
  const rule = rulesOf(settings, options.timestamps);
  const results: Decoded[] = [];
  let pending = sessions.map((_, at) => at);
  for (const temperature of temperaturesOf(options)) {
    for (const group of Map.groupBy(pending, (at) => sessions[at].prompt.length).values()) {
      using rows = noGrad(() => indexSelect(states, 0, tensor(group, { dtype: "int32" })));
      const prompts = group.map((at) => sessions[at].prompt);
      const decoded = await decodeWindows(model, rows, prompts, {
        temperature,
        rule,
        startLength: sessions[group[0]].start.length,
        signal: options.signal,
        maxTokens: options.maxTokens ?? Math.floor(model.description.contextLength / 2),
        endToken: settings.endToken,
        noSpeechToken: settings.noSpeechToken,
        generator: options.generator ?? defaultGenerator,
      });
      for (const [index, at] of group.entries()) results[at] = decoded[index];
    }
    pending = pending.filter((at) => sessions[at].fails(results[at]));
    if (pending.length === 0) break;
  }
  return results;
}
