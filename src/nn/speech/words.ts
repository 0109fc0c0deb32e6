/** Words of a transcript, and their times. */
import { lastElement } from "../../core/collections.ts";
import type { PretrainedTokenizer } from "../../text/pretrained_tokenizer.ts";

/** A word with its times in seconds. */
export interface WordTime {
  /** The word with the space before it and the punctuation around it. */
  readonly word: string;
  /** When the word begins, in seconds. */
  readonly start: number;
  /** When the word ends, in seconds. */
  readonly end: number;
  /** The mean probability of its tokens. */
  readonly probability: number;
}

/** Tokens that form a word. */
export interface Word {
  word: string;
  tokens: readonly number[];
}

/** A word while its times are being corrected. */
export interface TimedWord extends Word {
  start: number;
  end: number;
  probability: number;
}

/** Languages that are written without spaces: their words are characters. */
const withoutSpaces = ["zh", "ja", "th", "lo", "my", "yue"];
/** Python's `string.punctuation`. */
const PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
const BEFORE = "\"'“¿([{-";
const AFTER = "\"'.。,，!！?？:：”)]}、";

/**
 * Splits tokens into words.
 *
 * Source: `split_to_word_tokens` in OpenAI's whisper/tokenizer.py.
 */
export function wordsOf(
  tokens: readonly number[],
  tokenizer: Pick<PretrainedTokenizer, "decode">,
  { language, endToken }: { readonly language: string | undefined; readonly endToken: number },
): Word[] {
  const characters = charactersOf(tokens, tokenizer);
  if (language !== undefined && withoutSpaces.includes(language)) return characters;
  const words: { word: string; tokens: number[] }[] = [];
  for (const { word, tokens: part } of characters) {
    const isApart = part[0] >= endToken || word.startsWith(" ") || PUNCTUATION.includes(word.trim());
    const last = words.at(-1);
    if (isApart || !last) words.push({ word, tokens: [...part] });
    else {
      last.word += word;
      last.tokens.push(...part);
    }
  }
  return words;
}

/** Splits tokens where a character is complete: several tokens may encode one character. */
function charactersOf(tokens: readonly number[], tokenizer: Pick<PretrainedTokenizer, "decode">): Word[] {
  const decode = (part: readonly number[]) => tokenizer.decode(part, { skipSpecialTokens: false, isStart: false });
  const whole = decode(tokens);
  const words: Word[] = [];
  let part: number[] = [];
  let offset = 0;
  for (const token of tokens) {
    part.push(token);
    const word = decode(part);
    const at = offset + word.indexOf("\ufffd");
    if (word.includes("\ufffd") && at < whole.length && whole[at] !== "\ufffd") continue;
    words.push({ word, tokens: part });
    part = [];
    offset += word.length;
  }
  return words;
}

/**
 * Joins punctuation to the word that it belongs to; the emptied words remain, so that tokens can still be counted.
 *
 * Source: `merge_punctuations` in OpenAI's whisper/timing.py.
 */
export function mergePunctuation(words: Word[]): void {
  for (let [at, next] = [words.length - 2, words.length - 1]; at >= 0; at--) {
    const [previous, following] = [words[at], words[next]];
    if (previous.word.startsWith(" ") && BEFORE.includes(previous.word.trim())) move(previous, following, "before");
    else next = at;
  }
  for (let [at, next] = [0, 1]; next < words.length; next++) {
    const [previous, following] = [words[at], words[next]];
    if (!previous.word.endsWith(" ") && AFTER.includes(following.word)) move(following, previous, "after");
    else at = next;
  }
}

function move(from: Word, to: Word, place: "before" | "after"): void {
  const [first, second] = place === "before" ? [from, to] : [to, from];
  [to.word, to.tokens] = [first.word + second.word, [...first.tokens, ...second.tokens]];
  [from.word, from.tokens] = ["", []];
}

/** A segment that receives words. */
export interface WordSegment {
  start: number;
  end: number;
  readonly tokens: readonly number[];
  words?: WordTime[];
}

/** The window of the words. */
export interface WordContext {
  /** The start of the window in seconds. */
  readonly offset: number;
  /** The end of the speech before the window in seconds. */
  readonly lastSpeech: number;
  readonly endToken: number;
}

/**
 * Distributes aligned words among the segments of a window, and corrects times that are too long: alignment extends
 * words over pauses.
 *
 * Source: `add_word_timestamps` in OpenAI's whisper/timing.py.
 */
export function addWords(segments: readonly WordSegment[], words: TimedWord[], context: WordContext): void {
  const { offset, endToken } = context;
  const durations = words.map(({ start, end }) => end - start).filter((duration) => duration !== 0);
  const typical = Math.min(0.7, durations.length > 0 ? median(durations) : 0);
  if (durations.length > 0) shortenAtSentences(words, 2 * typical);
  mergePunctuation(words);
  let { lastSpeech } = context;
  let next = 0;
  for (const segment of segments) {
    const count = segment.tokens.filter((token) => token < endToken).length;
    const found: { -readonly [Key in keyof WordTime]: WordTime[Key] }[] = [];
    for (let used = 0; next < words.length && used < count; next++) {
      const { word, start, end, probability, tokens } = words[next];
      if (word) found.push({ word, start: rounded(offset + start), end: rounded(offset + end), probability });
      used += tokens.length;
    }
    if (found.length > 0) {
      fitToPause(found, typical, lastSpeech);
      fitToSegment(found, typical, segment);
      lastSpeech = segment.end;
    }
    segment.words = found;
  }
}

/** Rounds to hundredths of a second. */
export const rounded = (seconds: number): number => Math.round(seconds * 100) / 100;

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function shortenAtSentences(words: TimedWord[], longest: number): void {
  const marks = ".。!！?？";
  for (const [at, word] of words.entries()) {
    if (at === 0 || word.end - word.start <= longest) continue;
    if (marks.includes(word.word)) word.end = word.start + longest;
    else if (marks.includes(words[at - 1].word)) word.start = word.end - longest;
  }
}

type Times = { start: number; end: number };

/** Shortens the first two words after a pause. */
function fitToPause(words: Times[], typical: number, lastSpeech: number): void {
  const longest = 2 * typical;
  const [first, second] = words as [Times, Times | undefined];
  const isLong = first.end - first.start > longest || (second && second.end - first.start > 2 * longest);
  if (first.end - lastSpeech <= 4 * typical || !isLong) return;
  if (second && second.end - second.start > longest) {
    const boundary = Math.max(second.end / 2, second.end - longest);
    first.end = boundary;
    second.start = boundary;
  }
  first.start = Math.max(0, first.end - longest);
}

/** If the times of the segment differ much from those of its first and last word, keeps the segment's times. */
function fitToSegment(words: Times[], typical: number, segment: Times): void {
  const [first, last] = [words[0], lastElement(words)];
  if (segment.start < first.end && segment.start - 0.5 > first.start)
    first.start = Math.max(0, Math.min(first.end - typical, segment.start));
  else segment.start = first.start;
  if (segment.end > last.start && segment.end + 0.5 < last.end) last.end = Math.max(last.start + typical, segment.end);
  else segment.end = last.end;
}
