/** Trains a byte pair encoding. */
import TinyQueue from "tinyqueue";
import { byteCharacters, END_OF_TEXT, sortedBytes, wordsOf } from "./bpe_words.ts";

/** A vocabulary, and the merges that produce its tokens, in order. */
export interface Vocabulary {
  /** The text of each token, in characters that represent bytes; the end-of-text token is the first. */
  readonly tokens: readonly string[];
  readonly merges: readonly (readonly [left: number, right: number])[];
}

/** Encodes the ids of a pair as one number: ids are below 2²⁶. */
const keyOf = (left: number, right: number): number => left * 2 ** 26 + right;

interface Candidate {
  readonly left: number;
  readonly right: number;
  readonly key: number;
  count: number;
  /** The indices of words that may contain the pair. */
  readonly words: Set<number>;
}

/** Orders pairs by frequency, then by smaller ids. */
const compare = (a: Candidate, b: Candidate): number => b.count - a.count || a.key - b.key;

/**
 * Counts words over texts, and merges the most frequent pair of adjacent tokens until the vocabulary has `size` tokens,
 * or the text has no more pairs (Sennrich et al., 2016, https://arxiv.org/abs/1508.07909). Ties are broken as in
 * Hugging Face's `BpeTrainer`.
 */
export function trainVocabulary(texts: Iterable<string>, size: number): Vocabulary {
  const trainer = new Trainer(countWords(texts));
  while (trainer.size < size && trainer.merge());
  return trainer;
}

function countWords(texts: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts)
    for (const word of wordsOf(text.toWellFormed())) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

class Trainer implements Vocabulary {
  readonly tokens: string[] = [END_OF_TEXT, ...sortedBytes.map((byte) => byteCharacters[byte])];
  private readonly ids = new Map(this.tokens.map((token, id) => [token, id]));
  private readonly words: number[][] = [];
  private readonly counts: number[] = [];
  /** The number of occurrences of each pair, by key. */
  private readonly pairs = new Map<number, number>();
  private readonly queue: TinyQueue<Candidate>;
  /** The rank of each merge, by the pair's key. */
  private readonly order = new Map<number, number>();
  private merged = 0;

  constructor(words: ReadonlyMap<string, number>) {
    const idOfByte = Uint16Array.from(byteCharacters, (character) => this.ids.get(character)!);
    const encoder = new TextEncoder();
    const found = new Map<number, Set<number>>();
    for (const [text, count] of words) {
      const word = Array.from(encoder.encode(text), (byte) => idOfByte[byte]);
      for (let at = 0; at + 1 < word.length; at++) this.change(word[at], word[at + 1], count, this.words.length, found);
      this.words.push(word);
      this.counts.push(count);
    }
    this.queue = new TinyQueue(this.candidates(found), compare);
  }

  get size(): number {
    return this.tokens.length;
  }

  get merges(): readonly (readonly [number, number])[] {
    const ordered = [...this.order].sort(([, a], [, b]) => a - b);
    return ordered.map(([key]) => [Math.floor(key / 2 ** 26), key % 2 ** 26] as const);
  }

  /** Merges the next pair in all words; false if there is none. */
  merge(): boolean {
    const next = this.next();
    if (next === undefined) return false;
    const { left, right, key, words } = next;
    const text = this.tokens[left] + this.tokens[right];
    const id = this.ids.get(text) ?? this.tokens.length; // two pairs may produce the same text
    if (id === this.tokens.length) this.tokens.push(text);
    this.ids.set(text, id);
    this.order.set(key, this.merged++);
    const found = new Map<number, Set<number>>();
    for (const index of words) this.mergeIn(index, left, right, id, found);
    for (const candidate of this.candidates(found)) this.queue.push(candidate);
    return true;
  }

  /** The first candidate whose count is current; others are queued again with their current count. */
  private next(): Candidate | undefined {
    for (let top = this.queue.pop(); top !== undefined; top = this.queue.pop()) {
      const count = this.pairs.get(top.key)!;
      if (count < 1) continue;
      if (count === top.count) return top;
      top.count = count;
      this.queue.push(top);
    }
    return undefined;
  }

  private mergeIn(index: number, left: number, right: number, id: number, found: Map<number, Set<number>>): void {
    const [word, count] = [this.words[index], this.counts[index]];
    for (let at = 0; at + 1 < word.length; at++) {
      if (word[at] !== left || word[at + 1] !== right) continue;
      word.splice(at, 2, id);
      if (at > 0) {
        this.change(word[at - 1], left, -count, index, found);
        this.change(word[at - 1], id, count, index, found);
      }
      if (at + 1 < word.length) {
        this.change(right, word[at + 1], -count, index, found);
        this.change(id, word[at + 1], count, index, found);
      }
    }
  }

  /** Changes a pair's count; if it grows, the word is recorded. */
  private change(left: number, right: number, count: number, word: number, found: Map<number, Set<number>>): void {
    const key = keyOf(left, right);
    this.pairs.set(key, (this.pairs.get(key) ?? 0) + count);
    if (count < 0) return;
    const words = found.get(key);
    if (words) words.add(word);
    else found.set(key, new Set([word]));
  }

  private candidates(found: ReadonlyMap<number, Set<number>>): Candidate[] {
    return Array.from(found, ([key, words]) => ({
      left: Math.floor(key / 2 ** 26),
      right: key % 2 ** 26,
      key,
      count: this.pairs.get(key)!,
      words,
    })).filter(({ count }) => count > 0);
  }
}
