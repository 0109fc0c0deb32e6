/** Transcribes recordings with a {@link Wav2Vec2} model. */

import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { noGrad } from "../../autograd/modes.ts";
import { lastElement } from "../../core/collections.ts";
import { ArgumentError } from "../../core/errors.ts";
import { toDType } from "../../ops/copy/cast.ts";
import { add } from "../../ops/elementwise/arithmetic.ts";
import { div } from "../../ops/elementwise/division.ts";
import { exp } from "../../ops/elementwise/exponential.ts";
import { sqrt } from "../../ops/elementwise/power.ts";
import { stack } from "../../ops/join/cat.ts";
import { amax, argmax } from "../../ops/reduction/extrema.ts";
import { varMean } from "../../ops/reduction/variance.ts";
import { logSoftmax } from "../../ops/softmax/softmax.ts";
import { narrow } from "../../ops/view/slice.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { CtcSettings } from "../models/wav2vec2/settings.ts";
import type { Wav2Vec2 } from "../models/wav2vec2/wav2vec2.ts";
import { compressionRatioOf } from "./compression.ts";
import { type CtcFrames, type CtcSymbol, type CtcWord, symbolsOf, textOf, wordsOf } from "./ctc_text.ts";
import { SAMPLE_RATE } from "./features.ts";
import type { TranscribeSettings } from "./options.ts";
import type { Transcription, TranscriptionSegment } from "./transcription.ts";
import type { WordTime } from "./words.ts";

/** The length of a window, and of the margin at each end whose frames are discarded, in seconds. */
const [WINDOW, OVERLAP] = [30, 5];
/** @internal The number of samples in a window. */
export const WINDOW_SAMPLES: number = WINDOW * SAMPLE_RATE;
/** A pause of `PAUSE` seconds ends a segment. No segment is longer than `LONGEST` seconds. */
const [PAUSE, LONGEST] = [0.6, 15];

/** Samples of a recording. Only the frames from `first` to before `end` are used. */
interface Window {
  readonly start: number;
  readonly samples: number;
  readonly first: number;
  readonly end: number;
}

/**
 * @internal Checks that a CTC model supports the options. @throws {ArgumentError} for a model without symbols, and
 * options that only Whisper has.
 */
export function checkCtc(
  { settings, description: { classifier } }: Wav2Vec2,
  options: TranscribeSettings,
): CtcSettings {
  const names = ["language", "temperature", "initialPrompt", "maxTokens"] as const;
  const given = [
    ...names.filter((name) => options[name] !== undefined),
    ...(options.task === "translate" ? ["task"] : []),
  ];
  if (given.length > 0)
    throw new ArgumentError(
      "transcribe",
      "onlyWhisper",
      `${given.join(", ")} requires a Whisper model, got a CTC model, which has one language and task`,
    );
  if (classifier)
    throw new ArgumentError(
      "transcribe",
      "otherTask",
      "expected a Whisper or CTC model, got a classifier; use nn.classifyAudio",
    );
  if (settings) return settings;
  throw new ArgumentError(
    "transcribe",
    "noSymbols",
    "expected a model with symbols; load a folder with vocab.json, or set model.settings",
  );
}

/**
 * @internal Transcribes a recording with a CTC model: the likeliest symbol of each frame. Windows of 30 s overlap, and
 * the frames at their ends are discarded, as in the pipeline of `transformers` with `chunk_length_s=30`.
 *
 * @param samples float32 [samples] at 16 kHz
 */
export async function transcribeWithCtc(
  model: Wav2Vec2,
  settings: CtcSettings,
  samples: Tensor,
  options: TranscribeSettings,
): Promise<Transcription> {
  const frames = await framesOf(model, settings, samples, options);
  const symbols = symbolsOf(frames, settings);
  const duration = samples.size / SAMPLE_RATE;
  const secondsPerFrame = model.samplesPerFrame / SAMPLE_RATE;
  const groups = options.timestamps ? segmentsOf(wordsOf(symbols, settings), secondsPerFrame) : [];
  const segments = options.timestamps
    ? groups.map((words, id) => segmentOf(words, id, { secondsPerFrame, settings, options }))
    : wholeOf(symbols, settings, duration);
  return { text: textOf(symbols, settings), language: "und", task: "transcribe", duration, segments };
}

/** Returns the windows of a recording. */
function windowsOf(model: Wav2Vec2, count: number): Window[] {
  const { samplesPerFrame: unit } = model;
  const whole = (seconds: number) => Math.max(1, Math.round((seconds * SAMPLE_RATE) / unit));
  const [length, overlap] = [whole(WINDOW), whole(OVERLAP)];
  const windows: Window[] = [];
  for (let start = 0; model.framesOf(count - start * unit) > 0; start += length - 2 * overlap) {
    const isLast = (start + length) * unit >= count;
    const samples = isLast ? count - start * unit : length * unit;
    const end = isLast ? model.framesOf(samples) : length - overlap;
    windows.push({ start: start * unit, samples, first: start === 0 ? 0 : overlap, end });
    if (isLast) break;
  }
  return windows;
}

async function framesOf(
  model: Wav2Vec2,
  settings: CtcSettings,
  samples: Tensor,
  { batch, signal }: TranscribeSettings,
): Promise<CtcFrames> {
  const windows = windowsOf(model, samples.size);
  const symbols: number[] = [];
  const probabilities: number[] = [];
  const groups = [windows.slice(0, -1), windows.slice(-1)]; // the last window has another length
  for (const group of groups)
    for (let at = 0; at < group.length; at += batch) {
      signal?.throwIfAborted();
      await yieldToEventLoop();
      const members = group.slice(at, at + batch);
      using found = noGrad(() =>
        tidy(() =>
          likeliest(
            model,
            members.map((window) => inputOf(samples, window, settings)),
          ),
        ),
      );
      const values = (await found.data()) as Float32Array;
      const count = found.shape[2];
      for (const [row, { first, end }] of members.entries())
        for (let frame = first; frame < end; frame++) {
          symbols.push(values[2 * row * count + frame]);
          probabilities.push(values[(2 * row + 1) * count + frame]);
        }
    }
  return { symbols, probabilities };
}

/** Returns the samples of a window with mean 0 and variance 1, if the model requires that. */
const inputOf = (samples: Tensor, { start, samples: count }: Window, { normalizes }: CtcSettings): Tensor =>
  normalizes ? normalizedSamples(narrow(samples, 0, start, count)) : narrow(samples, 0, start, count);

/** @internal Returns samples with mean 0 and variance 1. */
export function normalizedSamples(samples: Tensor): Tensor {
  const { variance, mean } = varMean(samples, { correction: 0 });
  return div(add(samples, mean, { alpha: -1 }), sqrt(add(variance, VARIANCE_EPS)));
}

/** As in `transformers`' `Wav2Vec2FeatureExtractor`. */
const VARIANCE_EPS = 1e-7;

/** Returns the index of the likeliest symbol of each frame, and its probability: float32 [windows, 2, frames]. */
function likeliest(model: Wav2Vec2, windows: readonly Tensor[]): Tensor {
  const chances = logSoftmax(toDType(model.forward(stack(windows, 0)), "float32"), { dim: -1 });
  return stack([toDType(argmax(chances, { dim: -1 }), "float32"), exp(amax(chances, { dim: -1 }))], 1);
}

/** Splits words into segments at pauses. */
function segmentsOf(words: readonly CtcWord[], secondsPerFrame: number): CtcWord[][] {
  const segments: CtcWord[][] = [];
  for (const word of words) {
    const last = segments.at(-1);
    const [start, end] = [word.symbols[0].start, lastElement(word.symbols).end];
    const isPause = last && (start - lastElement(lastElement(last).symbols).end) * secondsPerFrame >= PAUSE;
    const isLong = last && (end - last[0].symbols[0].start) * secondsPerFrame > LONGEST;
    if (!last || isPause || isLong) segments.push([word]);
    else last.push(word);
  }
  return segments;
}

interface Context {
  readonly secondsPerFrame: number;
  readonly settings: CtcSettings;
  readonly options: TranscribeSettings;
}

function segmentOf(words: readonly CtcWord[], id: number, context: Context): TranscriptionSegment {
  const { secondsPerFrame, settings, options } = context;
  const timed = words.map(
    ({ word, symbols }, at): WordTime => ({
      word: at === 0 ? word : `${settings.wordSeparator}${word}`,
      start: symbols[0].start * secondsPerFrame,
      end: lastElement(symbols).end * secondsPerFrame,
      probability: meanOf(symbols, ({ probability }) => probability),
    }),
  );
  return {
    id,
    seek: 0,
    start: timed[0].start,
    end: lastElement(timed).end,
    text: timed.map(({ word }) => word).join(""),
    ...chancesOf(
      words.flatMap(({ symbols }) => symbols),
      settings,
    ),
    ...(options.wordTimestamps && { words: timed }),
  };
}

/** Returns one segment without times, or none for silence. */
function wholeOf(symbols: readonly CtcSymbol[], settings: CtcSettings, duration: number): TranscriptionSegment[] {
  const text = textOf(symbols, settings);
  return text === "" ? [] : [{ id: 0, seek: 0, start: 0, end: duration, text, ...chancesOf(symbols, settings) }];
}

function chancesOf(symbols: readonly CtcSymbol[], settings: CtcSettings) {
  return {
    tokens: symbols.map(({ symbol }) => symbol),
    temperature: 0,
    noSpeechProbability: 0,
    averageLogProbability: meanOf(symbols, ({ probability }) => Math.log(probability)),
    compressionRatio: compressionRatioOf(textOf(symbols, settings)),
  };
}

const meanOf = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((sum, item) => sum + of(item), 0) / items.length;
