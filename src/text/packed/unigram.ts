/** The vocabulary and scores of a unigram model in a few arrays. An entry's number is its token. */
import { continued, finished, HASH_START, PackedTexts, packTexts, type TextArrays } from "./texts.ts";

/** The arrays, in the order of the file. */
export interface UnigramArrays extends TextArrays {
  /** The score of each token. */
  readonly scores: Float64Array;
  /**
   * A Bloom filter with a bit for each hash: the bits of texts that are proper prefixes of tokens are set. Other texts
   * may have the same hash, so only an unset bit is certain; a search ends there.
   */
  readonly starts: Uint8Array;
}

export class PackedUnigram extends PackedTexts<UnigramArrays> {
  /** The number of tokens. */
  get size(): number {
    return this.arrays.ends.length;
  }

  /** Returns the token of a text. */
  idOf(text: string): number | undefined {
    const entry = this.entryOf(text);
    return entry < 0 ? undefined : entry;
  }

  /** Returns the text of a token. */
  textOf(id: number): string | undefined {
    return Number.isInteger(id) && id >= 0 && id < this.size ? this.textAt(id) : undefined;
  }

  /** Yields the tokens that begin at `start` in `characters`, the shortest first. */
  *prefixes(characters: readonly string[], start: number): Generator<string> {
    const { starts } = this.arrays;
    let [prefix, state] = ["", HASH_START];
    for (let at = start; at < characters.length; at++) {
      prefix += characters[at];
      state = continued(state, characters[at]);
      const hash = finished(state);
      if (this.entryOf(prefix, hash) >= 0) yield prefix;
      if ((starts[byteOf(starts, hash)] & bitOf(hash)) === 0) return;
    }
  }
}

const byteOf = ({ length }: Uint8Array, hash: number): number => (hash >>> 3) & (length - 1);
const bitOf = (hash: number): number => 1 << (hash & 7);

/** Sets the bit of each text that a longer token starts with. About an eighth of the bits are set. */
function startsOf(vocabulary: readonly (readonly [text: string, score: number])[]): Uint8Array {
  const count = vocabulary.reduce((sum, [text]) => sum + text.length, 1);
  const starts = new Uint8Array(2 ** Math.ceil(Math.log2(count)));
  for (const [text] of vocabulary) {
    let state = HASH_START;
    const characters = [...text];
    for (const character of characters.slice(0, -1)) {
      state = continued(state, character);
      const hash = finished(state);
      starts[byteOf(starts, hash)] |= bitOf(hash);
    }
  }
  return starts;
}

/**
 * Packs a vocabulary; returns undefined if that is not possible: no unknown token, or a very long text.
 *
 * @param vocabulary the text and the score of each token
 */
export function packUnigram(
  vocabulary: readonly (readonly [text: string, score: number])[],
  unknown: unknown,
): PackedUnigram | undefined {
  const texts = packTexts(vocabulary.map(([text]) => text));
  if (texts === undefined || !Number.isInteger(unknown)) return undefined;
  const scores = Float64Array.from(vocabulary, ([, score]) => score);
  return new PackedUnigram({ ...texts, scores, starts: startsOf(vocabulary) });
}
