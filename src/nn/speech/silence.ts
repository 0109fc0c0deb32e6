/** Finds speech in a recording with silero's voice activity detector, so that silence need not be transcribed. */

import { noGrad } from "../../autograd/modes.ts";
import { lastElement } from "../../core/collections.ts";
import { ArgumentError } from "../../core/errors.ts";
import { tensor } from "../../ops/creation/tensor.ts";
import { cat } from "../../ops/join/cat.ts";
import { narrow } from "../../ops/view/slice.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import { SAMPLE_RATE } from "./features.ts";
import type { Transcription } from "./transcription.ts";

/** A voice activity detector: silero's model, as `io.loadOnnx("silero_vad.onnx")` returns it. */
export interface SpeechDetector {
  run(inputs: Readonly<Record<string, Tensor>>): Promise<Readonly<Record<string, unknown>>>;
}

/** Samples from `start` to before `end`. */
export interface SpeechRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The sizes of the detector's inputs: the samples per probability, the samples of context before them, and the state.
 */
const [STEP, CONTEXT, STATE] = [512, 64, 128];
/** Speech begins above the first probability, and ends below the second. */
const [SPEECH, SILENCE] = [0.5, 0.35];
/** The silence that ends a range of speech, and the audio to keep on both sides, in samples, as in faster-whisper. */
const [LEAST_SILENCE, PADDING] = [2 * SAMPLE_RATE, 0.4 * SAMPLE_RATE];

/**
 * Returns the probability of speech in each block of 512 samples at 16 kHz.
 *
 * @param samples float32 [samples]
 *
 * @throws {ArgumentError} `notDetector` for a model with other outputs.
 */
export async function speechProbabilities(detector: SpeechDetector, samples: Float32Array): Promise<number[]> {
  const found: number[] = [];
  let state: Tensor = tensor(new Float32Array(2 * STATE), { shape: [2, 1, STATE] });
  const rate = tensor(BigInt64Array.of(BigInt(SAMPLE_RATE)), { shape: [] });
  for (let start = 0; start < samples.length; start += STEP) {
    const input = new Float32Array(CONTEXT + STEP);
    const first = Math.max(0, start - CONTEXT);
    input.set(samples.subarray(first, start + STEP), CONTEXT - (start - first));
    const { output, stateN } = await detector.run({
      input: tensor(input, { shape: [1, CONTEXT + STEP] }),
      state,
      sr: rate,
    });
    if (!Tensor.isTensor(output) || !Tensor.isTensor(stateN))
      throw new ArgumentError(
        "transcribe",
        "notDetector",
        "expected vad to be silero's silero_vad.onnx with the outputs output and stateN, got another model",
      );
    found.push(Number((await output.data())[0]));
    state.dispose();
    state = stateN;
  }
  return found;
}

/**
 * Returns the ranges of speech. A range begins at a probability of at least 0.5, and ends where probabilities stay
 * below 0.35 for two seconds; it is extended by 0.4 s on both sides.
 *
 * Source: `get_speech_timestamps_from_probs` of the package silero-vad 6.2.3, with the settings of faster-whisper.
 */
export function speechRanges(probabilities: readonly number[], length: number): SpeechRange[] {
  const ranges: { start: number; end: number }[] = [];
  let [start, silence]: [number | undefined, number | undefined] = [undefined, undefined];
  for (const [index, probability] of probabilities.entries()) {
    const at = index * STEP;
    if (probability >= SPEECH) [start, silence] = [start ?? at, undefined];
    else if (start !== undefined && probability < SILENCE) {
      silence ??= at;
      if (at - silence < LEAST_SILENCE) continue;
      if (silence > start) ranges.push({ start, end: silence });
      [start, silence] = [undefined, undefined];
    }
  }
  if (start !== undefined && length > start) ranges.push({ start, end: length });
  return padded(ranges, length);
}

/** Extends ranges at both ends, at most to the middle of the silence between them. */
function padded(ranges: readonly SpeechRange[], length: number): SpeechRange[] {
  return ranges.map(({ start, end }, at) => {
    const before = at === 0 ? 2 * start : start - ranges[at - 1].end;
    const after = at === ranges.length - 1 ? 2 * (length - end) : ranges[at + 1].start - end;
    const by = (silence: number) => Math.min(PADDING, Math.floor(silence / 2));
    return { start: start - by(before), end: end + by(after) };
  });
}

/** Returns the samples of some ranges. */
export function samplesIn(samples: Tensor, ranges: readonly SpeechRange[]): Tensor {
  return noGrad(() =>
    tidy(() =>
      cat(
        ranges.map(({ start, end }) => narrow(samples, 0, start, end - start)),
        0,
      ),
    ),
  );
}

/** Returns a transcript of some ranges with the times of the whole recording. */
export function restored(result: Transcription, ranges: readonly SpeechRange[], duration: number): Transcription {
  const time = (seconds: number, isEnd: boolean) => originalTime(ranges, seconds, isEnd);
  const times = <T extends { readonly start: number; readonly end: number }>(part: T): T => ({
    ...part,
    start: time(part.start, false),
    end: time(part.end, true),
  });
  const segments = result.segments.map((segment) => ({
    ...times(segment),
    ...(segment.words && { words: segment.words.map(times) }),
  }));
  return { ...result, duration, segments };
}

/** At the boundary of two ranges, a start time belongs to the later range and an end time to the earlier one. */
function originalTime(ranges: readonly SpeechRange[], seconds: number, isEnd: boolean): number {
  let before = 0;
  const at = seconds * SAMPLE_RATE;
  for (const { start, end } of ranges) {
    const within = at - before;
    const size = end - start;
    if (isEnd ? within <= size : within < size) return (start + within) / SAMPLE_RATE;
    before += size;
  }
  return lastElement(ranges).end / SAMPLE_RATE;
}
