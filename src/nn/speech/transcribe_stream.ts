/** Transcribes speech while it arrives. */
import { ArgumentError, DTypeError, ShapeError } from "../../core/errors.ts";
import { instanceOf } from "../../core/kinds.ts";
import { type Kind, operand, parameters } from "../../core/parameters.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { Whisper } from "../models/whisper/whisper.ts";
import { SAMPLE_RATE } from "./features.ts";
import { type TranscribeOptions, type TranscribeSettings, transcribeOptions } from "./options.ts";
import { LiveRecording } from "./recording.ts";
import { Session } from "./session.ts";
import { checkWhisper, decodeNext, whileEvaluating } from "./transcribe.ts";
import type { Transcription, TranscriptionSegment } from "./transcription.ts";

/** Samples at 16 kHz: floats, or a float tensor [samples]. */
export type AudioChunk = Float32Array | Tensor;

/** Options of {@link transcribeStream}. */
export type TranscribeStreamOptions = Omit<TranscribeOptions, "batch" | "vad" | "sampleRate">;

type Chunks = AsyncIterable<AudioChunk> | Iterable<AudioChunk>;

const someChunks: Kind<Chunks> = {
  expected: "an iterable of samples, such as an async generator",
  parse(value) {
    if (typeof value !== "object" || value === null || Tensor.isTensor(value) || ArrayBuffer.isView(value))
      return undefined;
    return Symbol.asyncIterator in value || Symbol.iterator in value ? (value as Chunks) : undefined;
  },
};

const { batch: _, vad: __, sampleRate: ___, ...options } = transcribeOptions;
const readCall = parameters("transcribeStream", {
  model: operand(instanceOf(Whisper, "a Whisper model")),
  audio: operand(someChunks),
  ...options,
});

/**
 * Transcribes speech while it arrives, with Whisper: yields the segments of each window of 30 s as soon as its samples
 * have arrived, and those of the rest at the end. The result of the generator is the whole transcript. Windows are
 * those of {@link transcribe}; since later samples are unknown, features are normalized by the loudest frame so far.
 *
 * @param audio samples at 16 kHz in pieces of any length
 *
 * @example
 * for await (const { start, text } of nn.transcribeStream(model, microphone)) console.log(start, text);
 *
 * @throws {ArgumentError} for a model without tokenizer or special tokens, and languages that it does not support.
 * @throws {DTypeError} for samples that are not floats. @throws {ShapeError} for samples of another rank.
 */
export function transcribeStream(
  model: Whisper,
  audio: AsyncIterable<AudioChunk> | Iterable<AudioChunk>,
  options?: TranscribeStreamOptions,
): AsyncGenerator<TranscriptionSegment, Transcription, undefined>;
export function transcribeStream(...values: unknown[]): AsyncGenerator<TranscriptionSegment, Transcription, undefined> {
  const { model, audio, ...given } = readCall(values);
  const options: TranscribeSettings = { ...given, batch: 1, vad: undefined, sampleRate: SAMPLE_RATE };
  const { tokenizer, settings } = checkWhisper("transcribeStream", model, options);
  const recording = new LiveRecording(model.description.melBins);
  return segmentsOf(new Session(model, tokenizer, settings, options, recording), recording, audio);
}

async function* segmentsOf(
  session: Session,
  recording: LiveRecording,
  audio: Chunks,
): AsyncGenerator<TranscriptionSegment, Transcription, undefined> {
  using _ = session;
  const { model, options } = session;
  const next = () => whileEvaluating(model, () => decodeNext(model, [session], options));
  let yielded = 0;
  const added = () => {
    const found = session.result().segments.slice(yielded);
    yielded += found.length;
    return found;
  };
  for await (const chunk of audio) {
    recording.add(await samplesIn(chunk));
    while (!session.isDone && recording.has(session.seek, model.windowFrames)) {
      await next();
      yield* added();
    }
  }
  recording.complete();
  while (!session.isDone) {
    await next();
    yield* added();
  }
  return session.result();
}

/** @throws {DTypeError} @throws {ShapeError} @throws {ArgumentError} */
async function samplesIn(chunk: AudioChunk): Promise<Float32Array> {
  if (chunk instanceof Float32Array) return chunk;
  if (!Tensor.isTensor(chunk))
    throw new ArgumentError(
      "transcribeStream",
      "wrongChunk",
      "expected pieces of audio to be Float32Arrays or tensors",
    );
  if (!isFloat(chunk.dtype))
    throw new DTypeError("transcribeStream", "notFloat", `expected samples to be floats, got ${chunk.describe()}`);
  if (chunk.rank !== 1)
    throw new ShapeError("transcribeStream", "wrongShape", `expected samples to be [samples], got ${chunk.describe()}`);
  return Float32Array.from(await chunk.data(), Number);
}
