/** The conditions of each JSON schema keyword for values that satisfy it, and for values that don't. */
import type { ArgumentError } from "../../core/errors.ts";
import { listIn, stringIn } from "../../core/values.ts";
import { formatPattern, formats, subsetPattern } from "./formats.ts";
import { nextAfter } from "./number_pattern.ts";
import { anyText, not, type Pattern } from "./pattern.ts";
import { readPattern } from "./read_pattern.ts";
import type { SchemaTerms, Term } from "./schema_terms.ts";
import { atPath, invalidSchema as invalid, type Schema, UNEVALUATED } from "./schema_text.ts";
import { anything, type Facts, MOST_SHAPES, meet, TYPES, type Type, typeOf } from "./shape.ts";

/** Facts and terms that must all hold. */
export interface Branch {
  readonly facts?: Facts;
  readonly terms?: readonly Term[];
}

/** Alternatives, of which one holds. */
export type Branches = readonly Branch[];

/** The context in which keywords are read. */
export interface Reading {
  readonly schema: Schema;
  readonly path: string;
  readonly terms: SchemaTerms;
  /** Whether it is known that no value satisfies both terms. */
  areDisjoint(a: Term, b: Term): boolean;
}

interface Keyword {
  /** Keywords that are evaluated together if any is present. */
  readonly names: readonly string[];
  readonly holds: (reading: Reading) => Branches;
  readonly fails: (reading: Reading) => Branches;
}

const facts = (shape: Facts): Branch => ({ facts: shape });
const only = (type: Type, shape: Facts = {}): Branch => ({ facts: { types: [type], ...shape } });

/** Returns the term of a schema in the value of a keyword. */
const termOf = ({ schema, path, terms }: Reading, name: string, key?: string | number, isDenied = false): Term => {
  const value = schema[name] as Schema;
  const inner = (key === undefined ? value : value[String(key)]) as Schema | boolean;
  return terms.of(inner, `${path}.${name}${key === undefined ? "" : `.${key}`}`, isDenied);
};
const held = (reading: Reading, name: string, key?: string | number): Term => termOf(reading, name, key);
const denied = (reading: Reading, name: string, key?: string | number): Term => termOf(reading, name, key, true);
const keysOf = ({ schema }: Reading, name: string): string[] => Object.keys((schema[name] as object | undefined) ?? {});

/** Defines a keyword with a number or text: its condition, and the type and condition of values that fail it. */
const simple = <T>(name: string, type: Type, holds: (value: T) => Facts, fails: (value: T) => Facts): Keyword => ({
  names: [name],
  holds: ({ schema }) => [facts(holds(schema[name] as T))],
  fails: ({ schema }) => [only(type, fails(schema[name] as T))],
});

const before = (value: number): number => -nextAfter(-value);

const numbers: readonly Keyword[] = [
  simple<number>(
    "minimum",
    "number",
    (least) => ({ least }),
    (bound) => ({ most: before(bound) }),
  ),
  simple<number>(
    "maximum",
    "number",
    (most) => ({ most }),
    (bound) => ({ least: nextAfter(bound) }),
  ),
  simple<number>(
    "exclusiveMinimum",
    "number",
    (bound) => ({ least: nextAfter(bound) }),
    (most) => ({ most }),
  ),
  simple<number>(
    "exclusiveMaximum",
    "number",
    (bound) => ({ most: before(bound) }),
    (least) => ({ least }),
  ),
  simple<number>(
    "multipleOf",
    "number",
    (divisor) => ({ multiples: [divisor] }),
    (divisor) => ({ nonMultiples: [divisor] }),
  ),
];

const counts: readonly Keyword[] = (
  [
    ["minLength", "string", "leastLength", "mostLength"],
    ["minItems", "array", "leastItems", "mostItems"],
    ["minProperties", "object", "leastProperties", "mostProperties"],
  ] as const
).flatMap(([least, type, low, high]) => [
  simple<number>(
    least,
    type,
    (bound) => ({ [low]: bound }),
    (bound) => ({ [high]: bound - 1 }),
  ),
  simple<number>(
    least.replace("min", "max"),
    type,
    (bound) => ({ [high]: bound }),
    (bound) => ({ [low]: bound + 1 }),
  ),
]);

const patternOf = ({ schema, path }: Reading): Pattern =>
  atPath(`${path}.pattern`, () => readPattern(stringIn(schema["pattern"]), "part"));
const formatOf = ({ schema, path }: Reading): Pattern =>
  formats.has(stringIn(schema["format"]))
    ? atPath(`${path}.format`, () => formatPattern(stringIn(schema["format"])))
    : anyText;

const texts: readonly Keyword[] = [
  {
    names: ["pattern"],
    holds: (reading) => [
      facts({ patterns: [subsetPattern(stringIn(reading.schema["pattern"])) ?? patternOf(reading)] }),
    ],
    fails: (reading) => [only("string", { patterns: [not(patternOf(reading))] })],
  },
  {
    names: ["format"],
    holds: (reading) => [facts({ patterns: [formatOf(reading)] })],
    fails: (reading) => [only("string", { patterns: [not(formatOf(reading))] })],
  },
];

const namesOf = (value: unknown): string[] => [value].flat() as string[];

const values: readonly Keyword[] = [
  {
    names: ["type"],
    holds({ schema }) {
      const names = namesOf(schema["type"]);
      const types = TYPES.filter((type) => names.includes(type) || (type === "number" && names.includes("integer")));
      const isWhole = names.includes("integer") && !names.includes("number");
      return [facts({ types, ...(isWhole && { multiples: [1] }) })];
    },
    fails({ schema }) {
      const names = namesOf(schema["type"]);
      const types = TYPES.filter((type) => !names.includes(type) && !(type === "number" && names.includes("integer")));
      const isWhole = names.includes("integer") && !names.includes("number");
      return [facts({ types }), ...(isWhole ? [only("number", { nonMultiples: [1] })] : [])];
    },
  },
  {
    names: ["enum"],
    holds: ({ schema }) => [facts({ values: listIn(schema["enum"]) })],
    fails: (reading) => differing(reading, listIn(reading.schema["enum"])),
  },
  {
    names: ["const"],
    holds: ({ schema }) => [facts({ values: [schema["const"]] })],
    fails: (reading) => differing(reading, [reading.schema["const"]]),
  },
];

/** Matches values that equal none of the listed ones. */
function differing(reading: Reading, listed: readonly unknown[]): Branches {
  const isList = (value: unknown): value is unknown[] => typeOf(value) === "array";
  const isObject = (value: unknown): value is Record<string, unknown> => typeOf(value) === "object";
  return product(reading, [
    [facts({ excluded: listed.filter((value) => !isList(value) && !isObject(value)) })],
    ...listed.filter(isList).map((value) => otherLists(reading, value)),
    ...listed.filter(isObject).map((value) => otherObjects(reading, value)),
  ]);
}

/** Matches every value other than a list: no list, a shorter or longer one, or one with a different item. */
function otherLists(reading: Reading, list: readonly unknown[]): Branches {
  const anyItem = reading.terms.of(true, reading.path);
  return [
    ...others("array"),
    ...(list.length > 0 ? [only("array", { mostItems: list.length - 1 })] : []),
    only("array", { leastItems: list.length + 1 }),
    ...list.map((item, at) => {
      const prefix = [...list.slice(0, at).map(() => anyItem), reading.terms.unequal(item, reading.path)];
      return only("array", { leastItems: at + 1, lists: [{ prefix, rest: anyItem, isDenied: true }] });
    }),
  ];
}

/** Matches every value other than an object: no object, or one with a property that is missing, added or different. */
function otherObjects(reading: Reading, object: Readonly<Record<string, unknown>>): Branches {
  const keys = Object.keys(object);
  const having = (properties: ReadonlyMap<string, Term>): Facts => ({
    objects: [{ properties, patterns: [], others: undefined, isDenied: true }],
  });
  const anyValue = reading.terms.of(true, reading.path);
  const present = new Map(keys.map((key) => [key, anyValue]));
  return [
    ...others("object"),
    ...keys.map((key) => without(reading, key)),
    only("object", { leastProperties: keys.length + 1, ...having(present) }),
    ...keys.map((key) =>
      only("object", {
        required: [key],
        ...having(new Map([[key, reading.terms.unequal(object[key], reading.path)]])),
      }),
    ),
  ];
}

const others = (type: Type): Branches => [facts({ types: TYPES.filter((each) => each !== type) })];

const unsupported = ({ path }: Reading, name: string): never => {
  throw invalid(`${path}.${name}`, "not supported within not or oneOf: its negation can't be enforced");
};

/** Whether a keyword has no effect, because it is true or absent. */
const isTrivial = ({ schema }: Reading, name: string): boolean => schema[name] === undefined || schema[name] === true;

const lists: readonly Keyword[] = [
  {
    names: ["prefixItems", "items", "additionalItems"],
    holds(reading) {
      const { prefix, rest } = itemsOf(reading);
      const items = prefix.map(([name, at]) => held(reading, name, at));
      return [facts({ lists: [{ prefix: items, rest: rest === undefined ? undefined : held(reading, rest) }] })];
    },
    fails(reading) {
      const { prefix, rest } = itemsOf(reading);
      const branches = prefix.map(([name, at], length) => {
        const before = Array.from({ length }, () => reading.terms.of(true, reading.path));
        const items = [...before, denied(reading, name, at)];
        const others = reading.terms.of(true, reading.path);
        return only("array", { leastItems: length + 1, lists: [{ prefix: items, rest: others, isDenied: true }] });
      });
      if (rest === undefined || isTrivial(reading, rest)) return branches;
      if (reading.schema[rest] === false) return [...branches, only("array", { leastItems: prefix.length + 1 })];
      if (prefix.length > 0) return unsupported(reading, rest);
      return [
        only("array", {
          contains: [{ term: denied(reading, rest), denied: held(reading, rest), least: 1, most: Infinity }],
        }),
      ];
    },
  },
  {
    names: ["contains"],
    holds(reading) {
      const { minContains = 1, maxContains = Infinity } = reading.schema as {
        minContains?: number;
        maxContains?: number;
      };
      const terms = { term: held(reading, "contains"), denied: denied(reading, "contains") };
      return [facts({ contains: [{ ...terms, least: minContains, most: maxContains }] })];
    },
    fails(reading) {
      const { minContains = 1, maxContains = Infinity } = reading.schema as {
        minContains?: number;
        maxContains?: number;
      };
      const terms = { term: held(reading, "contains"), denied: denied(reading, "contains") };
      const few = only("array", { contains: [{ ...terms, least: 0, most: minContains - 1 }] });
      const many = only("array", { contains: [{ ...terms, least: maxContains + 1, most: Infinity }] });
      return [...(minContains > 0 ? [few] : []), ...(maxContains < Infinity ? [many] : [])];
    },
  },
  {
    names: ["uniqueItems"],
    holds: ({ schema }) => [facts({ isUnique: schema["uniqueItems"] === true })],
    fails: (reading) => (reading.schema["uniqueItems"] === true ? unsupported(reading, "uniqueItems") : []),
  },
];

/** Returns the paths of the leading items and of the rest. Older drafts use lists in `items`. */
function itemsOf({ schema }: Reading): { prefix: (readonly [string, number])[]; rest: string | undefined } {
  const first = Array.isArray(schema["items"]) ? "items" : "prefixItems";
  const rest = first === "items" ? "additionalItems" : "items";
  const prefix = ((schema[first] as unknown[] | undefined) ?? []).map((_, at) => [first, at] as const);
  return { prefix, rest: schema[rest] === undefined ? undefined : rest };
}

const objects: readonly Keyword[] = [
  {
    names: ["properties", "patternProperties", "additionalProperties"],
    holds(reading) {
      const properties = new Map(keysOf(reading, "properties").map((key) => [key, held(reading, "properties", key)]));
      const patterns = keysOf(reading, "patternProperties").map((source) => {
        const path = `${reading.path}.patternProperties.${source}`;
        return [atPath(path, () => readPattern(source, "part")), held(reading, "patternProperties", source)] as const;
      });
      const others = isMissing(reading, "additionalProperties") ? undefined : held(reading, "additionalProperties");
      return [facts({ objects: [{ properties, patterns, others }] })];
    },
    fails(reading) {
      for (const name of ["patternProperties", "additionalProperties"])
        if (!isTrivial(reading, name)) return unsupported(reading, name);
      return keysOf(reading, "properties").map((key) => {
        const properties = new Map([[key, denied(reading, "properties", key)]]);
        return only("object", {
          required: [key],
          objects: [{ properties, patterns: [], others: undefined, isDenied: true }],
        });
      });
    },
  },
  {
    names: ["required"],
    holds: ({ schema }) => [facts({ required: schema["required"] as string[] })],
    fails: (reading) => (reading.schema["required"] as string[]).map((name) => without(reading, name)),
  },
  {
    names: ["propertyNames"],
    holds: (reading) => [facts({ names: [held(reading, "propertyNames")] })],
    fails: (reading) => (isTrivial(reading, "propertyNames") ? [] : unsupported(reading, "propertyNames")),
  },
];

const isMissing = ({ schema }: Reading, name: string): boolean => schema[name] === undefined;

/** Matches objects without a property. */
function without({ terms, path }: Reading, name: string): Branch {
  const properties = new Map([[name, terms.of(false, path)]]);
  return only("object", { objects: [{ properties, patterns: [], others: undefined, isDenied: true }] });
}

/** Defines a keyword with conditions on objects that have a property. */
const dependent = (name: string): Keyword => {
  const entries = (reading: Reading) =>
    keysOf(reading, name).map((key) => [key, (reading.schema[name] as Schema)[key]] as const);
  const besides = (reading: Reading, key: string, value: unknown): Branch =>
    Array.isArray(value)
      ? only("object", { required: [key, ...(value as string[])] })
      : { ...only("object", { required: [key] }), terms: [held(reading, name, key)] };
  return {
    names: [name],
    holds: (reading) =>
      product(
        reading,
        entries(reading).map(([key, value]) => [...absent(reading, key), besides(reading, key, value)]),
      ),
    fails: (reading) =>
      entries(reading).flatMap(([key, value]) =>
        Array.isArray(value)
          ? (value as string[]).map((each) => merged([only("object", { required: [key] }), without(reading, each)]))
          : [{ ...only("object", { required: [key] }), terms: [denied(reading, name, key)] }],
      ),
  };
};

/** Matches non-objects, and objects without a property. */
const absent = (reading: Reading, key: string): Branches => [...others("object"), without(reading, key)];

/**
 * Returns all combinations of branches that have one from each list.
 *
 * @throws {ArgumentError} `invalidSchema` for too many
 */
function product({ path }: Reading, all: readonly Branches[]): Branches {
  let combined: Branches = [{}];
  for (const next of all) {
    combined = combined.flatMap((a) => next.map((b) => merged([a, b])));
    if (combined.length > MOST_SHAPES) throw tooManyShapes(path);
  }
  return combined;
}

export const tooManyShapes = (path: string): ArgumentError =>
  invalid(path, `expected at most ${MOST_SHAPES} combinations of alternatives`);

/** Merges branches that all hold. */
const merged = (branches: readonly Branch[]): Branch => ({
  facts: branches.reduce((shape, branch) => meet(shape, branch.facts ?? {}), anything),
  terms: branches.flatMap((branch) => branch.terms ?? []),
});

const every = (reading: Reading, name: string, isDenied = false): Term[] =>
  listIn(reading.schema[name]).map((_, at) => termOf(reading, name, at, isDenied));
const together = (terms: readonly Term[]): Branch => ({ terms });

const applicators: readonly Keyword[] = [
  {
    names: ["$ref", "$dynamicRef"],
    holds: ({ schema, terms }) => [together(terms.targets(schema).map(([target, path]) => terms.of(target, path)))],
    fails: ({ schema, terms }) =>
      terms.targets(schema).map(([target, path]) => together([terms.of(target, path, true)])),
  },
  {
    names: ["allOf"],
    holds: (reading) => [together(every(reading, "allOf"))],
    fails: (reading) => every(reading, "allOf", true).map((term) => together([term])),
  },
  {
    names: ["anyOf"],
    holds: (reading) => every(reading, "anyOf").map((term) => together([term])),
    fails: (reading) => [together(every(reading, "anyOf", true))],
  },
  {
    names: ["oneOf"],
    holds(reading) {
      const [terms, others] = [every(reading, "oneOf"), every(reading, "oneOf", true)];
      return terms.map((term, at) =>
        together([term, ...others.filter((_, other) => other !== at && !reading.areDisjoint(term, terms[other]))]),
      );
    },
    fails(reading) {
      const terms = every(reading, "oneOf");
      const pairs = terms.flatMap((a, at) => terms.slice(at + 1).map((b) => together([a, b])));
      return [together(every(reading, "oneOf", true)), ...pairs];
    },
  },
  {
    names: ["not"],
    holds: (reading) => [together([denied(reading, "not")])],
    fails: (reading) => [together([held(reading, "not")])],
  },
  {
    names: ["if"],
    holds: (reading) => conditional(reading, false),
    fails: (reading) => conditional(reading, true),
  },
  dependent("dependentRequired"),
  dependent("dependentSchemas"),
  dependent("dependencies"),
];

function conditional(reading: Reading, isDenied: boolean): Branches {
  const rest = (name: string) =>
    isMissing(reading, name) ? (isDenied ? undefined : []) : [termOf(reading, name, undefined, isDenied)];
  const [then, others] = [rest("then"), rest("else")];
  return [
    ...(then ? [together([held(reading, "if"), ...then])] : []),
    ...(others ? [together([denied(reading, "if"), ...others])] : []),
  ];
}

const keywords: readonly Keyword[] = [...values, ...numbers, ...counts, ...texts, ...lists, ...objects, ...applicators];

/** Returns the branches of all keywords of a schema. One branch of each keyword holds. */
export const heldBy = (reading: Reading): readonly Branches[] => spoken(reading).map(({ holds }) => holds(reading));

/** Returns the branches for values that fail a schema: one branch of one keyword holds. */
export function failing(reading: Reading): Branches {
  for (const name of UNEVALUATED) if (!isTrivial(reading, name)) return unsupported(reading, name);
  return spoken(reading).flatMap(({ fails }) => fails(reading));
}

function spoken(reading: Reading): readonly Keyword[] {
  return keywords.filter(({ names }) => names.some((name) => reading.schema[name] !== undefined));
}
