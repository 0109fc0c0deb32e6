/**
 * The vocabulary and merges of a byte-pair encoding in a few arrays with hash tables. They are used directly as stored
 * in a file; filling maps with hundreds of thousands of texts takes a second.
 */

/** The arrays, in the order of the file. */
export interface PackedArrays {
  /** The concatenated texts of all tokens, in UTF-16. */
  readonly units: Uint16Array;
  /** The end of each entry's text in `units`. */
  readonly ends: Uint32Array;
  /** The token of each entry. */
  readonly ids: Int32Array;
  /** The entry of each token; −1 if there is none. */
  readonly entries: Int32Array;
  /** A hash table of entries by text; −1 in free slots. */
  readonly slots: Int32Array;
  /** The entries of each merge, by rank. */
  readonly left: Int32Array;
  readonly right: Int32Array;
  /** A hash table of ranks by pair; −1 in free slots. */
  readonly ranks: Int32Array;
}

export class PackedBpe {
  constructor(readonly arrays: PackedArrays) {}

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
    return entry < 0 ? undefined : String.fromCharCode(...this.arrays.units.subarray(...this.#place(entry)));
  }

  /** Returns the rank of the merge of two texts. */
  rankOf(left: string, right: string): number | undefined {
    const [a, b] = [this.entryOf(left), this.entryOf(right)];
    if (a < 0 || b < 0) return undefined;
    const { ranks, left: lefts, right: rights } = this.arrays;
    const mask = ranks.length - 1;
    for (let slot = hashOfPair(a, b) & mask; ranks[slot]! >= 0; slot = (slot + 1) & mask) {
      const rank = ranks[slot]!;
      if (lefts[rank] === a && rights[rank] === b) return rank;
    }
    return undefined;
  }

  /** Returns the entry of a text; −1 if there is none. */
  private entryOf(text: string): number {
    const { slots } = this.arrays;
    const mask = slots.length - 1;
    for (let slot = hashOfText(text) & mask; slots[slot]! >= 0; slot = (slot + 1) & mask)
      if (this.#isText(slots[slot]!, text)) return slots[slot]!;
    return -1;
  }

  #isText(entry: number, text: string): boolean {
    const [start, end] = this.#place(entry);
    if (end - start !== text.length) return false;
    for (let at = 0; at < text.length; at++) if (this.arrays.units[start + at] !== text.charCodeAt(at)) return false;
    return true;
  }

  #place(entry: number): [start: number, end: number] {
    return [entry === 0 ? 0 : this.arrays.ends[entry - 1]!, this.arrays.ends[entry]!];
  }
}

/** Maximum ratio of ids, including gaps, to tokens. */
const MOST_GAPS = 2;
/** Maximum length of a text, which is created in one call with a limited number of arguments. */
const LONGEST = 4096;

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
  if (size > MOST_GAPS * texts.length || texts.some(([text]) => text.length > LONGEST)) return undefined;
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
  return new PackedBpe({ ...unitsOf(texts), ids, entries, slots: slotsOf(texts), left, right, ranks: ranksOf(pairs) });
}

function unitsOf(texts: readonly (readonly [string, number])[]): Pick<PackedArrays, "units" | "ends"> {
  const ends = new Uint32Array(texts.length);
  let end = 0;
  for (const [at, [text]] of texts.entries()) {
    end += text.length;
    ends[at] = end;
  }
  const units = new Uint16Array(end);
  let place = 0;
  for (const [text] of texts) for (let at = 0; at < text.length; at++) units[place++] = text.charCodeAt(at);
  return { units, ends };
}

function slotsOf(texts: readonly (readonly [string, number])[]): Int32Array {
  const slots = freeSlots(texts.length);
  for (const [at, [text]] of texts.entries()) slots[freeSlot(slots, hashOfText(text))] = at;
  return slots;
}

type Pairs = readonly [left: Int32Array, right: Int32Array];

function pairsOf(
  merges: readonly (string | readonly string[])[],
  places: ReadonlyMap<string, number>,
): Pairs | undefined {
  const [left, right] = [new Int32Array(merges.length), new Int32Array(merges.length)];
  for (const [rank, merge] of merges.entries()) {
    const [one, two] = typeof merge === "string" ? merge.split(" ", 2) : merge;
    const [a, b] = [places.get(one!), places.get(two!)];
    if (a === undefined || b === undefined) return undefined;
    [left[rank], right[rank]] = [a, b];
  }
  return [left, right];
}

/** Builds the table of ranks. For duplicate pairs the last rank wins, as in the package's map. */
function ranksOf([left, right]: Pairs): Int32Array {
  const ranks = freeSlots(left.length);
  for (let rank = left.length - 1; rank >= 0; rank--)
    ranks[freeSlot(ranks, hashOfPair(left[rank]!, right[rank]!))] = rank;
  return ranks;
}

/** Returns free slots, at most half of which will be used. */
const freeSlots = (count: number): Int32Array =>
  new Int32Array(2 ** Math.ceil(Math.log2(2 * Math.max(count, 1)))).fill(-1);

function freeSlot(slots: Int32Array, hash: number): number {
  const mask = slots.length - 1;
  let slot = hash & mask;
  while (slots[slot]! >= 0) slot = (slot + 1) & mask;
  return slot;
}

/** FNV-1a over UTF-16, with the finalizer of MurmurHash3. */
function hashOfText(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return finished(hash);
}

const hashOfPair = (a: number, b: number): number => finished(Math.imul(a, 0x9e3779b1) + b);

function finished(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
