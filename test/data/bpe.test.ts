/** Compares trained byte pair encodings with Hugging Face's trainer, whose libraries read the saved files. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer as HubTokenizer } from "@huggingface/tokenizers";
import * as fc from "fast-check";
import { packageRoot } from "../../src/core/paths.ts";
import { data } from "../../src/index.ts";

interface Fixture {
  readonly text: string;
  readonly size: number;
  readonly tokenizer: { readonly model: { readonly vocab: Record<string, number>; readonly merges: string[][] } };
  readonly cases: readonly { readonly text: string; readonly tokens: number[] }[];
}

const path = join(packageRoot, "test", "fixtures", "tokens", "bpe.json");
const fixture = JSON.parse(readFileSync(path, "utf8")) as Fixture;
const tokenizer = data.trainBpe(fixture.text, { size: fixture.size });
const hub = new HubTokenizer(JSON.parse(JSON.stringify(tokenizer)), {});

describe("trained tokenizers equal those of Hugging Face's trainer", () => {
  test("produces the same tokens by the same merges in the same order, ties included", () => {
    const { vocab, merges } = tokenizer.toJSON().model;
    expect(merges).toEqual(fixture.tokenizer.model.merges as [string, string][]);
    expect(vocab).toEqual(fixture.tokenizer.model.vocab);
  });

  test("writes the same file", () => {
    expect(JSON.parse(JSON.stringify(tokenizer))).toEqual(JSON.parse(JSON.stringify(fixture.tokenizer)));
  });

  test.each(fixture.cases.map(({ text, tokens }) => [text, tokens] as const))(
    "encoding %j gives the same tokens",
    (text, tokens) => {
      expect(tokenizer.encode(text)).toEqual(tokens);
      expect(tokenizer.decode(tokens)).toBe(text);
    },
  );
});

describe("other programs read the file of a tokenizer", () => {
  const texts = [
    "The quick brown fox.",
    "και το λόγος",
    "пренаость",
    "المكتبة",
    "של הבים",
    "नमस्ते का",
    "ภาษาไทย",

    "한국어에서",
    "カタカナです",
    "中文字的日本",
    "🍎 👩‍👩‍👧‍👦 🇳🇴",
    "a\u0085b \ufeffc\u00a0\u3000d\r\n\t e  ",
    "'s 't IT'S 12½",
  ];

  test.each(texts)("a reader has the ids of %j, and decodes them to the text", (text) => {
    const tokens = tokenizer.encode(text);
    expect(hub.encode(text).ids).toEqual(tokens);
    expect(tokenizer.decode(tokens)).toBe(text);
  });

  test("ids of random texts and bytes equal Hugging Face's", () => {
    const bytes = fc
      .uint8Array({ maxLength: 60 })
      .map((own) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(own));
    const piece = fc.constantFrom("st", "the", " ", "\n", "и", "字", "🍎", "1", "'s", "\u0085", "=");
    const pieces = fc.array(piece, { maxLength: 30 }).map((own) => own.join(""));
    fc.assert(
      fc.property(fc.oneof(bytes, pieces, fc.string({ unit: "grapheme" })), (text) => {
        const tokens = tokenizer.encode(text);
        expect(hub.encode(text).ids).toEqual(tokens);
        expect(tokenizer.decode(tokens)).toBe(text.toWellFormed());
      }),
      { numRuns: 500, seed: 15 },
    );
  });

  test("the file is read again as the same tokenizer", () => {
    const again = data.BpeTokenizer.fromJSON(JSON.parse(JSON.stringify(tokenizer)));
    expect(again.name).toBe(tokenizer.name);
    expect(again.encode(fixture.text)).toEqual(tokenizer.encode(fixture.text));
  });
});

test("a token that ends a text never occurs in an encoded text", () => {
  expect([tokenizer.endOfText, tokenizer.separator]).toEqual([0, 0]);
  expect(tokenizer.encode("a<|endoftext|>b")).not.toContain(0);
  expect(tokenizer.decode([0])).toBe("<|endoftext|>");
});

test("every vocabulary has a token for each byte, and text without pairs uses only these", () => {
  const least = data.trainBpe("", { size: 1000 });
  expect(least.vocabularySize).toBe(257);
  const bytes = Array.from({ length: 257 }, (_, token) => [...least.bytesOf(token)]).slice(1);
  expect(bytes.map(([byte]) => byte).sort((a, b) => a - b)).toEqual(Array.from({ length: 256 }, (_, byte) => byte));
  expect(least.decode(least.encode("né 🍎"))).toBe("né 🍎");
});

test("several texts are encoded as one, except for words across their ends", () => {
  const [one, two] = [data.trainBpe(["low lower", " lowest"], 262), data.trainBpe("low lower lowest", 262)];
  expect(one.toJSON()).toEqual(two.toJSON());
  expect(data.trainBpe(["lo", "w"], 262).name).not.toBe(data.trainBpe("low", 262).name);
});

test("the time per byte does not grow in a word of a megabyte", () => {
  const word = "ststxy".repeat(170_000);
  expect(tokenizer.decode(tokenizer.encode(word))).toBe(word);
});

describe("mistakes of the caller are reported", () => {
  test.each([256, 257.5, Number.NaN, 2 ** 21])("a vocabulary of %d tokens is rejected", (size) => {
    expect(() => data.trainBpe("text", { size })).toThrow(`a whole number from 257 to 1048576, got ${size}`);
  });

  const file = () => JSON.parse(JSON.stringify(tokenizer)) as ReturnType<typeof tokenizer.toJSON>;
  test.each([
    ["none", undefined, "expected an object, got undefined"],
    ["no model", {}, "it has no model with a vocabulary and merges"],
    [
      "another normalizer",
      { ...file(), normalizer: { type: "Lowercase" } },
      "its normalizer is not that of a BpeTokenizer",
    ],
    [
      "an id twice",
      { ...file(), model: { ...file().model, vocab: { a: 1, b: 1 } } },
      'expected unique ids from 0, got 1 for "b"',
    ],
    [
      "an unknown merge",
      { ...file(), model: { ...file().model, merges: [["zz", "q"]] } },
      'its vocabulary lacks the tokens of the merge ["zz","q"]',
    ],
  ])("a file with %s is rejected", (_, json, message) => {
    expect(() => data.BpeTokenizer.fromJSON(json)).toThrow(message);
  });
});
