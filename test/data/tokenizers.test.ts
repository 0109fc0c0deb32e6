/**
 * Decoding the tokens of any text returns the text, all at once and one by one; GPT-2's tokens equal the original's.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { ArgumentError } from "../../src/core/errors.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { data } from "../../src/index.ts";

const tokenizers: data.Tokenizer[] = [new data.ByteTokenizer(), new data.Gpt2Tokenizer()];
const gpt2 = tokenizers[1];

/** Any well-formed text, with many characters that pre-tokenizers distinguish. */
const texts = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: "grapheme" }),
      fc.constantFrom(
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "'s",
        "'LL",
        "<|endoftext|>",
        "\ufeff",
        "\u0000",
        "é",
        "中文",
        "🍎",
        "𒀀",
      ),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(""));

const streamed = (tokenizer: data.Tokenizer, tokens: Iterable<number>): string[] => {
  const stream = tokenizer.decoder();
  return [...Array.from(tokens, (token) => stream.push(token)), stream.end()];
};

describe.each(tokenizers)("the tokenizer $name", (tokenizer) => {
  test("any text round-trips", () => {
    fc.assert(
      fc.property(texts, (text) => {
        const tokens = tokenizer.encode(text);
        expect(tokenizer.decode(tokens)).toBe(text);
        expect(streamed(tokenizer, tokens).join("")).toBe(text);
        for (const token of tokens) {
          expect(token >= 0 && token < tokenizer.vocabularySize).toBe(true);
          expect(token).not.toBe(tokenizer.endOfText as never);
        }
      }),
      { numRuns: 200 },
    );
  });

  test("the bytes of a text match its tokens", () => {
    const text = "naïve 🍎 中文 \ufeff";
    const bytes = Array.from(tokenizer.encode(text), (token) => [...tokenizer.bytesOf(token)]).flat();
    expect(bytes).toEqual([...new TextEncoder().encode(text)]);
  });

  test("no part of a stream contains an incomplete character, and complete ones are not delayed", () => {
    for (const text of ["🍎", "a🍎b", "👩‍👩‍👧‍👦", "日本語", "\ufeffx", "𒀀𒀁"]) {
      const tokens = [...tokenizer.encode(text)];
      const parts = streamed(tokenizer, tokens);
      expect(parts.join("")).toBe(text);
      expect(parts.some((part) => part.includes("\ufffd"))).toBe(false);
      let bytes: number[] = [];
      for (const [at, token] of tokens.entries()) {
        bytes = [...bytes, ...tokenizer.bytesOf(token)];
        const whole = new TextDecoder("utf-8", { ignoreBOM: true })
          .decode(Uint8Array.from(bytes))
          .replace(/\ufffd+$/, "");
        expect(parts.slice(0, at + 1).join("")).toBe(whole);
      }
    }
  });

  test("a character that stays incomplete ends as U+FFFD", () => {
    const tokens = [...new data.ByteTokenizer().encode("🍎")].slice(0, 3);
    if (tokenizer === gpt2) return expect(gpt2.decode([...gpt2.encode("🍎")].slice(0, 1))).toMatch(/^ ?\ufffd$/);
    expect(streamed(tokenizer, tokens)).toEqual(["", "", "", "\ufffd"]);
  });

  test("an unknown token is rejected", () => {
    for (const token of [-1, 0.5, tokenizer.vocabularySize, Number.NaN]) {
      expect(() => tokenizer.decode([token])).toThrow(ArgumentError);
      expect(() => tokenizer.decoder().push(token)).toThrow(`got ${token}`);
    }
  });

  test("a lone surrogate, which UTF-8 has no bytes for, becomes U+FFFD", () => {
    expect(tokenizer.decode(tokenizer.encode("a\ud800b"))).toBe("a\ufffdb");
  });
});

describe("the tokenizer of GPT-2 gives its tokens", () => {
  const path = join(packageRoot, "test", "fixtures", "tokens", "gpt2.json");
  const cases = JSON.parse(readFileSync(path, "utf8")) as { text: string; tokens: number[] }[];

  test.each(cases)("%j has the tokens of GPT-2", ({ text, tokens }) => {
    expect([...gpt2.encode(text)]).toEqual(tokens);
  });

  test("the token that ends a text is GPT-2's", () => {
    expect([gpt2.endOfText, gpt2.separator, gpt2.vocabularySize]).toEqual([50_256, 50_256, 50_257]);
    expect(gpt2.decode([15496, 50_256])).toBe("Hello<|endoftext|>");
  });

  test("an endless word is split, because the encoding time is quadratic in its length", () => {
    const word = "abcde".repeat(600);
    const pieces = [word.slice(0, 1024), word.slice(1024, 2048), word.slice(2048)];
    expect([...gpt2.encode(word)]).toEqual(pieces.flatMap((piece) => [...gpt2.encode(piece)]));
    expect([...gpt2.encode(`<|endoftext|> ${"=".repeat(2000)}`)]).not.toContain(50_256);

    for (const unit of ["=", "a", "🍎", " ", "7"]) {
      const text = `x${unit.repeat(5000)}y`;
      expect(gpt2.decode(gpt2.encode(text))).toBe(text);
    }
  });
});

test("bytes are UTF-8, and a newline separates documents", () => {
  const bytes = new data.ByteTokenizer();
  expect([...bytes.encode("né")]).toEqual([110, 195, 169]);
  expect([bytes.endOfText, bytes.separator, bytes.vocabularySize]).toEqual([null, 10, 256]);
});

test("GPT-2's tables are loaded when the first text is encoded", () => {
  const index = JSON.stringify(join(packageRoot, "src", "index.ts"));
  const program = `
    import { data } from ${index};
    const loaded = () => Object.keys(require.cache).filter((path) => path.includes("gpt-tokenizer")).length;
    const tokenizer = new data.Gpt2Tokenizer();
    const before = loaded();
    tokenizer.encode("a");
    const tables = Object.keys(require.cache).filter((path) => /bpeRanks/.test(path));
    const names = tables.map((path) => path.split("/").at(-1));
    console.log(JSON.stringify([before, names]));`;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", program], { cwd: packageRoot });
  expect([stderr.toString(), JSON.parse(stdout.toString())]).toEqual(["", [0, ["r50k_base.js"]]]);
});
