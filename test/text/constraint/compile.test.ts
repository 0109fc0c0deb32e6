/** Texts of a random model, which would generate anything, follow a constraint. */
import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { data, Generator, nn, setBackend, text } from "../../../src/index.ts";
import { accepts } from "./held_to.ts";

const bytes = new data.ByteTokenizer();
const fixture = await Bun.file(join(packageRoot, "test", "fixtures", "text", "llama2.json")).json();
const pieces = new text.PretrainedTokenizer(fixture.tokenizer, { config: fixture.config });
const sizes = { contextLength: 512, layers: 1, heads: 2, width: 16 } as const;
const modelOf = (vocabularySize: number) =>
  new nn.Llama({ ...sizes, vocabularySize, generator: new Generator(9), initialization: nn.llamaInitialization(0.4) });
/** Bytes have no end-of-text token; pieces have one, and the model has more tokens than the tokenizer. */
const kinds = { bytes: [modelOf(256), bytes], pieces: [modelOf(640), pieces] } as const;

beforeAll(() => {
  setBackend("cpu");
});

describe.each(Object.keys(kinds) as (keyof typeof kinds)[])("constraints of generated texts: %s", (kind) => {
  const [model, tokenizer] = kinds[kind];
  const texts = async (options: text.ConstraintOptions, count = 6, maxTokens = 400): Promise<string[]> => {
    const constraint = await text.compileConstraint(tokenizer, options);
    using batcher = new nn.Batcher(model, { slots: 3 });
    const stopTokens = tokenizer.endOfText === null ? [] : [tokenizer.endOfText];
    const streams = Array.from({ length: count }, (_, seed) =>
      batcher.submit([1 + seed], { constraint, seed, temperature: 1.5, maxTokens, stopTokens }),
    );
    return await Promise.all(
      streams.map(async (stream) => {
        const tokens = (await Array.fromAsync(stream)).map(({ token }) => token);
        expect(stream.finishReason).toBe("stop");
        return tokenizer.decode(tokens);
      }),
    );
  };

  test("generated texts match a regular expression", async () => {
    const found = await texts({ regex: "[0-9]{2,3}-(ab|cd){1,3}é?" });
    for (const own of found) expect(own.trimStart()).toMatch(/^[0-9]{2,3}-(ab|cd){1,3}é?$/);
    expect(new Set(found).size).toBeGreaterThan(1);
  });

  test("generated texts are valid for a JSON schema", async () => {
    const schema = {
      type: "object",
      properties: {
        age: { type: "integer", minimum: 0, maximum: 150 },
        kind: { enum: ["cat", "dog", null] },
        tags: { type: "array", items: { type: "string", pattern: "^[a-z]{1,4}$" }, minItems: 1, maxItems: 3 },
        next: { $ref: "#/$defs/place" },
      },
      required: ["age", "kind", "tags", "next"],
      additionalProperties: false,
      $defs: { place: { type: "object", properties: { x: { type: "boolean" } }, required: ["x"] } },
    };
    for (const own of await texts({ schema })) {
      const value = JSON.parse(own);
      expect(Object.keys(value)).toEqual(["age", "kind", "tags", "next"]);
      expect(Number.isInteger(value.age) && value.age >= 0 && value.age <= 150).toBe(true);
      expect(["cat", "dog", null]).toContain(value.kind);
      expect(value.tags.length).toBeGreaterThanOrEqual(1);
      expect(value.tags.length).toBeLessThanOrEqual(3);
      for (const tag of value.tags) expect(tag).toMatch(/^[a-z]{1,4}$/);
      expect(Object.entries(value.next)).toEqual([["x", expect.any(Boolean)]]);
    }
  });

  test("generateText accepts a constraint, also at temperature 0", async () => {
    const constraint = await text.compileConstraint(tokenizer, { regex: "yes|no" });
    const options = { constraint, temperature: 0, maxTokens: 50 };
    const found = await Array.fromAsync(nn.generateText(model, tokenizer, "a", options));
    expect(["yes", "no"]).toContain(found.join("").trim());
  });
});

test("a text constrained to JSON begins as JSON does, and is valid if it ends", async () => {
  const [model, tokenizer] = kinds.bytes;
  const constraint = await text.compileConstraint(tokenizer, { json: true });
  for (let seed = 0; seed < 4; seed++) {
    const options = { constraint, seed, maxTokens: 60, topK: 40 };
    const found = (await Array.fromAsync(nn.generateText(model, tokenizer, "a", options))).join("");
    expect(found).toMatch(/^[[{]/);
  }
});

test.each([
  [{}, "noForm"],
  [{ regex: "a", json: true }, "noForm"],
  [{ regex: "(" }, "notARegex"],
  [{ regex: "a{100000}" }, "tooLarge"],
  [{ schema: { type: "nothing" } }, "invalidSchema"],
  [{ schema: { toJSON: () => 1 } }, "invalidSchema"],
  [{ schema: { allOf: [{ type: "integer" }, { type: "string" }] } }, "invalidSchema"],
  [{ schema: { type: "array", items: { type: "string" }, uniqueItems: true } }, "invalidSchema"],
  [{ schema: { not: { additionalProperties: false } } }, "invalidSchema"],
  [{ schema: { $ref: "#/$defs/none" } }, "invalidSchema"],
  [{ schema: { type: "array", items: { type: "string", pattern: "(" } } }, "invalidSchema"],
  [{ schema: { type: "number", minimum: "0.5" } }, "invalidSchema"],
  [{ schema: { type: "number", minimum: 2, exclusiveMaximum: 2 } }, "invalidSchema"],
] as const)("%j is rejected", async (options, code) => {
  await expect(text.compileConstraint(bytes, options)).rejects.toThrow(expect.objectContaining({ code }));
});

test("annotations are accepted, and do not constrain values", async () => {
  const annotations = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "https://example.org/a",
    $comment: "none",

    $anchor: "a",
    $dynamicAnchor: "b",
    $vocabulary: { "https://example.org/b": true },
    $defs: {},
    definitions: {},
    title: "A",
    description: "a number",
    default: "a",
    examples: ["b"],
    deprecated: true,
    readOnly: true,
    writeOnly: true,
    contentEncoding: "base64",
    contentMediaType: "text/plain",
    contentSchema: { type: "string" },
  };
  for (const [key, value] of [...Object.entries(annotations), ["$schema", "http://json-schema.org/draft-07/schema#"]]) {
    const constraint = await text.compileConstraint(bytes, { schema: { type: "integer", [key as string]: value } });
    for (const own of ["17", "-3", "0"]) expect([key, own, await accepts(constraint, own)]).toEqual([key, own, true]);
    for (const own of ['"a"', "1.5"]) expect([key, own, await accepts(constraint, own)]).toEqual([key, own, false]);
  }
});

test("the error for an invalid schema names the path", async () => {
  const schema = { properties: { a: { type: "string", format: "nothing" } } };
  await expect(text.compileConstraint(bytes, { schema })).rejects.toThrow(/schema.properties.a.format: .*got nothing/);
});
