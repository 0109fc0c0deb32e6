/**
 * Converts sets of characters to UTF-8 byte sequences for automata over bytes (the algorithm of Rust's `utf8-ranges`):
 * ranges are split where the number of bytes changes, and then until all bytes after a differing byte have full ranges.
 */
import type { CodePoints, Range } from "./code_points.ts";

/** A range of a byte, and the alternatives that may follow. No two alternatives start with the same byte. */
export interface ByteBranch {
  readonly bytes: readonly Range[];
  /** The state after the byte; empty if the character ends with it. */
  readonly next: readonly ByteBranch[];
}

/** The last code points with one, two, three and four bytes. */
const LASTS = [0x7f, 0x7ff, 0xffff, 0x10ffff];

/** Returns the byte sequences of all characters of a set. */
export const byteBranches = (set: CodePoints): readonly ByteBranch[] => merged(set.flatMap(sequencesOf));

/** A range for each byte. */
type Sequence = readonly Range[];

function sequencesOf([first, last]: Range): Sequence[] {
  const border = LASTS.find((limit) => first <= limit && limit < last) ?? unevenEnd(first, last);
  if (border !== undefined) return [...sequencesOf([first, border]), ...sequencesOf([border + 1, last])];
  const [from, to] = [bytesOf(first), bytesOf(last)];
  return [from.map((byte, at): Range => [byte, to[at]])];
}

/**
 * Returns where to split a range so that all bytes after the first differing one have full ranges; undefined if they
 * have.
 */
function unevenEnd(first: number, last: number): number | undefined {
  if (last <= LASTS[0]) return undefined;
  for (let bits = 6; bits <= 18; bits += 6) {
    const low = (1 << bits) - 1;
    if ((first & ~low) === (last & ~low)) return undefined;
    if ((first & low) !== 0) return first | low;
    if ((last & low) !== low) return (last & ~low) - 1;
  }
  return undefined;
}

function bytesOf(point: number): number[] {
  const length = LASTS.findIndex((last) => point <= last) + 1;
  if (length === 1) return [point];
  const rest = Array.from({ length: length - 1 }, (_, at) => 0x80 | ((point >> (6 * (length - 2 - at))) & 0x3f));
  return [((0xf00 >> length) & 0xff) | (point >> (6 * (length - 1))), ...rest];
}

/** Merges sequences with common prefixes, and prefixes with equal continuations. */
function merged(sequences: readonly Sequence[]): ByteBranch[] {
  const byFirst = new Map<string, { readonly first: Range; readonly rests: Sequence[] }>();
  for (const [first, ...rest] of sequences) {
    const group = byFirst.get(String(first)) ?? { first: first, rests: [] };
    byFirst.set(String(first), group);
    group.rests.push(rest);
  }
  const byRest = new Map<string, { readonly bytes: Range[]; readonly next: readonly ByteBranch[] }>();
  for (const { first, rests } of byFirst.values()) {
    const next = rests[0].length === 0 ? [] : merged(rests);
    const key = JSON.stringify(next);
    const group = byRest.get(key) ?? { bytes: [], next };
    byRest.set(key, group);
    group.bytes.push(first);
  }
  return [...byRest.values()];
}
