/** Tokenizers of models compared with Hugging Face's and SentencePiece; streams compared with whole texts. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { io, text, zeros } from "../../src/index.ts";
import { patternsOf } from "../../src/text/gguf_patterns.ts";
import { tokenizerOfGguf } from "../../src/text/gguf_tokenizer.ts";
import { testFolder } from "../support/folder.ts";

interface Row {
  readonly text: string;
  readonly ids: readonly number[];
  readonly special: readonly number[];
  readonly decoded: string;
  readonly whole: string;
}
interface Fixture {
  readonly tokenizer: ConstructorParameters<typeof text.PretrainedTokenizer>[0];
  readonly config: Record<string, unknown>;
  readonly rows: readonly Row[];
}
interface Pieces {
  readonly tokens: string[];
  readonly scores: number[];
  readonly types: number[];
  readonly adds_space: boolean;
  readonly bos: number;
  readonly eos: number;
  readonly unk: number;
}

const read = (name: string) => Bun.file(join(packageRoot, "test", "fixtures", "text", `${name}.json`)).json();
const names = ["gpt2", "qwen2", "llama3", "tekken", "gpt4o", "llama2", "gemma", "t5", "bert"] as const;
const fixtures = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await read(name)]))) as Record<
  (typeof names)[number],
  Fixture
>;
const make = (name: (typeof names)[number]) =>
  new text.PretrainedTokenizer(fixtures[name].tokenizer, { config: fixtures[name].config, name });
const plain = { addSpecialTokens: false };

describe.each(names)("the tokenizer %s", (name) => {
  const tokenizer = make(name);
  const { rows } = fixtures[name];

  test("code, ten scripts, emoji and random bytes are encoded as by Hugging Face", () => {
    expect(rows.length).toBeGreaterThan(30);
    for (const row of rows) {
      expect(tokenizer.encode(row.text, plain)).toEqual([...row.ids]);
      expect(tokenizer.encode(row.text)).toEqual([...row.special]);
    }
  });

  test("tokens are decoded as by Hugging Face, with and without special tokens", () => {
    for (const { ids, decoded, whole } of rows) {
      expect(tokenizer.decode(ids)).toBe(decoded);
      expect(tokenizer.decode(ids, { skipSpecialTokens: false })).toBe(whole);
    }
  });

  test("a stream never splits a character, and its pieces are the text", () => {
    for (const { ids, whole } of rows) {
      const stream = tokenizer.decoder({ skipSpecialTokens: false, isStart: true });
      const pieces = [...ids.map((id) => stream.push(id)), stream.end()];
      expect(pieces.join("")).toBe(whole);
      for (const piece of pieces.slice(0, -1)) expect(piece.isWellFormed()).toBe(true);
      if (!whole.includes("\ufffd")) expect(pieces.join("|")).not.toContain("\ufffd");
    }
  });
});

test("Gemma's runs of spaces, which were added to its vocabulary, are spaces", () => {
  const { tokenizer: json, config, rows } = fixtures.gemma;
  const id = make("gemma").vocabularySize;
  const run = { id, content: "▁▁▁", special: false, normalized: false, lstrip: false, rstrip: false };
  const own = { ...json, added_tokens: [...(json.added_tokens ?? []), { ...run, single_word: false }] };
  const tokenizer = new text.PretrainedTokenizer(own, { config, name: "gemma" });
  const ids = rows.find((row) => row.ids.length > 3)!.ids;
  expect(tokenizer.decode([id, ...ids])).toBe(`   ${make("gemma").decode(ids)}`);
  expect(tokenizer.decode(tokenizer.encode("a   b", plain))).toBe("a   b");
});

test("special tokens have names and are skipped on request; a stream keeps the first space of a text", () => {
  const tokenizer = make("llama2");
  const [begin, end] = [tokenizer.idOf("<s>")!, tokenizer.idOf("</s>")!];
  expect([tokenizer.beginOfText, tokenizer.endOfText]).toEqual([begin, end]);
  expect([begin, end].map((token) => tokenizer.isSpecial(token))).toEqual([true, true]);
  const ids = [...tokenizer.encode("the in", plain), end];
  const stream = tokenizer.decoder();
  expect(ids.map((id) => stream.push(id)).join("") + stream.end()).toBe(" the in");
  expect(tokenizer.decode(ids)).toBe("the in");
  expect(() => tokenizer.bytesOf(10_000)).toThrow(/expected a token from 0 to 599, got 10000/);
});

const metadataOf = (model: string, own: Pieces, more: object = {}) =>
  Object.entries({
    model,
    tokens: own.tokens,
    scores: own.scores,
    token_type: own.types,
    add_space_prefix: own.adds_space,
    bos_token_id: own.bos,
    eos_token_id: own.eos,
    unknown_token_id: own.unk,
    ...more,
  });
const entries = (pairs: readonly (readonly [string, unknown])[]) =>
  Object.fromEntries(pairs.map(([key, value]) => [`tokenizer.ggml.${key}`, { value }]));
const ofMetadata = (pairs: readonly (readonly [string, unknown])[]) => {
  const { json, ...options } = tokenizerOfGguf(entries(pairs));
  return new text.PretrainedTokenizer(json, options);
};

describe("the tokenizers of GGUF files equal those of folders", () => {
  test("GGUF's tokenizer of SentencePiece's BPE has the folder's tokens", async () => {
    const { bpe } = (await read("sentencepiece")) as { bpe: Pieces };
    const tokenizer = ofMetadata(metadataOf("llama", bpe));
    for (const { text: own, ids, special, decoded } of fixtures.llama2.rows) {
      expect(tokenizer.encode(own, plain)).toEqual([...ids]);
      expect(tokenizer.encode(own)).toEqual([...special]);
      expect(tokenizer.decode(ids)).toBe(decoded);
    }
  });

  test("GGUF's unigram tokenizer has the tokens of SentencePiece", async () => {
    const { unigram, rows } = (await read("sentencepiece")) as { unigram: Pieces; rows: readonly Row[] };
    const tokenizer = ofMetadata(metadataOf("t5", unigram));
    for (const { text: own, ids } of rows)
      if (!/<\||<unk>|<0x/.test(own)) {
        expect(tokenizer.encode(own, plain)).toEqual([...ids]);
        expect(tokenizer.encode(own)).toEqual([...ids, tokenizer.endOfText!]); // as llama.cpp does
      }
  });

  test.each([
    ["gpt2", "gpt-2"],
    ["qwen2", "qwen2"],
    ["llama3", "llama-bpe"],
    ["tekken", "tekken"],
    ["gpt4o", "gpt-4o"],
  ] as const)("GGUF's byte-level BPE of %s has the folder's tokens", (name, pre) => {
    const { tokenizer: json, config, rows } = fixtures[name];
    const model = json.model as unknown as { vocab: Record<string, number>; merges: readonly [string, string][] };
    const added = new Map((json.added_tokens ?? []).map(({ id, content }) => [id, content]));
    const own = [...Object.entries(model.vocab), ...[...added].map(([id, content]) => [content, id] as const)];
    const tokens = own.toSorted(([, a], [, b]) => a - b).map(([token]) => token);
    const idOf = (key: "bos_token" | "eos_token") => {
      const found = (config as Record<string, string | { content: string }>)[key];
      return found === undefined
        ? []
        : [[`${key}_id`, tokens.indexOf(typeof found === "string" ? found : found.content)]];
    };
    const tokenizer = ofMetadata([
      ["model", "gpt2"],
      ["pre", pre],
      ["tokens", tokens],
      ["token_type", tokens.map((_, id) => (added.has(id) ? 3 : 1))],
      ["merges", model.merges.map((pair) => pair.join(" "))],
      ["add_bos_token", !["gpt2", "qwen2"].includes(name)],
      ...(idOf("bos_token") as [string, number][]),
      ...(idOf("eos_token") as [string, number][]),
    ]);
    expect(tokenizer.endOfText).toBe(tokens.indexOf("<|end|>"));
    const steps = json["pre_tokenizer"] as { pretokenizers: { pattern?: { Regex: string } }[] };
    expect(patternsOf(pre)[0]).toMatchObject({ pattern: steps.pretokenizers[0].pattern! });
    for (const row of rows) {
      expect(tokenizer.encode(row.text, plain)).toEqual([...row.ids]);
      expect(tokenizer.encode(row.text)).toEqual([...row.special]);
    }
  });

  test("the error for an unknown kind names it", () => {
    expect(() => tokenizerOfGguf({})).toThrow(/tokenizer.ggml.model.*got none/);
    expect(() =>
      ofMetadata([
        ["model", "rwkv"],
        ["tokens", ["a"]],
      ]),
    ).toThrow(/gpt2, llama, t5, bert, got rwkv/);
    const pairs = [
      ["model", "gpt2"],
      ["tokens", ["a"]],
      ["pre", "newest"],
    ] as const;
    expect(() => ofMetadata(pairs)).toThrow(/tokenizer.ggml.pre .*got newest/);
  });
});

test("a folder and a GGUF file are loaded, and invalid files rejected", async () => {
  const { path: folder } = testFolder("text");
  const { tokenizer: json, config, rows } = fixtures.llama3;
  await Bun.write(join(folder, "tokenizer.json"), JSON.stringify(json));
  await Bun.write(join(folder, "tokenizer_config.json"), JSON.stringify(config));
  const loaded = text.loadTokenizer(folder);
  expect(loaded.encode(rows[8].text)).toEqual([...rows[8].special]);
  expect(loaded.endOfText).toBe(loaded.idOf("<|end|>"));

  const { bpe } = (await read("sentencepiece")) as { bpe: Pieces };
  const file = join(folder, "model.gguf");
  const metadata = metadataOf("llama", bpe).map(([key, value]) => [`tokenizer.ggml.${key}`, value]);
  await io.saveGguf(file, { a: zeros([1]) }, { metadata: Object.fromEntries(metadata) });
  const row = fixtures.llama2.rows[8];
  expect(text.loadTokenizer(file).encode(row.text)).toEqual([...row.special]);

  await Bun.write(join(folder, "tokenizer.json"), "{");
  expect(() => text.loadTokenizer(folder)).toThrow(expect.objectContaining({ name: "FileFormatError" }));
  await Bun.write(join(folder, "tokenizer.json"), "{}");
  expect(() => text.loadTokenizer(folder)).toThrow(/expected a model/);
  expect(() => text.loadTokenizer(join(folder, "none"))).toThrow(expect.objectContaining({ name: "FileError" }));
});
