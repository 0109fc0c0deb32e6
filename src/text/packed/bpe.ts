/** The vocabulary and merges of a byte-pair encoding in a few arrays. */
import { finished, freeSlot, freeSlots, PackedTexts, packTexts, type TextArrays } from "./texts.ts";

/** The arrays, in the order of the file. */
export interface BpeArrays extends TextArrays {
  /** The token of each entry. */
  readonly ids: Int32Array;
  /** The entry of each token; −1 if there is none. */
  readonly entries: Int32Array;
  /** The entries of each merge, by rank. */
  readonly left: Int32Array;
  readonly right: Int32Array;
  /** A hash table of ranks by pair; −1 in free slots. */
  readonly ranks: Int32Array;
}

export class PackedBpe extends PackedTexts<BpeArrays> {
  /** The largest token plus 1. */
  get size(): number {
    return this.arrays.entries.length;
  }

  /** Returns the token of a text. */
  idOf(text: string): number | undefined {
    const entry = this.entryOf(text);
    return entry < 0 ? undefined : this.arrays.ids[entry];
  }

  /** Returns the text of a token. */
  textOf(id: number): string | undefined {
    const entry = this.arrays.entries[id] ?? -1;
    return entry < 0 ? undefined : this.textAt(entry);
  }

  /** Returns the rank of the merge of two texts. */
  rankOf(left: string, right: string): number | undefined {
    const [a, b] = [this.entryOf(left), this.entryOf(right)];
    if (a < 0 || b < 0) return undefined;
    const { ranks, left: lefts, right: rights } = this.arrays;
    const mask = ranks.length - 1;
    for (let slot = hashOfPair(a, b) & mask; ranks[slot] >= 0; slot = (slot + 1) & mask) {
      const rank = ranks[slot];
      if (lefts[rank] === a && rights[rank] === b) return rank;
    }
    return undefined;
  }
}

/** Maximum ratio of ids, including gaps, to tokens. */
const MOST_GAPS = 2;

/**
 * Packs a vocabulary; returns undefined if that is not possible: a merge of a text that is not a token, sparse ids, or
 * a very long text.
 *
 * @param vocabulary the token of each text
 * @param merges pairs of texts, or texts with a space between them
 */
export function packBpe(
  vocabulary: Readonly<Record<string, number>>,
  merges: readonly (string | readonly string[])[],
): PackedBpe | undefined {
  const texts = Object.entries(vocabulary);
  const size = texts.reduce((most, [, id]) => Math.max(most, id + 1), 0);
  const packed = packTexts(texts.map(([text]) => text));
  if (size > MOST_GAPS * texts.length || packed === undefined) return undefined;
  const ids = Int32Array.from(texts, ([, id]) => id);
  const entries = new Int32Array(size).fill(-1);
  const places = new Map<string, number>();
  for (const [at, [text, id]] of texts.entries()) {
    entries[id] = at; // if a token has several texts, the last one wins
    places.set(text, at);
  }
  const pairs = pairsOf(merges, places);
  if (pairs === undefined) return undefined;
  const [left, right] = pairs;
  return new PackedBpe({ ...packed, ids, entries, left, right, ranks: ranksOf(pairs) });
}

type Pairs = readonly [left: Int32Array, right: Int32Array];

function pairsOf(
  merges: readonly (string | readonly string[])[],
  places: ReadonlyMap<string, number>,
): Pairs | undefined {
  const [left, right] = [new Int32Array(merges.length), new Int32Array(merges.length)];
  for (const [rank, merge] of merges.entries()) {
    const [one, two] = typeof merge === "string" ? merge.split(" ", 2) : merge;
    const [a, b] = [places.get(one), places.get(two)];
    if (a === undefined || b === undefined) return undefined;
    [left[rank], right[rank]] = [a, b];
  }
  return [left, right];
}

/** Builds the table of ranks. For duplicate pairs the last rank wins, as in the package's map. */
function ranksOf([left, right]: Pairs): Int32Array {
  const ranks = freeSlots(left.length);
  for (let rank = left.length - 1; rank >= 0; rank--)
    ranks[freeSlot(ranks, hashOfPair(left[rank], right[rank]))] = rank;
  return ranks;
}

const hashOfPair = (a: number, b: number): number => finished(Math.imul(a, 0x9e3779b1) + b);
