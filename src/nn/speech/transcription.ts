/** The results of `transcribe`. */
import type { WordTime } from "./words.ts";

/** A part of a transcript, such as a sentence. */
export interface TranscriptionSegment {
  /** The number of the segment, from 0. */
  readonly id: number;
  /** The start of the window in which the segment was decoded, in frames of 10 ms. */
  readonly seek: number;
  /** When the segment begins, in seconds. */
  readonly start: number;
  /** When the segment ends, in seconds. */
  readonly end: number;
  /** The text, which usually begins with a space. */
  readonly text: string;
  /** The tokens, including timestamps. */
  readonly tokens: readonly number[];
  /** The temperature that the window was decoded at. */
  readonly temperature: number;
  /** The mean log probability of the window's tokens. */
  readonly averageLogProbability: number;
  /** The size of the window's text in UTF-8 divided by its size after compression. High values are repetitions. */
  readonly compressionRatio: number;
  /** The probability that the window has no speech. */
  readonly noSpeechProbability: number;
  /** The words with their times; present only with the option `wordTimestamps`. */
  readonly words?: readonly WordTime[];
}

/** The transcript of an audio file. */
export interface Transcription {
  /** The whole text. */
  readonly text: string;
  /** The code of the language that was given or detected. */
  readonly language: string;
  /** The task. */
  readonly task: "transcribe" | "translate";
  /** The length of the audio in seconds. */
  readonly duration: number;
  readonly segments: readonly TranscriptionSegment[];
}
