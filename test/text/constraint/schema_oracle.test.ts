/**
 * Drawn schemas: ajv accepts every text that a schema permits, and similar values are permitted if ajv accepts them.
 */
import { expect, test } from "bun:test";
import Ajv from "ajv/dist/2020";
import addFormats from "ajv-formats";
import * as fc from "fast-check";
import { repeats } from "../../support/repeats.ts";
import { randomFrom } from "./held_to.ts";
import { SchemaForm } from "./schema_forms.ts";

const ajv = new Ajv({ strict: false, multipleOfPrecision: 9, unevaluated: true, allErrors: false });
addFormats(ajv);

type Drawn = fc.Arbitrary<Record<string, unknown>>;
/** Each keyword is present or not. */
const some = (keywords: Record<string, fc.Arbitrary<unknown>>): Drawn =>
  fc.record(keywords, { requiredKeys: [] }) as Drawn;

const bound = fc.oneof(
  fc.integer({ min: -30, max: 30 }),
  fc.integer({ min: -300, max: 300 }).map((own) => own / 10),
  fc.constantFrom(0, 1e6, -1e6, Number.MAX_SAFE_INTEGER, 1e-7),
);
const number = fc
  .tuple(
    fc.constantFrom("integer", "number"),
    some({ minimum: bound, exclusiveMinimum: bound }),
    some({ maximum: bound, exclusiveMaximum: bound }),
    some({ multipleOf: fc.constantFrom(1, 2, 7, 100, 0.5, 0.01) }),
  )
  .map(([type, least, most, multiple]) => ({ type, ...least, ...most, ...multiple }));

const formats = ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uri-reference"];
const patterns = ["^a", "b$", "^[a-z]+$", "[0-9]{2}", "^(?!.*ab)[abc]*$", "^(?=.*b).{1,5}$", "é|ß", "^x?y*$"];
const text = fc
  .oneof(
    some({
      minLength: fc.nat(4),
      maxLength: fc.integer({ min: 2, max: 9 }),
      pattern: fc.constantFrom(...patterns),
    }),
    fc.record({ format: fc.constantFrom(...formats, "uuid", "json-pointer", "relative-json-pointer") }),
  )
  .map((own) => ({ type: "string", ...own }));

const value = fc.oneof(
  fc.constantFrom<unknown>(0, 1, -1, 2.5, "", "a", "ab", "é\n", true, false, null, [], ["a"], {}),
  fc.record({ a: fc.constantFrom(1, "a") }),
);
const names = ["a", "b", "c", "ab"];
const name = fc.constantFrom(...names);
const namesOf = fc.uniqueArray(name, { maxLength: 2 });

const conditions = ["if", "then", "else"] as const;

const { schema } = fc.letrec<{ schema: Record<string, unknown>; object: Record<string, unknown> }>((tie) => {
  const inner = tie("schema");
  const list = fc.array(inner, { minLength: 2, maxLength: 3 });
  const object = some({
    properties: fc.dictionary(name, inner, { maxKeys: 3 }),
    required: namesOf,
    additionalProperties: fc.oneof(fc.boolean(), inner),
    patternProperties: fc.dictionary(fc.constantFrom("^a", "b$", "^x"), inner, { minKeys: 1, maxKeys: 2 }),
    propertyNames: fc.constantFrom({ pattern: "^[a-z]" }, { maxLength: 2 }, { enum: ["a", "b", "ab"] }),
    minProperties: fc.nat(2),
    maxProperties: fc.integer({ min: 1, max: 3 }),
    dependentRequired: fc.dictionary(name, namesOf, { maxKeys: 1 }),
    unevaluatedProperties: fc.boolean(),
  }).map((own) => ({ type: "object", ...own }));
  const counts = { minItems: fc.nat(2), maxItems: fc.integer({ min: 1, max: 3 }) };
  // ajv accepts [] for schemas with both prefixItems and contains.
  const array = fc
    .oneof(
      some({ items: inner, prefixItems: fc.array(inner, { minLength: 1, maxLength: 2 }), ...counts }),
      some({ items: inner, contains: inner, ...counts }),
    )
    .map((own) => ({ type: "array", ...own }));
  return {
    object,
    schema: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      number,
      text,
      fc.uniqueArray(value, { minLength: 1, maxLength: 4, comparator: (a, b) => Bun.deepEquals(a, b) }).map((own) => ({
        enum: own,
      })),
      value.map((own) => ({ const: own })),
      fc.constantFrom({}, { type: "boolean" }, { type: ["null", "integer"] }, { not: { type: "string" } }),
      object,
      array,
      fc.record({ anyOf: list }),
      fc.record({ oneOf: list }),
      fc.record({ allOf: list }),
      fc.tuple(inner, inner).map(([a, b]) => ({ ...a, allOf: [b] })),
      fc.tuple(inner, inner, inner).map((all) => Object.fromEntries(all.map((own, at) => [conditions[at], own]))),
      fc.tuple(inner, fc.oneof(number, text)).map(([own, not]) => ({ ...own, not })),
      // A discriminated union.
      fc.tuple(object, object).map((all) => ({
        oneOf: all.map((own, at) => ({
          ...own,
          properties: { ...(own as { properties?: object }).properties, kind: { const: at } },
          required: ["kind"],
        })),
      })),
    ),
  };
});

/** Yields values that differ from a value in one place, or that lack one of its fields. */
function* near(own: unknown): Generator<unknown> {
  const others = [null, true, 0, 1, -3, 2.5, 1e6, "", "a", "ab", "b1", [], {}];
  yield* others.filter((other) => typeof own !== "object" || own === null || typeof other !== "object");
  if (typeof own === "number") yield* [own + 1, own - 0.5, -own].map((each) => (Object.is(each, -0) ? 0 : each));
  if (typeof own === "string") yield* [`${own}a`, own.slice(1)];
  if (Array.isArray(own))
    for (const [at, each] of own.entries()) for (const other of near(each)) yield own.with(at, other);
  else if (typeof own === "object" && own !== null)
    for (const [key, each] of Object.entries(own)) {
      const { [key]: _, ...rest } = own as Record<string, unknown>;
      yield rest;
      for (const other of near(each)) yield { ...own, [key]: other };
    }
}

const IMPOSSIBLE = /expected a schema that some value satisfies/;
const REFUSED = new RegExp(
  ["not supported within not or oneOf", "minProperties to be", "combinations of alternatives"]
    .concat("patternProperties in total", "automaton states in total")
    .join("|"),
);
const few = [null, true, 0, 1, -1, 2.5, 7, 100, "", "a", "ab", "xy", [], [1], ["a"], {}, { a: 1 }, { a: "a" }];

test("texts are valid by ajv; similar values are accepted if, and only if, they are valid", async () => {
  const counts = { impossible: 0, refused: 0, drawn: 0, missed: 0, accepted: 0 };
  const numRuns = repeats({ usual: 120, all: 3000 });
  await fc.assert(
    fc.asyncProperty(schema, fc.nat(), async (written, seed) => {
      const own = JSON.parse(JSON.stringify(written)) as object; // a copy, because ajv compares prototypes
      const isValid = ajv.compile(own);
      const form = await SchemaForm.of(own).catch((error: Error) => {
        const isImpossible = IMPOSSIBLE.test(error.message);
        if (isImpossible) expect([own, few.filter((each) => isValid(each))]).toEqual([own, []]);
        else expect(error.message).toMatch(REFUSED);
        counts[isImpossible ? "impossible" : "refused"]++;
      });
      if (!form) return;
      using held = form;
      const random = randomFrom(seed);
      for (let at = 0; at < 3; at++) {
        const said = await held.drawn(random);
        if (said === undefined) continue;
        counts.drawn++;
        const parsed = JSON.parse(said);
        expect([own, said, isValid(parsed)]).toEqual([own, said, true]);
        for (const other of [parsed, ...[...near(parsed)].filter(() => random() < 0.3)]) {
          const isAccepted = await held.accepts(JSON.stringify(other));
          if (isAccepted) expect([own, other, isValid(other)]).toEqual([own, other, true]);
          if (isValid(other)) counts[isAccepted ? "accepted" : "missed"]++;
        }
      }
    }),
    { numRuns, seed: 2020 },
  );
  expect(counts.refused).toBeLessThan(numRuns / 10);
  expect(counts.drawn).toBeGreaterThan(numRuns);
  expect(counts.missed).toBeLessThan(counts.accepted / 100);
});

test("limits on the number of properties are enforced, for named and for other properties", async () => {
  const names = ["a", "b", "c"];
  const limit = fc.option(fc.nat(4), { nil: undefined });
  await fc.assert(
    fc.asyncProperty(limit, limit, fc.nat(3), fc.boolean(), async (minProperties, maxProperties, named, isOpen) => {
      const own = {
        type: "object",
        minProperties: minProperties ?? 0,
        maxProperties: maxProperties ?? 9,
        properties: Object.fromEntries(names.slice(0, named).map((name) => [name, { type: "null" }])),
        additionalProperties: isOpen && { type: "null" },
      };
      const isValid = ajv.compile(own);
      const form = await SchemaForm.of(own).catch((error: Error) => {
        expect(error.message).toMatch(IMPOSSIBLE.test(error.message) ? IMPOSSIBLE : REFUSED);
      });
      for (let set = 0; set < 2 ** names.length; set++) {
        const value = Object.fromEntries(names.filter((_, at) => (set >> at) & 1).map((name) => [name, null]));
        if (!form) continue;
        // Unnamed properties may repeat one name, so all of them count as one.
        const known = Object.keys(value).filter((name) => name in own.properties).length;
        const others = Object.keys(value).length - known;
        const isEnough = known + Math.min(1, others) >= own.minProperties;
        const isAccepted = await form.accepts(JSON.stringify(value));
        expect([own, value, isAccepted]).toEqual([own, value, isEnough && isValid(value)]);
      }
      form?.[Symbol.dispose]();
    }),
    { numRuns: repeats({ usual: 80, all: 600 }), seed: 5 },
  );
});
