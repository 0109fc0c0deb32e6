/**
 * Texts in a few arrays with a hash table. They are used directly as stored in a file; filling maps with hundreds of
 * thousands of texts takes a second.
 */

/** The arrays, in the order of the file. */
export interface TextArrays {
  /** The concatenated texts of all entries, in UTF-16. */
  readonly units: Uint16Array;
  /** The end of each entry's text in `units`. */
  readonly ends: Uint32Array;
  /** A hash table of entries by text; −1 in free slots. */
  readonly slots: Int32Array;
}

/** Looks up entries by text. */
export class PackedTexts<Arrays extends TextArrays = TextArrays> {
  constructor(readonly arrays: Arrays) {}

  /** Returns the entry of a text; −1 if there is none. */
  protected entryOf(text: string, hash = hashOfText(text)): number {
    const { slots } = this.arrays;
    const mask = slots.length - 1;
    for (let slot = hash & mask; slots[slot] >= 0; slot = (slot + 1) & mask)
      if (this.#isText(slots[slot], text)) return slots[slot];
    return -1;
  }

  /** Returns the text of an entry. */
  protected textAt(entry: number): string {
    return String.fromCharCode(...this.arrays.units.subarray(...this.#place(entry)));
  }

  #isText(entry: number, text: string): boolean {
    const [start, end] = this.#place(entry);
    if (end - start !== text.length) return false;
    for (let at = 0; at < text.length; at++) if (this.arrays.units[start + at] !== text.charCodeAt(at)) return false;
    return true;
  }

  #place(entry: number): [start: number, end: number] {
    return [entry === 0 ? 0 : this.arrays.ends[entry - 1], this.arrays.ends[entry]];
  }
}

/** Maximum length of a text, which is created in one call with a limited number of arguments. */
const LONGEST = 4096;

/** Packs texts; undefined if one is very long. Of equal texts the last one is found. */
export function packTexts(texts: readonly string[]): TextArrays | undefined {
  if (texts.some((text) => text.length > LONGEST)) return undefined;
  const ends = new Uint32Array(texts.length);
  let end = 0;
  for (const [at, text] of texts.entries()) {
    end += text.length;
    ends[at] = end;
  }
  const units = new Uint16Array(end);
  let place = 0;
  for (const text of texts) for (let at = 0; at < text.length; at++) units[place++] = text.charCodeAt(at);
  const slots = freeSlots(texts.length);
  for (let at = texts.length - 1; at >= 0; at--) slots[freeSlot(slots, hashOfText(texts[at]))] = at;
  return { units, ends, slots };
}

/** Returns free slots, at most half of which will be used. */
export const freeSlots = (count: number): Int32Array =>
  new Int32Array(2 ** Math.ceil(Math.log2(2 * Math.max(count, 1)))).fill(-1);

export function freeSlot(slots: Int32Array, hash: number): number {
  const mask = slots.length - 1;
  let slot = hash & mask;
  while (slots[slot] >= 0) slot = (slot + 1) & mask;
  return slot;
}

/** The state of a hash before the first unit. */
export const HASH_START = 0x811c9dc5;

/** FNV-1a over UTF-16: continues the state by a text. {@link finished} makes a hash of it. */
export function continued(state: number, text: string): number {
  let hash = state;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

const hashOfText = (text: string): number => finished(continued(HASH_START, text));

/** Mixes the bits of a hash, by the finalizer of MurmurHash3. */
export function finished(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
