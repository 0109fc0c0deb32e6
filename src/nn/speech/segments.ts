/** Splits the tokens of a window into segments at timestamp tokens. */

import { lastElement } from "../../core/collections.ts";

/** The resolution of timestamp tokens in seconds. */
export const TIME_UNIT = 0.02;
/** Frames of features in a second. */
export const FRAMES_PER_SECOND = 100;
/** Frames of features in {@link TIME_UNIT}. */
const FRAMES_PER_UNIT = 2;

/** Tokens of a segment with its times in seconds from the start of the window. */
export interface Piece {
  readonly start: number;
  readonly end: number;
  readonly tokens: readonly number[];
}

/** The segments of a window. */
export interface Pieces {
  readonly pieces: readonly Piece[];
  /** The number of frames until the next window. */
  readonly advance: number;
  /** Whether the window ends with a single timestamp: no speech follows it. */
  readonly isComplete: boolean;
}

/**
 * Splits at pairs of timestamps. The next window begins at the last pair, because speech after it may be cut off.
 *
 * @param firstTime the token of the timestamp 0.00
 * @param frames the number of frames with audio in the window
 *
 * Source: `transcribe` in OpenAI's whisper/transcribe.py.
 */
export function piecesOf(tokens: readonly number[], firstTime: number, frames: number): Pieces {
  const isTime = (token: number | undefined) => token !== undefined && token >= firstTime;
  const timeOf = (token: number) => (token - firstTime) * TIME_UNIT;
  const isComplete = tokens.length > 1 && !isTime(tokens.at(-2)) && isTime(tokens.at(-1));
  const cuts = tokens.flatMap((token, at) => (at > 0 && isTime(tokens[at - 1]) && isTime(token) ? [at] : []));
  if (cuts.length === 0) {
    const last = tokens.findLast(isTime);
    const hasEnd = last !== undefined && last !== firstTime;
    const end = hasEnd ? timeOf(last) : frames / FRAMES_PER_SECOND;
    return { pieces: [{ start: 0, end, tokens }], advance: frames, isComplete };
  }
  if (isComplete) cuts.push(tokens.length);
  const pieces = cuts.map((cut, index): Piece => {
    const part = tokens.slice(index === 0 ? 0 : cuts[index - 1], cut);
    return { start: timeOf(part[0]), end: timeOf(lastElement(part)), tokens: part };
  });
  const last = tokens[lastElement(cuts) - 1];
  return { pieces, advance: isComplete ? frames : (last - firstTime) * FRAMES_PER_UNIT, isComplete };
}
