/** Tokenizer files in which one value has another type: a typed error at load, or a tokenizer that works. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as fc from "fast-check";
import { packageRoot } from "../../src/core/paths.ts";
import { text } from "../../src/index.ts";
import { repeats } from "../support/repeats.ts";

type Json = Record<string, unknown>;
const names = ["gpt2", "qwen2", "llama3", "tekken", "gpt4o", "llama2", "gemma", "t5", "bert"] as const;
const fixtures = Object.fromEntries(
  await Promise.all(
    names.map(async (name) => {
      const file = Bun.file(join(packageRoot, "test", "fixtures", "text", `${name}.json`));
      return [name, (await file.json()) as { tokenizer: Json; config: Json }] as const;
    }),
  ),
);

/** The paths of a value, except for long lists of one kind, of which some are enough. */
function placesOf(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== "object" || value === null) return [path];
  const keys = Array.isArray(value) ? [...value.keys()].slice(0, 4) : Object.keys(value).slice(0, 40);
  return [path, ...keys.flatMap((key) => placesOf((value as Json)[key], [...path, key]))];
}

/** A copy in which one path has another value; undefined removes it. */
function changed(value: unknown, [key, ...rest]: readonly (string | number)[], by: unknown): unknown {
  if (key === undefined) return by;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as Json) }) as Json;
  const own = changed(copy[key], rest, by);
  if (own === undefined) delete copy[key];
  else copy[key] = own;
  return copy;
}

function errorOf(body: () => void): unknown {
  try {
    body();
    return undefined;
  } catch (error) {
    return error;
  }
}

const used = (json: unknown, config: unknown): unknown =>
  errorOf(() => {
    const tokenizer = new text.PretrainedTokenizer(json as never, { config: config as never });
    const samples = ["Hello  wörld,\n 42 中文 <s>[CLS]</s>", "", "a", "<|endoftext|>", "\u0000\ud800"];
    for (const sample of samples)
      for (const addSpecialTokens of [true, false]) {
        const ids = tokenizer.encode(sample, { addSpecialTokens });
        if (!ids.every((id) => Number.isInteger(id) && id >= 0 && id < tokenizer.vocabularySize))
          throw new TypeError(`ids of ${JSON.stringify(sample)}: ${ids}`);
        tokenizer.decode(ids);
        tokenizer.decode(ids, { skipSpecialTokens: false });
      }
    void tokenizer.templateTokens;
  });

const isTyped = (error: unknown): boolean => error === undefined || (error as Error).name === "ArgumentError";
const other = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    undefined,
    true,
    0,
    1,
    -1,
    0.5,
    1e300,
    2 ** 31,
    "",
    "a",
    " ",
    [],
    {},
    [null],
    [[]],
    ["a"],
  ),
  fc.constantFrom<unknown>(
    { type: "Sequence" },
    { type: 3 },
    { type: "ByteLevel" },
    [["a", "b"]],
    { String: 3 },
    "__proto__",
  ),
  fc.jsonValue({ maxDepth: 2 }),
);

test.each(names)("%s with one value of another type is rejected", (name) => {
  const { tokenizer, config } = fixtures[name];
  const places = placesOf(tokenizer).map((path) => ["tokenizer", ...path]);
  const own = [...places, ...placesOf(config).map((path) => ["config", ...path])].slice(1);
  fc.assert(
    fc.property(fc.constantFrom(...own), other, (path, by) => {
      const { tokenizer: json, config: given } = changed({ tokenizer, config }, path, by) as Record<string, unknown>;
      if (typeof json !== "object" || json === null) return;
      const error = used(json, given ?? {});
      expect([path, by, error, isTyped(error)]).toEqual([path, by, error, true]);
    }),
    { numRuns: repeats({ usual: 150, all: 3000 }), seed: 8 },
  );
});

describe("rejected at load, with the path", () => {
  const { tokenizer, config } = fixtures["llama3"];
  let deep: Json = { type: "ByteLevel" };
  for (let level = 0; level < 50_000; level++) deep = { type: "Sequence", pretokenizers: [deep] };
  test.each([
    [{ post_processor: { type: "TemplateProcessing", single: [null], pair: [] } }, /post_processor.single\[0\]/],
    [{ post_processor: { type: "TemplateProcessing", single: [{ SpecialToken: { id: "<none>" } }] } }, /<none>/],
    [{ post_processor: { type: "BertProcessing", sep: ["a"], cls: ["a", 1] } }, /post_processor.sep/],
    ...[
      [3, 1],
      ["", 1],
      [null, 1],
      ["a", -1],
      ["a", "1"],
    ].flatMap((pair): [object, RegExp][] => {
      const path = typeof pair[0] === "string" && pair[0] !== "" ? "1" : "0";
      const right = ["a", 1];
      return [
        [
          { post_processor: { type: "BertProcessing", sep: pair, cls: right } },
          RegExp(`post_processor.sep\\[${path}\\]`),
        ],
        [
          { post_processor: { type: "BertProcessing", sep: right, cls: pair } },
          RegExp(`post_processor.cls\\[${path}\\]`),
        ],
      ];
    }),
    [{ added_tokens: [{ id: "7", content: "a" }] }, /added_tokens\[0\].id/],
    [{ added_tokens: [{ id: 7, content: 3 }] }, /added_tokens\[0\].content/],
    [{ added_tokens: [7] }, /added_tokens\[0\]/],
    [{ model: { ...(tokenizer["model"] as Json), vocab: { a: -1 } } }, /model.vocab\["a"\]/],
    [{ model: { ...(tokenizer["model"] as Json), merges: ["ab"] } }, /model.merges\[0\]/],
    [{ model: { type: "Unigram", vocab: [["a", 0]], unk_id: 1 } }, /unk_id/],
    [{ pre_tokenizer: deep }, /at most 32 levels/],
    [{ normalizer: { type: "Replace", pattern: {}, content: "a" } }, /normalizer.pattern/],
    [{ decoder: { type: "Strip", content: "a", start: "1", stop: 0 } }, /decoder.start/],
  ])("tokenizer %# is rejected", (change, message) => {
    const make = () => new text.PretrainedTokenizer({ ...tokenizer, ...change } as never, { config });
    expect(make).toThrow(expect.objectContaining({ name: "ArgumentError", message: expect.stringMatching(message) }));
  });
});

test.each([
  ["a text", "a zz"],
  ["a pair", ["zz", "a"]],
] as const)("a merge of an unknown token, as %s, is named at load", (_, merge) => {
  const { tokenizer, config } = fixtures["gpt2"];
  const { merges } = tokenizer["model"] as { readonly merges: readonly unknown[] };
  const json = changed(tokenizer, ["model", "merges"], [...merges, typeof merge === "string" ? merge : [...merge]]);
  const error = errorOf(() => new text.PretrainedTokenizer(json as never, { config: config as never }));
  expect(error).toMatchObject({ code: "invalidTokenizer" });
  expect(String(error)).toContain(
    `tokenizer.json.model.merges[${merges.length}] to be a pair of tokens in the vocabulary`,
  );
});
