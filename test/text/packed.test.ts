/** Large vocabularies from the cache: the same tokens as without it, for drawn tokenizers and texts. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { loadTokenizer } from "../../src/text/load_tokenizer.ts";
import { packBpe } from "../../src/text/packed/bpe.ts";
import { decodePacked, encodePacked } from "../../src/text/packed/file.ts";
import { packTokenizer } from "../../src/text/packed/tokenizer.ts";
import { packUnigram } from "../../src/text/packed/unigram.ts";
import { PretrainedTokenizer } from "../../src/text/pretrained_tokenizer.ts";
import type { TokenizerJson } from "../../src/text/tokenizer_file.ts";
import { testFolder } from "../support/folder.ts";

const letters = [..."ab▁ cé中", "🍎", "\ud83c", "</w>", "__proto__", "constructor"];
const piece = fc.array(fc.constantFrom(...letters), { minLength: 1, maxLength: 3 }).map((parts) => parts.join(""));
const bytes = Array.from({ length: 256 }, (_, at) => `<0x${at.toString(16).toUpperCase().padStart(2, "0")}>`);

interface Drawn {
  readonly json: TokenizerJson;
  readonly texts: readonly string[];
}

/** A byte pair encoding with merges in either format. They create tokens of its vocabulary, some of them twice. */
const drawn: fc.Arbitrary<Drawn> = fc
  .record({
    words: fc.uniqueArray(piece, { minLength: 1, maxLength: 30 }),
    picks: fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 60 }),
    ids: fc.constantFrom("in order", "from the last", "with gaps"),
    areTexts: fc.boolean(),
    added: fc.uniqueArray(piece, { maxLength: 3 }),
    texts: fc.array(
      fc.array(piece, { maxLength: 12 }).map((parts) => parts.join("")),
      { minLength: 1, maxLength: 6 },
    ),
    model: fc.record({
      unk_token: fc.constantFrom(null, "a", "none", ""),
      fuse_unk: fc.boolean(),
      byte_fallback: fc.boolean(),
      ignore_merges: fc.boolean(),
      end_of_word_suffix: fc.constantFrom(null, "</w>"),
    }),
    splits: fc.boolean(),
  })
  .map(({ words, picks, ids, areTexts, added, texts, model, splits }) => {
    const all = [...words];
    const merges: string[][] = [];
    for (const [one, two] of picks) {
      const [left, right] = [all[one % all.length], all[two % all.length]];
      if (areTexts && (left.includes(" ") || right.includes(" "))) continue;
      merges.push([left, right]);
      if (!all.includes(left + right)) all.push(left + right);
    }
    if (model.byte_fallback) all.push(...bytes);
    const idOf = (at: number) =>
      ids === "in order" ? at : ids === "from the last" ? all.length - 1 - at : at + (at >> 2);
    const vocab = Object.fromEntries(all.map((word, at) => [word, idOf(at)]));
    const json = {
      normalizer: { type: "Replace", pattern: { String: " " }, content: "▁" },
      post_processor: null,
      pre_tokenizer: splits
        ? { type: "Split", pattern: { String: "▁" }, behavior: "MergedWithNext", invert: false }
        : null,
      decoder: { type: "Sequence", decoders: [{ type: "ByteFallback" }, { type: "Fuse" }] },
      added_tokens: added.map((content, at) => ({ id: 2 * all.length + at, content, special: at === 0 })),
      model: { type: "BPE", ...model, vocab, merges: areTexts ? merges.map((pair) => pair.join(" ")) : merges },
    };
    return { json: json as unknown as TokenizerJson, texts };
  });

/** A unigram model with tokens of drawn scores, some of them twice, and any of them as the unknown one. */
const drawnUnigram: fc.Arbitrary<Drawn> = fc
  .record({
    pieces: fc.array(fc.tuple(piece, fc.double({ min: -20, max: 0, noNaN: true })), { minLength: 1, maxLength: 40 }),
    unknown: fc.nat(),
    added: fc.uniqueArray(piece, { maxLength: 3 }),
    areFirst: fc.boolean(),
    texts: fc.array(
      fc.array(piece, { maxLength: 12 }).map((parts) => parts.join("")),
      { minLength: 1, maxLength: 6 },
    ),
    splits: fc.boolean(),
  })
  .map(({ pieces, unknown, added, areFirst, texts, splits }) => {
    const first = areFirst ? added.map((content) => [content, 0] as [string, number]) : [];
    const vocab = [...first, ...pieces];
    const json = {
      normalizer: { type: "Replace", pattern: { String: " " }, content: "▁" },
      post_processor: null,
      pre_tokenizer: splits ? { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true } : null,
      decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true },
      added_tokens: added.map((content, at) => ({ id: areFirst ? at : vocab.length + at, content, special: at === 0 })),
      model: { type: "Unigram", unk_id: unknown % vocab.length, vocab },
    };
    return { json: json as unknown as TokenizerJson, texts };
  });

/** The same tokenizer through the packed file. */
function throughFile(json: TokenizerJson): PretrainedTokenizer {
  const read = decodePacked(Uint8Array.from(encodePacked(packTokenizer(json)!)))!;
  return new PretrainedTokenizer(read.json, { packed: read.packed });
}

const wordsOf = ({ model: { vocab } }: TokenizerJson): string[] =>
  Array.isArray(vocab) ? (vocab as [string, number][]).map(([word]) => word) : Object.keys(vocab as object);

const outcome = (body: () => unknown): unknown => {
  try {
    return body();
  } catch (error) {
    return String(error);
  }
};

test.each([
  ["BPE", drawn],
  ["Unigram", drawnUnigram],
] as const)("a packed %s has the ids, texts and bytes of the original", (_kind, arbitrary) => {
  let [encoded, merged] = [0, 0];
  fc.assert(
    fc.property(arbitrary, ({ json, texts }) => {
      const [plain, packed] = [new PretrainedTokenizer(structuredClone(json)), throughFile(json)];
      expect(packed.vocabularySize).toBe(plain.vocabularySize);
      for (let id = -1; id <= plain.vocabularySize; id++)
        expect(outcome(() => packed.bytesOf(id))).toEqual(outcome(() => plain.bytesOf(id)));
      for (const word of [...wordsOf(json), "none", ""]) expect(packed.idOf(word)).toBe(plain.idOf(word));
      for (const text of texts) {
        const ids = outcome(() => plain.encode(text));
        expect(outcome(() => packed.encode(text))).toEqual(ids);
        if (!Array.isArray(ids) || ids.length === 0) continue;
        encoded++;
        if (ids.length < [...text].length) merged++;
        expect(packed.decode(ids as number[])).toBe(plain.decode(ids as number[]));
      }
    }),
    { numRuns: 400, seed: 34 },
  );
  expect([encoded > 500, merged > 100]).toEqual([true, true]); // the texts cover the tested cases
});

test.each([
  ["a merge of what is no token", { a: 0 }, [["a", "b"]]],
  ["ids far apart", { a: 0, b: 1_000_000 }, []],
  ["a very long text", { ["x".repeat(5000)]: 0 }, []],
] as const)("%s is not packed", (_name, vocabulary, merges) => {
  expect(packBpe(vocabulary, merges)).toBeUndefined();
});

test("a unigram without an unknown token, or with a very long text, is not packed", () => {
  expect(packUnigram([["a", 0]], undefined)).toBeUndefined();
  expect(packUnigram([["x".repeat(5000), 0]], 0)).toBeUndefined();
  expect(packUnigram([["a", 0]], 0)?.size).toBe(1);
});

describe("the cache of packed texts is reused", () => {
  const folder = testFolder("packed");
  const model = folder.file("model");
  const cache = join(folder.path, "cache");
  const packedIn = () =>
    readdirSync(join(cache, "orchard", "tokenizers")).map((name) => join(cache, "orchard", "tokenizers", name));
  const before = process.env["XDG_CACHE_HOME"];

  beforeAll(() => {
    process.env["XDG_CACHE_HOME"] = cache;
    const words = Array.from({ length: 60_000 }, (_, at) => `w${at.toString(36)}`);
    const all = [..."w0123456789abcdefghijklmnopqrstuvwxyz", ...words];
    const vocab = Object.fromEntries(all.map((word, at) => [word, at]));
    const merges = words.filter((word) => word.length <= 3).map((word) => [word.slice(0, -1), word.slice(-1)]);
    mkdirSync(model, { recursive: true });
    const json = {
      normalizer: null,
      pre_tokenizer: null,
      post_processor: null,
      added_tokens: [],
      decoder: { type: "Fuse" },
      model: { type: "BPE", vocab, merges },
    };
    writeFileSync(join(model, "tokenizer.json"), JSON.stringify(json, null, 2));
  });
  afterAll(() => {
    if (before === undefined) delete process.env["XDG_CACHE_HOME"];
    else process.env["XDG_CACHE_HOME"] = before;
  });

  const text = "w1z w00 wxy".replaceAll(" ", "");

  test("the cache is made by the first load, and read by the next", () => {
    const first = loadTokenizer(model).encode(text);
    const [path] = packedIn();
    const bytes = readFileSync(path);
    const parse = JSON.parse;
    JSON.parse = (given: string) => {
      if (given.length > 2 ** 20) throw new Error("expected the packed file to be read, but the original was parsed");
      return parse(given);
    };
    try {
      expect(loadTokenizer(model).encode(text)).toEqual(first);
    } finally {
      JSON.parse = parse;
    }
    expect(readFileSync(path)).toEqual(bytes);
    expect(first.length).toBeLessThan(text.length);
  });

  test.each(["cut off", "changed", "of another kind", "empty"])("a cache file that is %s is made again", (damage) => {
    const expected = loadTokenizer(model).encode(text);
    const [path] = packedIn();
    const bytes = readFileSync(path);
    const damaged = {
      "cut off": () => bytes.subarray(0, 5000),
      changed: () => bytes.with(bytes.length >> 1, bytes[bytes.length >> 1] ^ 1),
      "of another kind": () => Buffer.from("{}"),
      empty: () => Buffer.alloc(0),
    }[damage]();
    writeFileSync(path, damaged);
    expect(loadTokenizer(model).encode(text)).toEqual(expected);
    expect(readFileSync(path)).toEqual(bytes);
  });

  test("without write permission the cache is not used", () => {
    const expected = loadTokenizer(model).encode(text);
    rmSync(cache, { recursive: true });
    writeFileSync(cache, "a file");
    expect(loadTokenizer(model).encode(text)).toEqual(expected);
    rmSync(cache);
  });
});
