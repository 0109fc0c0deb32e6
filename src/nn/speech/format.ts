/** Writes transcripts as text, subtitles or JSON. */
import { ArgumentError } from "../../core/errors.ts";
import { anObject, choice } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import type { Transcription, TranscriptionSegment } from "./transcription.ts";

/** The formats of {@link formatTranscription}. */
export const transcriptFormats = ["txt", "srt", "vtt", "json"] as const;
/** A format of a transcript: text with a line for each segment, SubRip or WebVTT subtitles, or JSON. */
export type TranscriptFormat = (typeof transcriptFormats)[number];

const readCall = parameters("formatTranscription", {
  transcription: operand(anObject<Transcription>("the result of transcribe")),
  format: operand(choice(...transcriptFormats)),
});

/**
 * Writes a transcript: `"txt"` has a line for each segment, `"srt"` and `"vtt"` are subtitles, and `"json"` is the
 * whole result.
 *
 * @returns the contents of a file, which ends with a line break
 *
 * @example
 * nn.formatTranscription(await nn.transcribe(model, "speech.wav"), "srt");
 *
 * @throws {ArgumentError} for an object whose segments are not those of a transcript.
 */
export function formatTranscription(transcription: Transcription, format: TranscriptFormat): string;
export function formatTranscription(...values: unknown[]): string {
  const { transcription, format } = readCall(values);
  return writers[format](checked(transcription));
}

/** Reads a transcript that may come from a JSON file. @throws {ArgumentError} */
function checked(transcription: Transcription): Transcription {
  let segments: unknown;
  try {
    ({ segments } = transcription);
    if (Array.isArray(segments) && segments.length <= MOST_SEGMENTS && segments.every(isSegment)) return transcription;
  } catch {
    // A getter of the object threw, so it is not a result of `transcribe`.
  }
  const message = "expected the result of transcribe, got segments that are not { start, end, text }";
  throw new ArgumentError("formatTranscription", "noSegments", message);
}

/** A day of speech has some 20,000 segments. */
const MOST_SEGMENTS = 1_000_000;

const isSegment = (value: unknown): boolean => {
  const { start, end, text } = value as Partial<TranscriptionSegment>;
  return Number.isFinite(start) && Number.isFinite(end) && typeof text === "string";
};

const writers: Readonly<Record<TranscriptFormat, (transcription: Transcription) => string>> = {
  txt: ({ segments }) => segments.map(({ text }) => `${text.trim()}\n`).join(""),
  srt: ({ segments }) => segments.map((segment, at) => `${at + 1}\n${cue(segment, ",", true)}\n`).join(""),
  vtt: ({ segments }) => `WEBVTT\n\n${segments.map((segment) => `${cue(segment, ".", false)}\n`).join("")}`,
  json: (transcription) => `${JSON.stringify(transcription, null, 2)}\n`,
};

/** The times and the text of a subtitle. `-->` in a text would end it. */
function cue({ start, end, text }: TranscriptionSegment, point: string, hours: boolean): string {
  const time = (seconds: number) => formatTime(seconds, point, hours);
  return `${time(start)} --> ${time(end)}\n${text.trim().replaceAll("-->", "->")}\n`;
}

/** Formats a time as `00:01.500` or, with hours, as `00:00:01,500`. */
function formatTime(seconds: number, point: string, hours: boolean): string {
  const total = Math.round(1000 * seconds);
  const two = (value: number) => `${value}`.padStart(2, "0");
  const [hour, minute] = [Math.floor(total / 3_600_000), Math.floor(total / 60_000) % 60];
  const rest = `${two(Math.floor(total / 1000) % 60)}${point}${`${total % 1000}`.padStart(3, "0")}`;
  return `${hours || hour > 0 ? `${two(hour)}:` : ""}${two(minute)}:${rest}`;
}
