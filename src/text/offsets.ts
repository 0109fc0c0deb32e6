/** Finds where tokens are in a text. */

import { lastElement } from "../core/collections.ts";

/** The part of a text from `start` up to, but excluding, `end`, in UTF-16 units as JavaScript counts them. */
export interface TextSpan {
  readonly start: number;
  readonly end: number;
}

const encoder = new TextEncoder();
/** Whitespace, and SentencePiece's mark for it. */
const SPACE = /^[\s\u2581\p{Z}]*$/u;
/** BERT's punctuation: Unicode's, and each ASCII character that is not a letter, digit or space. */
const PUNCTUATION = /^[\p{P}\x21-\x2F\x3A-\x40\x5B-\x60\x7B-\x7E]$/u;

/** The bytes of a normalized text, and which part of the original each byte comes from. */
interface NormalizedText {
  readonly bytes: Uint8Array;
  readonly isSpace: Uint8Array;
  /** Whether each byte belongs to a character that BERT treats as a word. */
  readonly isPunctuation: Uint8Array;
  readonly spans: readonly TextSpan[];
  /** The index in `spans` of each byte. */
  readonly spanOf: Int32Array;
}

/** Normalizes one grapheme at a time, since normalization changes lengths. */
function normalized(text: string, normalize: (part: string) => string): NormalizedText {
  const [bytes, isSpace, isPunctuation, spanOf]: number[][] = [[], [], [], []];
  const spans: TextSpan[] = [];
  for (const { segment, index } of new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text)) {
    for (const character of normalize(segment)) {
      for (const byte of encoder.encode(character)) {
        bytes.push(byte);
        isSpace.push(SPACE.test(character) ? 1 : 0);
        isPunctuation.push(PUNCTUATION.test(character) ? 1 : 0);
        spanOf.push(spans.length);
      }
    }
    spans.push({ start: index, end: index + segment.length });
  }
  return {
    bytes: Uint8Array.from(bytes),
    isSpace: Uint8Array.from(isSpace),
    spans,
    isPunctuation: Uint8Array.from(isPunctuation),
    spanOf: Int32Array.from(spanOf),
  };
}

/** How a tokenizer normalizes texts, and what its unknown tokens stand for. */
export interface Spelled {
  /** The tokenizer's normalizer. */
  readonly normalize: (part: string) => string;
  /** Whether an unknown token stands for a word, as in WordPiece. If not, it extends to the next token or space. */
  readonly hasUnknownWords: boolean;
}

type Range = readonly [from: number, to: number];

/**
 * Returns where each token is in a text. Spaces around a token are not part of it; a token of spaces is empty. A token
 * inside a grapheme has the position of the whole grapheme.
 *
 * @param pieces the bytes of each token; undefined for unknown tokens
 */
export function spansOf(
  text: string,
  pieces: readonly (Uint8Array | undefined)[],
  { normalize, hasUnknownWords }: Spelled,
): TextSpan[] {
  const all = normalized(text, normalize);
  const found: Range[] = [];
  let at = 0;
  for (const [index, piece] of pieces.entries()) {
    // an unknown token ends before a token that begins with a space
    if (piece && isBlank(piece[0]) && index > 0 && !pieces[index - 1]) at = lastElement(found)[1];
    at = afterSpaces(all, at);
    const range = piece && knownAt(all, trimmed(piece), at);
    found.push(range ?? (hasUnknownWords ? wordAt(all, at) : restAt(all, at)));
    if (range && !hasUnknownWords) shorten(found, pieces, range[0]);
    if (range || hasUnknownWords) at = lastElement(found)[1];
  }
  return found.map((range) => spanAt(text, all, range));
}

function afterSpaces({ isSpace }: NormalizedText, from: number): number {
  let at = from;
  while (isSpace[at] === 1) at++;
  return at;
}

const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x09 || byte === 0x0d;

function trimmed(piece: Uint8Array): Uint8Array {
  let [start, end] = [0, piece.length];
  while (start < end && isBlank(piece[start])) start++;
  while (end > start && isBlank(piece[end - 1])) end--;
  return piece.subarray(start, end);
}

/** The range of a token with these bytes, at a place or after it; undefined if there is none. */
function knownAt({ bytes }: NormalizedText, token: Uint8Array, at: number): Range | undefined {
  if (token.length === 0) return [at, at];
  const from = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf(token, at);
  return from < 0 ? undefined : [from, from + token.length];
}

/** The range of a word: one character of punctuation, or all characters up to the next space or punctuation. */
function wordAt({ bytes, isSpace, isPunctuation, spanOf }: NormalizedText, at: number): Range {
  let to = at;
  if (isPunctuation[at] === 1) while (to < bytes.length && spanOf[to] === spanOf[at]) to++;
  else while (to < bytes.length && isSpace[to] === 0 && isPunctuation[to] === 0) to++;
  return [at, to];
}

/** All characters up to the next space. */
function restAt({ bytes, isSpace }: NormalizedText, at: number): Range {
  let to = at;
  while (to < bytes.length && isSpace[to] === 0) to++;
  return [at, to];
}

/** Ends unknown tokens where the known token after them begins. */
function shorten(found: Range[], pieces: readonly (Uint8Array | undefined)[], from: number): void {
  for (let index = found.length - 2; index >= 0 && !pieces[index]; index--)
    found[index] = [found[index][0], Math.max(found[index][0], Math.min(found[index][1], from))];
}

function spanAt(text: string, { spanOf, spans }: NormalizedText, [from, to]: Range): TextSpan {
  const first = spans[spanOf[from] ?? -1]?.start ?? text.length;
  return from === to ? { start: first, end: first } : { start: first, end: spans[spanOf[to - 1]].end };
}
