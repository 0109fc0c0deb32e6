/**
 * Normalizes text as SentencePiece does, in UTF-8: replaces characters by a table, and removes spaces.
 *
 * Source: `Normalizer` in https://github.com/google/sentencepiece/blob/v0.2.3/src/normalizer.cc.
 */
import type { SentencePieceModel } from "./model.ts";
import { PieceType } from "./model.ts";

const SPACE = 0x20;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

/**
 * The table: a double-array trie of replaced sequences of bytes (S. Yata's Darts-clone), and the replacements, each of
 * which ends with 0.
 */
class Charsmap {
  private readonly units: Uint32Array;
  private readonly texts: Uint8Array;

  constructor(bytes: Uint8Array) {
    const copy = Uint8Array.from(bytes); // a copy, which is aligned and does not retain the file
    const size = copy.length < 4 ? 0 : new DataView(copy.buffer).getUint32(0, true);
    const end = Math.min(4 + size, copy.length) & ~3;
    this.units = new Uint32Array(copy.buffer.slice(Math.min(4, end), end));
    this.texts = copy.subarray(Math.min(copy.length, 4 + size));
  }

  /** Returns the replacement of the longest known prefix at a place, and the prefix's length; undefined if none. */
  longest(text: Uint8Array, start: number): { readonly text: Uint8Array; readonly length: number } | undefined {
    const { units } = this;
    if (units.length === 0) return undefined;
    let [node, found, length] = [offsetOf(units[0]), -1, 0];
    for (let at = start; at < text.length; at++) {
      node ^= text[at];
      const unit = units[node] ?? 0;
      if ((unit & 0x800000ff) >>> 0 !== text[at]) break;
      node ^= offsetOf(unit);
      if ((unit >>> 8) & 1) [found, length] = [units[node] & 0x7fffffff, at + 1 - start];
    }
    if (found < 0) return undefined;
    const end = this.texts.indexOf(0, found);
    return { text: this.texts.subarray(found, end < 0 ? undefined : end), length };
  }
}

const offsetOf = (unit: number): number => (unit >>> 10) << ((unit & 0x200) >>> 6);

/** Returns the number of bytes of the character that starts with a byte. */
export const characterLength = (byte: number): number => (byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4);

/** Returns a function that normalizes a text: spaces become `▁`. */
export function normalizerOf(model: SentencePieceModel): (text: string) => string {
  const table = new Charsmap(model.charsmap);
  const matchOfUser = userMatcher(model);
  const { addsPrefix, trimsSpaces } = model;
  const next = (text: Uint8Array, at: number): { readonly text: Uint8Array; readonly length: number } => {
    const kept = matchOfUser(text, at) || undefined;
    if (kept !== undefined) return { text: text.subarray(at, at + kept), length: kept };
    const length = characterLength(text[at]);
    return table.longest(text, at) ?? { text: text.subarray(at, at + length), length };
  };
  return (given) => {
    const text = encoder.encode(given);
    let at = 0;
    if (trimsSpaces)
      while (at < text.length) {
        const { text: first, length } = next(text, at);
        if (first.length !== 1 || first[0] !== SPACE) break;
        at += length;
      }
    if (at === text.length) return "";
    const out: number[] = addsPrefix ? [SPACE] : [];
    let isAfterSpace = trimsSpaces;
    while (at < text.length) {
      const { text: whole, length } = next(text, at);
      let from = 0;
      while (isAfterSpace && whole[from] === SPACE) from++;
      for (const byte of whole.subarray(from)) out.push(byte);
      if (from < whole.length) isAfterSpace = whole.at(-1) === SPACE;
      at += length;
      if (!trimsSpaces) isAfterSpace = false;
    }
    const normalized = decoder.decode(Uint8Array.from(out)).replaceAll(" ", "▁");
    return trimsSpaces ? normalized.replace(/▁+$/, "") : normalized;
  };
}

/** Returns the length of the longest user-defined piece at a position; 0 if there is none. */
function userMatcher({ pieces }: SentencePieceModel): (text: Uint8Array, at: number) => number {
  const known = pieces.filter(({ type }) => type === PieceType.ofUser).map(({ text }) => encoder.encode(text));
  known.sort((a, b) => b.length - a.length);
  const matches = (text: Uint8Array, at: number) => (piece: Uint8Array) =>
    piece.every((byte, index) => byte === text[at + index]);
  return (text, at) => known.find(matches(text, at))?.length ?? 0;
}
