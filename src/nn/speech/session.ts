/** The state of one recording while it is transcribed window by window. */

import { pad } from "../../ops/join/pad.ts";
import { unsqueeze } from "../../ops/view/squeeze.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";
import type { PretrainedTokenizer } from "../../text/pretrained_tokenizer.ts";
import type { WhisperSettings } from "../models/whisper/settings.ts";
import type { Whisper } from "../models/whisper/whisper.ts";
import { compressionRatioOf } from "./compression.ts";
import type { Decoded } from "./decode.ts";
import { findWords } from "./find_words.ts";
import type { TranscribeSettings } from "./options.ts";
import type { Recording } from "./recording.ts";
import { FRAMES_PER_SECOND, type Piece, type Pieces, piecesOf } from "./segments.ts";
import type { Transcription, TranscriptionSegment } from "./transcription.ts";
import { addWords, type WordTime } from "./words.ts";

/** A segment under construction. */
interface Draft extends Piece {
  start: number;
  end: number;
  text: string;
  tokens: readonly number[];
  words?: WordTime[];
}

/** The state of one recording. */
export class Session {
  /** The language's code; undefined until it is detected. */
  language: string | undefined;
  readonly #segments: TranscriptionSegment[] = [];
  /** Tokens of the initial prompt and of all segments. */
  readonly #tokens: number[];
  readonly #initial: number;
  #seek = 0;
  /** The index of the first token in `#tokens` that belongs to the prompt of the next window. */
  #promptStart = 0;
  #lastSpeech = 0;

  constructor(
    readonly model: Whisper,
    readonly tokenizer: PretrainedTokenizer,
    readonly settings: WhisperSettings,
    readonly options: TranscribeSettings,
    readonly recording: Recording,
  ) {
    const isEnglish = settings.languages.size === 0;
    this.language = options.language ?? (isEnglish ? "en" : undefined);
    const { initialPrompt } = options;
    const text = initialPrompt?.trim();
    this.#tokens = text ? tokenizer.encode(` ${text}`, { addSpecialTokens: false }) : [];
    this.#initial = this.#tokens.length;
  }

  /** The first frame of the next window. */
  get seek(): number {
    return this.#seek;
  }

  get isDone(): boolean {
    return this.#seek >= this.recording.frames;
  }

  private get windowFrames(): number {
    return Math.min(this.model.windowFrames, this.recording.frames - this.#seek);
  }

  /** Returns the features of the next window, [1, melBins, windowFrames]; zeros follow the audio. */
  window(): Tensor {
    const { windowFrames } = this;
    return tidy(() => {
      const part = this.recording.read(this.#seek, windowFrames);
      return unsqueeze(pad(part, [0, this.model.windowFrames - windowFrames]), 0);
    });
  }

  /** The start token, the language and the task. */
  get start(): number[] {
    const { startToken, languages, tasks, noTimestampsToken } = this.settings;
    const { task, timestamps } = this.options;
    const tokens = [startToken];
    if (languages.size > 0) tokens.push(languages.get(this.language!)!);
    if (tasks.size > 0) tokens.push(tasks.get(task)!);
    return timestamps ? tokens : [...tokens, noTimestampsToken];
  }

  /** Returns the prompt of the next window. */
  get prompt(): number[] {
    const { previousToken } = this.settings;
    const most = Math.floor(this.model.description.contextLength / 2) - 1;
    const previous = this.#tokens.slice(this.#promptStart).slice(-most);
    return previous.length === 0 || previousToken === undefined
      ? this.start
      : [previousToken, ...previous, ...this.start];
  }

  /** Whether a window has to be decoded at a higher temperature. */
  fails(decoded: Decoded): boolean {
    const { compressionRatioThreshold, logProbabilityThreshold, noSpeechThreshold } = this.options;
    const { averageLogProbability, noSpeechProbability } = decoded;
    const isUnlikely = averageLogProbability < logProbabilityThreshold;
    if (noSpeechProbability > noSpeechThreshold && isUnlikely) return false;
    return isUnlikely || this.ratioOf(decoded) > compressionRatioThreshold;
  }

  /**
   * Adds the segments of a window, and moves on to the next one.
   *
   * @param states the encoder's states, [1, audioPositions, width]
   */
  async accept(decoded: Decoded, states: Tensor): Promise<void> {
    const { noSpeechThreshold, logProbabilityThreshold, wordTimestamps } = this.options;
    const { windowFrames } = this;
    const isLikely = decoded.averageLogProbability > logProbabilityThreshold;
    if (decoded.noSpeechProbability > noSpeechThreshold && !isLikely) {
      this.#seek += windowFrames;
      return;
    }
    const found = piecesOf(decoded.tokens, this.settings.noTimestampsToken + 1, windowFrames);
    const offset = this.#seek / FRAMES_PER_SECOND;
    const drafts = found.pieces.map(
      ({ start, end, tokens }): Draft => ({
        start: offset + start,
        end: offset + end,
        tokens,
        text: this.textOf(tokens),
      }),
    );
    const seek = this.#seek;
    this.#seek += Math.max(1, found.advance);
    if (wordTimestamps) await this.addWordsTo(drafts, { states, offset, frames: windowFrames, found });
    this.append(drafts, decoded, seek);
    const { conditionOnPreviousText } = this.options;
    // as in OpenAI's implementation, text at high temperatures is not a prompt
    if (!conditionOnPreviousText || decoded.temperature > 0.5) this.#promptStart = this.#tokens.length;
  }

  private async addWordsTo(
    drafts: Draft[],
    window: {
      readonly states: Tensor;
      readonly offset: number;
      readonly frames: number;
      readonly found: Pieces;
    },
  ): Promise<void> {
    const { states, offset, frames, found } = window;
    const { endToken } = this.settings;
    const tokens = drafts.flatMap((draft) => draft.tokens.filter((token) => token < endToken));
    const words = await findWords(this.model, {
      states,
      tokens,
      frames,
      start: this.start.filter((token) => token !== this.settings.noTimestampsToken),
      language: this.language,
      tokenizer: this.tokenizer,
      settings: this.settings,
    });
    addWords(drafts, words, { offset, lastSpeech: this.#lastSpeech, endToken });
    const lastEnd = drafts.flatMap((draft) => draft.words ?? []).at(-1)?.end;
    if (lastEnd === undefined) return;
    if (!found.isComplete && lastEnd > offset) this.#seek = Math.round(lastEnd * FRAMES_PER_SECOND);
    this.#lastSpeech = lastEnd;
  }

  /** Adds segments. Segments without text or duration are omitted, also from the next prompt. */
  private append(drafts: readonly Draft[], decoded: Decoded, seek: number): void {
    const { temperature, averageLogProbability, noSpeechProbability } = decoded;
    const compressionRatio = this.ratioOf(decoded);
    for (const draft of drafts) {
      if (draft.start === draft.end || draft.text.trim() === "") continue;
      const chances = { temperature, averageLogProbability, compressionRatio, noSpeechProbability };
      this.#segments.push({ id: this.#segments.length, seek, ...draft, ...chances });
      this.#tokens.push(...draft.tokens);
    }
  }

  private textOf(tokens: readonly number[]): string {
    return this.tokenizer.decode(
      tokens.filter((token) => token < this.settings.endToken),
      { isStart: false },
    );
  }

  private ratioOf({ tokens }: Decoded): number {
    return compressionRatioOf(this.textOf(tokens));
  }

  result(): Transcription {
    return {
      text: this.textOf(this.#tokens.slice(this.#initial)),
      language: this.language ?? "en",
      task: this.options.task,
      duration: this.recording.duration,
      segments: this.#segments,
    };
  }

  [Symbol.dispose](): void {
    this.recording[Symbol.dispose]();
  }
}
