/** Keywords of JSON schemas, one by one: accepted and rejected values, and limits from both sides. */
import { describe, expect, test } from "bun:test";
import { checkSchema } from "../../../src/text/constraint/json_schema.ts";
import { schemaRules } from "../../../src/text/constraint/schema_rules.ts";

/** Returns the problem with a schema or its rules; undefined if the schema is accepted. */
function problemOf(schema: unknown, check: (schema: unknown) => unknown = checkSchema): string | undefined {
  try {
    check(schema);
    return undefined;
  } catch (error) {
    expect(error).toMatchObject({ name: "ArgumentError", code: "invalidSchema" });
    return (error as Error).message;
  }
}

const schemas = [{ type: "integer" }, true, {}];
const valuesOfAnyType = [null, 1, "a", [1], { type: "nothing" }, true];

/**
 * Accepted and rejected values of keywords, grouped by the type of the keyword's value (JSON Schema 2020-12, and the
 * additions of drafts 6 to 2019-09).
 */
const keywords: readonly (readonly [names: string, taken: readonly unknown[], refused: readonly unknown[]])[] = [
  ["$schema $id $anchor $dynamicAnchor $comment $vocabulary title description default", valuesOfAnyType, []],
  ["examples readOnly writeOnly deprecated contentEncoding contentMediaType contentSchema", valuesOfAnyType, []],
  ["additionalProperties additionalItems propertyNames contains not if then else", schemas, [null, 1, "a", []]],
  ["unevaluatedProperties unevaluatedItems", schemas, [null, 1, "a", []]],
  ["allOf anyOf oneOf prefixItems", [schemas, [true]], [[], {}, 1, ["a"], [1], [{}, null]]],
  ["items", [...schemas, schemas], [null, 1, "a", [], [1]]],
  ["properties patternProperties $defs definitions dependentSchemas", [{}, { a: {}, b: true }], [1, [], { a: 1 }]],
  ["dependencies", [{}, { a: {}, b: ["c"] }, { a: [] }], [1, [], { a: [1] }, { a: "b" }]],
  ["dependentRequired", [{}, { a: ["b", "c"] }, { a: [] }], [1, [], { a: "b" }, { a: ["b", 1] }]],
  [
    "type",
    ["object", "array", "string", "number", "integer", "boolean", "null", ["string", "null"]],
    ["nothing", [], ["string", "nothing"], 1, "toString"],
  ],
  ["enum", [[1], ["a", null]], [[], 1, "a", {}]],
  ["const", valuesOfAnyType, []],
  ["minimum maximum exclusiveMinimum exclusiveMaximum", [0, -1.5, 1e300], ["1", null, true, Infinity, Number.NaN]],
  ["multipleOf", [0.5, 10_000, 1e-9], [0, -1, "1", Infinity, 1e-10, 10_001, 1000.01]],
  [
    "minItems maxItems minLength maxLength minProperties maxProperties minContains maxContains",
    [0, 1, 10_000],
    [-1, 0.5, 10_001, "1", null],
  ],
  ["pattern", ["", "a".repeat(1000)], [1, null, ["a"], "a".repeat(1001)]],
  ["format", ["date", "uuid"], [1, null, "nothing"]],
  ["$ref $dynamicRef", ["#", "#/$defs/a"], [1, null, {}]],
  ["required", [[], ["a", "b"]], ["a", [1], {}, null]],
  ["uniqueItems", [true, false], [0, "true", null]],
];
const each = keywords.flatMap(([names, taken, refused]) => names.split(" ").map((name) => ({ name, taken, refused })));

describe("each keyword of a schema is enforced", () => {
  test.each(each)("texts of the keyword follow it: $name", ({ name, taken, refused }) => {
    // The same holds inside another schema, and the error then contains the path.
    const places = [(own: object) => own, (own: object) => ({ properties: { p: { anyOf: [true, own] } } })];
    for (const [at, place] of places.entries()) {
      for (const value of taken) expect([value, problemOf(place({ [name]: value }))]).toEqual([value, undefined]);
      for (const value of refused) {
        const problem = problemOf(place({ [name]: value }));
        expect([value, problem]).toEqual([value, expect.stringContaining("[compileConstraint] schema")]);
        if (at === 1) expect(problem).toContain("schema.properties.p.anyOf.1");
      }
    }
  });

  test("other keywords are rejected, and the error lists those that can be enforced", () => {
    for (const name of ["minimums", "Type", "toString", "__proto__x"])
      expect(problemOf({ [name]: 1 })).toMatch(new RegExp(`expected only the keywords .*\\bminItems, .*got ${name}$`));
    for (const { name } of each.slice(16)) expect(problemOf({ none: 1 })).toContain(name);
    for (const { name } of each.slice(0, 16)) expect(problemOf({ none: 1 })).not.toContain(`${name},`);
  });

  test("an unknown format needs a pattern next to it, or in allOf", () => {
    expect(problemOf({ format: "mine" })).toContain("got mine");
    expect(problemOf({ format: "mine", pattern: "a" })).toBeUndefined();
    expect(problemOf({ format: "mine", allOf: [{}, { allOf: [{ pattern: "a" }] }] })).toBeUndefined();
    expect(problemOf({ format: "mine", anyOf: [{ pattern: "a" }] })).toContain("got mine");
  });
});

describe("limits of schemas apply", () => {
  const properties = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, {}]));
  const nested = (depth: number): object => (depth === 0 ? {} : { items: nested(depth - 1) });
  const names = (count: number) => Object.keys(properties(count));
  const optional = (count: number, required: number) => ({ properties: properties(count), required: names(required) });
  const halves = (count: number) => ({ allOf: [optional(512, 512), optional(count - 512, count - 512)] });

  test.each([
    ["optional properties", optional(256, 0), optional(257, 0), "at most 256 optional properties, got 257"],
    ["optional beside required", optional(300, 44), optional(300, 43), "at most 256 optional properties, got 257"],
    ["properties of the whole", halves(1024), halves(1025), "at most 1024 in the whole schema, got 1025"],
    ["levels", nested(64), nested(65), "at most 64 nested levels"],
  ])("the limit applies: %s", (_, most, more, problem) => {
    expect(problemOf(most)).toBeUndefined();
    expect(problemOf(more)).toContain(problem);
  });

  const counted = (names: number, least: number) => ({ properties: properties(names), minProperties: least });
  const listed = (items: number, least: number) => ({
    type: "array",
    prefixItems: Array.from({ length: items }, () => ({ type: ["null", "boolean"] })),
    contains: { type: "null" },
    minContains: least,
  });
  const impossible = { type: "object", properties: { a: false }, required: ["a"] };

  test.each([
    ["rules", counted(100, 50), counted(200, 100), "schema: expected a schema of at most 5000 rules"],
    ["counted items", listed(50, 25), listed(90, 45), "schema: contains requires fewer items here"],
    ["no value", {}, impossible, "schema: expected a schema that some value satisfies"],
  ])("the number of rules is limited: %s", (_, most, more, problem) => {
    const check = (schema: unknown) => schemaRules(JSON.stringify(schema));
    expect(problemOf(most, check)).toBeUndefined();
    expect(problemOf(more, check)).toStartWith(`[compileConstraint] ${problem}`);
  });

  test("the root is an object, and all its schemas are found with their paths and parents", () => {
    for (const whole of [true, false, null, [], 1, "a"]) expect(problemOf(whole)).toContain("expected an object");
    const found = checkSchema({ properties: { a: { items: [{ not: {} }, true] } }, if: {} });
    expect(found.map(({ path, parent }) => [path, parent?.path])).toEqual([
      ["", undefined],
      [".properties.a", ""],
      [".properties.a.items.0", ".properties.a"],
      [".properties.a.items.0.not", ".properties.a.items.0"],
      [".if", ""],
    ]);
  });
});
