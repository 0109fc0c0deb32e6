import TinyQueue from "tinyqueue";
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { madeBy } from "../core/parameters.ts";
import { readVocabulary, type TokenizerFile, tokenizerFile } from "./bpe_file.ts";
import type { Vocabulary } from "./bpe_trainer.ts";
import { byteCharacters, bytesOfText, wordsOf } from "./bpe_words.ts";
import { checkText, decodeAll, PrintedTokenizer, type SpecialTokens, TextStream, type Tokenizer } from "./tokenizer.ts";

/** Maximum number of words whose tokens are cached. Frequent words of programs and languages are far fewer. */
const REMEMBERED_WORDS = 2 ** 16;

/** Longer words are not cached. */
const LONGEST_REMEMBERED = 64;

/**
 * A byte pair encoding trained by {@link trainBpe}. It encodes any text, because each byte is a token. The first token
 * is the end-of-text token, to which no text encodes. The name contains a hash of the vocabulary.
 *
 * @example
 * const tokenizer = trainBpe(text, { size: 1024 });
 * await Bun.write("tokenizer.json", JSON.stringify(tokenizer));
 * const again = BpeTokenizer.fromJSON(await Bun.file("tokenizer.json").json());
 */
export class BpeTokenizer extends PrintedTokenizer implements Tokenizer {
  readonly name: string;
  readonly vocabularySize: number;
  readonly endOfText: number = 0;
  readonly separator: number = 0;
  private readonly bytes: readonly Uint8Array[];
  private readonly idOfByte: Uint32Array;
  private readonly ranks: ReadonlyMap<number, Merge>;
  private readonly remembered = new Map<string, readonly number[]>();
  private readonly encoder = new TextEncoder();

  /** @internal See {@link trainBpe} and {@link BpeTokenizer.fromJSON}. */
  constructor(private readonly vocabulary: Vocabulary) {
    super();
    if (!Array.isArray(vocabulary?.tokens) || !Array.isArray(vocabulary.merges))
      throw madeBy("BpeTokenizer", "trainBpe or BpeTokenizer.fromJSON");
    const { tokens, merges } = vocabulary;
    const ids = new Map(tokens.map((token, id) => [token, id]));
    const hash = new Bun.CryptoHasher("sha256").update(JSON.stringify([tokens, merges])).digest("hex");
    this.name = `bpe-${hash.slice(0, 16)}`;
    this.vocabularySize = tokens.length;
    this.bytes = tokens.map((token, id) => (id === this.endOfText ? this.encoder.encode(token) : bytesOfText(token)!));
    this.idOfByte = Uint32Array.from(byteCharacters, (character) => ids.get(character)!);
    this.ranks = new Map(
      merges.map(([left, right], rank) => {
        const id = ids.get(tokens[left]! + tokens[right]!)!;
        return [keyOf(left, right), { rank, id }];
      }),
    );
  }

  /**
   * Creates a tokenizer from the result of {@link BpeTokenizer.toJSON}.
   *
   * @throws {ArgumentError} `invalidOperand` for the `tokenizer.json` of another tokenizer.
   */
  static fromJSON(json: unknown): BpeTokenizer {
    return new BpeTokenizer(readVocabulary("BpeTokenizer.fromJSON", json));
  }

  /** Returns the contents of a `tokenizer.json`, which Hugging Face's libraries can read. */
  toJSON(): TokenizerFile {
    return tokenizerFile(this.vocabulary);
  }

  encode(text: string, _options?: SpecialTokens): number[] {
    const ids: number[] = [];
    for (const word of wordsOf(checkText("BpeTokenizer", text).toWellFormed()))
      for (const id of this.encodeWord(word)) ids.push(id);
    return ids;
  }

  decode(tokens: Iterable<number>): string {
    return decodeAll("BpeTokenizer", this.decoder(), tokens);
  }

  bytesOf(token: number): Uint8Array {
    const bytes = typeof token === "number" ? this.bytes[token] : undefined;
    if (bytes !== undefined) return bytes;
    const expected = `a token from 0 to ${this.vocabularySize - 1}`;
    throw new ArgumentError("BpeTokenizer", "unknownToken", `expected ${expected}, got ${describeValue(token)}`);
  }

  decoder(_options?: SpecialTokens): TextStream {
    return new TextStream((token) => this.bytesOf(token));
  }

  private encodeWord(word: string): readonly number[] {
    const known = this.remembered.get(word);
    if (known !== undefined) return known;
    const ids = mergeAll(
      Array.from(this.encoder.encode(word), (byte) => this.idOfByte[byte]),
      this.ranks,
    );
    if (word.length <= LONGEST_REMEMBERED) {
      if (this.remembered.size >= REMEMBERED_WORDS) this.remembered.clear();
      this.remembered.set(word, ids);
    }
    return ids;
  }
}

/** A merge of two tokens: its rank, and the resulting token. */
interface Merge {
  readonly rank: number;
  readonly id: number;
}

/** Ids are below 2²⁶. */
const keyOf = (left: number, right: number): number => left * 2 ** 26 + right;

/** A possible merge at an index. */
interface Place extends Merge {
  readonly at: number;
  /** The key of the two tokens to merge. */
  readonly key: number;
}

/** Applies merges by rank, and from left to right for equal ranks, in O(n log n) for n bytes. */
function mergeAll(ids: number[], ranks: ReadonlyMap<number, Merge>): readonly number[] {
  const end = ids.length;
  const next = Array.from(ids, (_, at) => at + 1);
  const before = Array.from(ids, (_, at) => at - 1);
  const queue = new TinyQueue<Place>([], (a, b) => a.rank - b.rank || a.at - b.at);
  const find = (at: number) => {
    if (at < 0 || next[at] >= end) return;
    const key = keyOf(ids[at], ids[next[at]]);
    const merge = ranks.get(key);
    if (merge) queue.push({ ...merge, at, key });
  };
  for (let at = 0; at + 1 < end; at++) find(at);
  for (let top = queue.pop(); top !== undefined; top = queue.pop()) {
    const { at, id, key } = top;
    const right = next[at];
    if (ids[at] === GONE || right >= end || keyOf(ids[at], ids[right]) !== key) continue; // already merged
    ids[at] = id;
    ids[right] = GONE;
    next[at] = next[right];
    if (next[at] < end) before[next[at]] = at;
    find(before[at]);
    find(at);
  }
  return ids.filter((id) => id !== GONE);
}

/** Marks a token that was merged into the one before it. */
const GONE = -1;
