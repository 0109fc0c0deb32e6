/** `POST /v1/audio/transcriptions` and `POST /v1/audio/translations`. */
import type { infer as Infer } from "zod";
import { FileFormatError, PackageError } from "../core/errors.ts";
import { loadAudioFor } from "../io/audio/load.ts";
import { Wav2Vec2 } from "../nn/models/wav2vec2/wav2vec2.ts";
import { formatTranscription } from "../nn/speech/format.ts";
import { type SpeechModel, transcribe } from "../nn/speech/transcribe.ts";
import type { Transcription, TranscriptionSegment } from "../nn/speech/transcription.ts";
import { ApiError } from "./api_error.ts";
import { anything, optional } from "./schemas.ts";
import { z } from "./zod.ts";

/** A speech recognition model that a server uses. */
export interface ServedSpeech {
  /** The model's name in the API. */
  readonly name: string;
  readonly speech: SpeechModel;
}

const aFile = z.custom<File>((value) => value instanceof File, "expected a file");
const aNumber = z
  .string()
  .regex(/^\d*\.?\d+$/, "expected a number")
  .transform(Number);

/** The form of a request. */
export const speechForm = z.strictObject({
  file: aFile,
  model: z.string(),
  language: optional(z.string()),
  prompt: optional(z.string()),
  response_format: z.enum(["json", "text", "srt", "verbose_json", "vtt"]).default("json"),
  temperature: optional(aNumber),
  timestamp_granularities: z.array(z.enum(["word", "segment"])).default(["segment"]),
  stream: optional(z.literal("false", "streams of transcripts are not supported")),
  chunking_strategy: anything,
});

export type SpeechForm = Infer<typeof speechForm>;

/** Transcribes or translates the recording of a request. @throws {ApiError} 400 */
export async function speechAnswer(
  { name, speech }: ServedSpeech,
  form: SpeechForm,
  task: "transcribe" | "translate",
  signal: AbortSignal,
): Promise<Response> {
  check(name, speech, form, task);
  const { response_format: format, timestamp_granularities: granularities } = form;
  const audio = await audioOf(form.file);
  const seconds = audio.samples.shape[1] / audio.sampleRate;
  if (seconds > MOST_SECONDS) {
    audio.samples.dispose();
    throw new ApiError(400, `expected at most ${MOST_SECONDS} seconds, got ${Math.round(seconds)}`, null, "file");
  }
  const hasWords = format === "verbose_json" && granularities.includes("word");
  try {
    const result = await transcribe(speech, audio, {
      task,
      language: form.language || undefined,
      initialPrompt: form.prompt || undefined,
      wordTimestamps: hasWords,
      signal,
      // as in OpenAI's API, 0 means that a window that fails is retried at a higher temperature
      temperature: form.temperature === 0 ? undefined : form.temperature,
    });
    return written(result, format, granularities);
  } finally {
    audio.samples.dispose();
  }
}

function check(name: string, speech: SpeechModel, form: SpeechForm, task: string): void {
  const { language, temperature = 0 } = form;
  if (speech instanceof Wav2Vec2) {
    for (const key of ["language", "prompt"] as const)
      if (form[key]) throw new ApiError(400, `the model ${name} has no option ${key}; omit it`, "invalid_value", key);
    if (temperature > 0)
      throw new ApiError(400, `the model ${name} has no temperature; omit it`, "invalid_value", "temperature");
    if (task === "translate") throw new ApiError(400, `the model ${name} can't translate`, null, "model");
    return;
  }
  const { settings } = speech;
  const codes = [...(settings?.languages.keys() ?? [])];
  const known = codes.length === 0 ? ["en"] : codes;
  if (language !== undefined && !known.includes(language)) {
    const got = JSON.stringify(language.slice(0, 200));
    throw new ApiError(400, `expected a language of ${name} (${known.join(", ")}), got ${got}`, null, "language");
  }
  if (temperature > 1) throw new ApiError(400, "expected a temperature from 0 to 1", "invalid_value", "temperature");
  if (task === "translate" && settings?.tasks.has("translate") !== true)
    throw new ApiError(400, `the model ${name} can't translate`, null, "model");
}

/** A gigabyte of float32 samples. */
const MOST_SAMPLES = 2 ** 28;
/** Limits the samples after conversion to 16 kHz: a small file with a low sample rate may be long. */
const MOST_SECONDS = 16_384;

async function audioOf(file: File) {
  try {
    return await loadAudioFor("serve", new Uint8Array(await file.arrayBuffer()), MOST_SAMPLES);
  } catch (error) {
    if (error instanceof FileFormatError || error instanceof PackageError)
      throw new ApiError(400, error.message, "invalid_file_format", "file");
    throw error;
  }
}

function written(
  result: Transcription,
  format: SpeechForm["response_format"],
  granularities: readonly ("word" | "segment")[],
): Response {
  const usage = { type: "duration", seconds: Math.ceil(result.duration) };
  const { text, task, language, duration, segments } = result;
  switch (format) {
    case "json":
      return Response.json({ text: text.trim(), usage });
    case "text":
      return plain(`${text.trim()}\n`);
    case "srt":
    case "vtt":
      return plain(formatTranscription(result, format));
    case "verbose_json":
      return Response.json({
        task,
        language: nameOf(language),
        duration,
        text: text.trim(),
        ...(granularities.includes("segment") && { segments: segments.map(segmentOf) }),
        ...(granularities.includes("word") && {
          words: segments.flatMap(({ words = [] }) =>
            words.map(({ word, start, end }) => ({ word: word.trim(), start, end })),
          ),
        }),
        usage,
      });
  }
}

const plain = (text: string): Response =>
  new Response(text, { headers: { "Content-Type": "text/plain; charset=utf-8" } });

/** The API names languages in English. */
const nameOf = (code: string): string =>
  (new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code).toLowerCase();

const segmentOf = (segment: TranscriptionSegment) => ({
  id: segment.id,
  seek: segment.seek,
  start: segment.start,
  end: segment.end,
  text: segment.text,
  tokens: segment.tokens,
  temperature: segment.temperature,
  avg_logprob: segment.averageLogProbability,
  compression_ratio: segment.compressionRatio,
  no_speech_prob: segment.noSpeechProbability,
});
