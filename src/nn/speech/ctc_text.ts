/** Greedy decoding for a model that was trained with the CTC loss: converts frames to symbols, text and words. */
import { lastElement } from "../../core/collections.ts";
import type { CtcSettings } from "../models/wav2vec2/settings.ts";

/** The likeliest symbol of each frame, with its probability. */
export interface CtcFrames {
  readonly symbols: ArrayLike<number>;
  readonly probabilities: ArrayLike<number>;
}

/** A symbol that was said in the frames from `start` to before `end`. */
export interface CtcSymbol {
  readonly symbol: number;
  readonly start: number;
  readonly end: number;
  /** The mean of the frames' probabilities. */
  readonly probability: number;
}

/** Symbols between two delimiters. */
export interface CtcWord {
  readonly word: string;
  readonly symbols: readonly CtcSymbol[];
}

/**
 * Joins equal symbols of neighboring frames, and drops blanks.
 *
 * Source: A. Graves et al., "Connectionist Temporal Classification", 2006, section 3.2 (best path decoding).
 */
export function symbolsOf({ symbols, probabilities }: CtcFrames, { symbols: texts, blank }: CtcSettings): CtcSymbol[] {
  const found: CtcSymbol[] = [];
  for (let start = 0, end = 0; start < symbols.length; start = end) {
    const symbol = symbols[start];
    const isSame = (frame: number) => frame < symbols.length && texts[symbols[frame]] === texts[symbol];
    let sum = 0;
    for (end = start; isSame(end); end++) sum += probabilities[end];
    if (symbol !== blank) found.push({ symbol, start, end, probability: sum / (end - start) });
  }
  return found;
}

/** Returns the text of symbols, as `decode` of `transformers`' `Wav2Vec2CTCTokenizer`. */
export function textOf(symbols: readonly CtcSymbol[], settings: CtcSettings): string {
  const text = symbols.map(({ symbol }) => writtenAs(symbol, settings)).join("");
  return cased(text.trim(), settings);
}

/** Splits symbols into words, as `transformers` does for the times of words. */
export function wordsOf(symbols: readonly CtcSymbol[], settings: CtcSettings): CtcWord[] {
  const words: { word: string; symbols: CtcSymbol[] }[] = [];
  let isInside = false;
  for (const each of symbols) {
    const text = writtenAs(each.symbol, settings);
    const isDelimiter = text === settings.wordSeparator;
    if (!isDelimiter && !isInside) words.push({ word: "", symbols: [] });
    if (!isDelimiter) {
      const last = lastElement(words);
      last.word += cased(text, settings);
      last.symbols.push(each);
    }
    isInside = !isDelimiter;
  }
  return words;
}

const writtenAs = (symbol: number, { symbols, wordDelimiter, wordSeparator }: CtcSettings): string =>
  symbols[symbol] === wordDelimiter ? wordSeparator : symbols[symbol];

const cased = (text: string, { lowerCase }: CtcSettings): string => (lowerCase ? text.toLowerCase() : text);
