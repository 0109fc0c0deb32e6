/** Compares SentencePiece models and the tokenizers of `transformers` that use them, on drawn texts. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { text } from "../../src/index.ts";
import { tokenizerOfGguf } from "../../src/text/gguf_tokenizer.ts";
import { normalizerOf } from "../../src/text/sentencepiece/charsmap.ts";
import { splitterOf } from "../../src/text/sentencepiece/encode.ts";
import { readSentencePiece } from "../../src/text/sentencepiece/model.ts";
import { Random } from "../ops/samples.ts";
import { testFolder } from "../support/folder.ts";
import { seed } from "../support/some.ts";

interface Fixture {
  readonly texts: readonly string[];
  readonly models: readonly {
    readonly options: Readonly<Record<string, unknown>>;
    readonly file: string;
    readonly pieces: readonly string[][];
  }[];
  readonly folders: readonly {
    readonly kind: "marian" | "m2m_100";
    readonly model: number;
    readonly config: object;
    readonly vocabulary: Readonly<Record<string, number>>;
    readonly cases: readonly (readonly [text: string, tokens: number[], decoded: string])[];
  }[];
}

const path = join(packageRoot, "test", "fixtures", "text", "sentencepieces.json");
const { texts, models, folders }: Fixture = JSON.parse(readFileSync(path, "utf8"));
const bytesOf = (index: number): Buffer => Buffer.from(models[index].file, "base64");
const folder = testFolder("sentencepieces");
/** Like Python's `strip`; JavaScript's `trim` also removes U+FEFF. */
const trimmed = (given: string): string => given.replace(/^[^\S\uFEFF]+|[^\S\uFEFF]+$/g, "");

test.each(models.map((model, index) => [JSON.stringify(model.options), index] as const))(
  "pieces equal SentencePiece's: %s",
  (_, index) => {
    const model = readSentencePiece(bytesOf(index), "a model");
    const [normalize, split] = [normalizerOf(model), splitterOf(model)];
    const got = texts.map((given) => [given, split(normalize(given)).map((part) => part.text)]);
    expect(got).toEqual(texts.map((given, at) => [given, models[index].pieces[at]]));
  },
);

/** Models without user-defined symbols, which llama.cpp matches before it splits a text. */
const unigram = models.flatMap(({ options }, index) =>
  options["model_type"] === "unigram" && !options["user_defined_symbols"] ? [index] : [],
);

test.each(unigram)("a tokenizer from the GGUF metadata of unigram model %d has the same pieces", (index) => {
  const { pieces, charsmap, addsPrefix, trimsSpaces, unknown } = readSentencePiece(bytesOf(index), "a model");
  const metadata = {
    model: "t5",
    tokens: pieces.map((piece) => piece.text),
    scores: pieces.map(({ score }) => score),
    token_type: pieces.map(({ type }) => type),
    unknown_token_id: unknown,
    add_eos_token: false,
    add_space_prefix: addsPrefix,
    remove_extra_whitespaces: trimsSpaces,
    precompiled_charsmap: charsmap.length > 0 ? charsmap : undefined,
  };
  const entries = Object.entries(metadata).map(([key, value]) => [`tokenizer.ggml.${key}`, { value }] as const);
  const { json, ...options } = tokenizerOfGguf(Object.fromEntries(entries));
  const tokenizer = new text.PretrainedTokenizer(json, options);
  const ids = new Map(pieces.map((piece, id) => [piece.text, id]));
  const isPlain = (given: string) => !/<\||<unk>|<0x|<s>|<\/s>/.test(given);
  for (const [at, given] of texts.entries())
    if (isPlain(given)) {
      const want = models[index].pieces[at].map((piece) => ids.get(piece) ?? unknown);
      expect([given, tokenizer.encode(given)]).toEqual([given, want]);
    }
});

describe.each(folders.map((own) => [`${own.kind}, model ${own.model}`, own] as const))(
  "tokenizers of sentence pieces: %s",
  (name, own) => {
    const place = folder.file(name);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, "tokenizer_config.json"), JSON.stringify(own.config));
    writeFileSync(join(place, "vocab.json"), JSON.stringify(own.vocabulary));
    writeFileSync(join(place, own.kind === "marian" ? "source.spm" : "sentencepiece.bpe.model"), bytesOf(own.model));
    const tokenizer = text.loadTokenizer(place);

    test("texts are encoded as by transformers", () => {
      expect(own.cases.map(([given]) => [given, tokenizer.encode(given)])).toEqual(
        own.cases.map(([given, tokens]) => [given, tokens]),
      );
    });

    test("tokens are decoded as by transformers", () => {
      expect(own.cases.map(([, tokens]) => trimmed(tokenizer.decode(tokens)))).toEqual(
        own.cases.map(([, , text]) => text),
      );
    });
  },
);

describe.each(models.map(({ options }, index) => [JSON.stringify(options), index] as const))(
  "folders with a tokenizer.model: %s",
  (_, index) => {
    const place = folder.file(`llama${index}`);
    const { pieces } = readSentencePiece(bytesOf(index), "a model");
    const ids = new Map(pieces.map((piece, id) => [piece.text, id]));
    const begin = ids.get("<s>")!;
    const isPlain = (given: string) => !/<unk>|<s>|<\/s>|<call>|<end>/.test(given);
    const load = (config: object) => {
      mkdirSync(place, { recursive: true });
      writeFileSync(join(place, "tokenizer.model"), bytesOf(index));
      writeFileSync(join(place, "tokenizer_config.json"), JSON.stringify(config));
      return text.loadTokenizer(place);
    };

    test("tokens are the pieces of SentencePiece after the token that begins a text", () => {
      const tokenizer = load({});
      for (const [at, given] of texts.filter(isPlain).entries()) {
        const own = models[index].pieces[texts.indexOf(given)].map((piece) => ids.get(piece) ?? ids.get("<unk>"));
        expect([at, given, tokenizer.encode(given)]).toEqual([at, given, [begin, ...own]] as never);
      }
      expect(load({ add_bos_token: false, add_eos_token: true }).encode("")).toEqual([ids.get("</s>")!]);
    });

    test("added tokens follow the pieces or replace some, and are not split", () => {
      const [first, second] = [pieces.length, pieces.length + 1];
      const tokenizer = load({
        added_tokens_decoder: {
          [first]: { content: "<call>", special: true },
          [second]: { content: "<end>", special: false },
        },
      });
      const tokens = tokenizer.encode("<call><end>");
      expect(tokens).toEqual([begin, first, second]);
      expect(tokenizer.decode(tokens, { skipSpecialTokens: true })).toBe("<end>");
      expect(() => load({ added_tokens_decoder: { [second]: { content: "<end>" } } })).toThrow(
        "with the ids from 0 on",
      );
    });
  },
);

test("T5 requires its first pieces, and mBART-50 has the tokens of languages", () => {
  const model = readSentencePiece(bytesOf(0), "a model");
  const { pieces } = model;
  const [t5, mbart] = ["t5", "mbart"].map((name) => folder.file(name)) as [string, string];
  for (const place of [t5, mbart]) mkdirSync(place, { recursive: true });
  writeFileSync(join(t5, "tokenizer_config.json"), JSON.stringify({ extra_ids: 3 }));
  writeFileSync(join(mbart, "sentencepiece.bpe.model"), bytesOf(0));
  writeFileSync(
    join(mbart, "special_tokens_map.json"),
    JSON.stringify({ additional_special_tokens: ["en_XX", "de_DE"] }),
  );
  // the first pieces in T5's files are <pad>, </s> and <unk>; here, the control pieces have other names
  const first = Buffer.from(bytesOf(0).toString("latin1").replace("\u0003<s>", "\u0003<p>"), "latin1");
  writeFileSync(join(t5, "spiece.model"), first);
  expect(() => text.loadTokenizer(t5)).toThrow("expected a vocabulary with <pad>");
  const tokenizer = text.loadTokenizer(mbart);
  const given = texts[5];
  const ids = splitterOf(model)(normalizerOf(model)(given)).map(({ id }) => (id === 0 ? 3 : id + 1));
  expect(tokenizer.idOf("en_XX")).toBe(pieces.length + 1);
  expect(tokenizer.idOf("<mask>")).toBe(pieces.length + 3);
  expect(tokenizer.encode(given)).toEqual([pieces.length + 1, ...ids, 2]);
});

test("damaged files are read, or rejected with a typed error", () => {
  const random = new Random(seed);
  const bytes = bytesOf(2);
  for (let turn = 0; turn < 60; turn++) {
    const damaged = Uint8Array.from(bytes.subarray(0, random.integer(0, bytes.length)));
    for (let at = 0; at < 3 && damaged.length > 0; at++)
      damaged[random.integer(0, damaged.length - 1)] = random.integer(0, 255);
    try {
      const model = readSentencePiece(damaged, "a model");
      splitterOf(model)(normalizerOf(model)("the world…"));
    } catch (error) {
      expect((error as Error).message).toContain("expected");
    }
  }
});
