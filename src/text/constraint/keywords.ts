/** The conditions of each JSON schema keyword for values that satisfy it, and for values that don't. */
import type { ArgumentError } from "../../core/errors.ts";
import { formatPattern, formats, subsetPattern } from "./formats.ts";
import { nextAfter } from "./number_pattern.ts";
import { anyText, not, type Pattern } from "./pattern.ts";
import { readPattern } from "./read_pattern.ts";
import type { SchemaTerms, Term } from "./schema_terms.ts";
import { atPath, invalidSchema as invalid, type Schema, UNEVALUATED } from "./schema_text.ts";
import { anything, type Facts, MOST_SHAPES, meet, TYPES, type Type, typeOf } from "./shape.ts";

/** Facts and terms that all hold. */
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
  readonly holds: (own: Reading) => Branches;
  readonly fails: (own: Reading) => Branches;
}

const facts = (own: Facts): Branch => ({ facts: own });
const only = (type: Type, own: Facts = {}): Branch => ({ facts: { types: [type], ...own } });

/** Returns the term of a schema in the value of a keyword. */
const termOf = ({ schema, path, terms }: Reading, name: string, key?: string | number, isDenied = false): Term => {
  const value = schema[name] as Schema;
  const own = (key === undefined ? value : value[key as string]) as Schema | boolean;
  return terms.of(own, `${path}.${name}${key === undefined ? "" : `.${key}`}`, isDenied);
};
const held = (own: Reading, name: string, key?: string | number): Term => termOf(own, name, key);
const denied = (own: Reading, name: string, key?: string | number): Term => termOf(own, name, key, true);
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
    (own) => ({ most: before(own) }),
  ),
  simple<number>(
    "maximum",
    "number",
    (most) => ({ most }),
    (own) => ({ least: nextAfter(own) }),
  ),
  simple<number>(
    "exclusiveMinimum",
    "number",
    (own) => ({ least: nextAfter(own) }),
    (most) => ({ most }),
  ),
  simple<number>(
    "exclusiveMaximum",
    "number",
    (own) => ({ most: before(own) }),
    (least) => ({ least }),
  ),
  simple<number>(
    "multipleOf",
    "number",
    (own) => ({ multiples: [own] }),
    (own) => ({ nonMultiples: [own] }),
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
    (own) => ({ [low]: own }),
    (own) => ({ [high]: own - 1 }),
  ),
  simple<number>(
    least.replace("min", "max"),
    type,
    (own) => ({ [high]: own }),
    (own) => ({ [low]: own + 1 }),
  ),
]);

const patternOf = ({ schema, path }: Reading): Pattern =>
  atPath(`${path}.pattern`, () => readPattern(schema["pattern"] as string, "part"));
const formatOf = ({ schema, path }: Reading): Pattern =>
  formats.has(schema["format"] as string)
    ? atPath(`${path}.format`, () => formatPattern(schema["format"] as string))
    : anyText;

const texts: readonly Keyword[] = [
  {
    names: ["pattern"],
    holds: (own) => [facts({ patterns: [subsetPattern(own.schema["pattern"] as string) ?? patternOf(own)] })],
    fails: (own) => [only("string", { patterns: [not(patternOf(own))] })],
  },
  {
    names: ["format"],
    holds: (own) => [facts({ patterns: [formatOf(own)] })],
    fails: (own) => [only("string", { patterns: [not(formatOf(own))] })],
  },
];

const namesOf = (value: unknown): string[] => [value].flat() as string[];

const values: readonly Keyword[] = [
  {
    names: ["type"],
    holds({ schema }) {
      const names = namesOf(schema["type"]);
      const types = TYPES.filter((own) => names.includes(own) || (own === "number" && names.includes("integer")));
      const isWhole = names.includes("integer") && !names.includes("number");
      return [facts({ types, ...(isWhole && { multiples: [1] }) })];
    },
    fails({ schema }) {
      const names = namesOf(schema["type"]);
      const types = TYPES.filter((own) => !names.includes(own) && !(own === "number" && names.includes("integer")));
      const isWhole = names.includes("integer") && !names.includes("number");
      return [facts({ types }), ...(isWhole ? [only("number", { nonMultiples: [1] })] : [])];
    },
  },
  {
    names: ["enum"],
    holds: ({ schema }) => [facts({ values: schema["enum"] as unknown[] })],
    fails: (own) => differing(own, own.schema["enum"] as unknown[]),
  },
  {
    names: ["const"],
    holds: ({ schema }) => [facts({ values: [schema["const"]] })],
    fails: (own) => differing(own, [own.schema["const"]]),
  },
];

/** Matches values that equal none of the listed ones. */
function differing(own: Reading, listed: readonly unknown[]): Branches {
  const isList = (value: unknown): value is unknown[] => typeOf(value) === "array";
  const isObject = (value: unknown): value is Record<string, unknown> => typeOf(value) === "object";
  return product(own, [
    [facts({ excluded: listed.filter((value) => !isList(value) && !isObject(value)) })],
    ...listed.filter(isList).map((value) => otherLists(own, value)),
    ...listed.filter(isObject).map((value) => otherObjects(own, value)),
  ]);
}

/** Matches what differs from a list: it is no list, is shorter or longer, or has a different item. */
function otherLists(own: Reading, list: readonly unknown[]): Branches {
  const anyItem = own.terms.of(true, own.path);
  return [
    ...others("array"),
    ...(list.length > 0 ? [only("array", { mostItems: list.length - 1 })] : []),
    only("array", { leastItems: list.length + 1 }),
    ...list.map((item, at) => {
      const prefix = [...list.slice(0, at).map(() => anyItem), own.terms.unequal(item, own.path)];
      return only("array", { leastItems: at + 1, lists: [{ prefix, rest: anyItem, isDenied: true }] });
    }),
  ];
}

/** Matches what differs from an object: it is no object, lacks a property, has a further or a different one. */
function otherObjects(own: Reading, object: Readonly<Record<string, unknown>>): Branches {
  const keys = Object.keys(object);
  const having = (properties: ReadonlyMap<string, Term>): Facts => ({
    objects: [{ properties, patterns: [], others: undefined, isDenied: true }],
  });
  const anyValue = own.terms.of(true, own.path);
  const present = new Map(keys.map((key) => [key, anyValue]));
  return [
    ...others("object"),
    ...keys.map((key) => without(own, key)),
    only("object", { leastProperties: keys.length + 1, ...having(present) }),
    ...keys.map((key) =>
      only("object", { required: [key], ...having(new Map([[key, own.terms.unequal(object[key], own.path)]])) }),
    ),
  ];
}

const others = (type: Type): Branches => [facts({ types: TYPES.filter((own) => own !== type) })];

const unsupported = ({ path }: Reading, name: string): never => {
  throw invalid(`${path}.${name}`, "not supported within not or oneOf: its negation can't be enforced");
};

/** Whether a keyword has no effect, because it is true or absent. */
const isTrivial = ({ schema }: Reading, name: string): boolean => schema[name] === undefined || schema[name] === true;

const lists: readonly Keyword[] = [
  {
    names: ["prefixItems", "items", "additionalItems"],
    holds(own) {
      const { prefix, rest } = itemsOf(own);
      const items = prefix.map(([name, at]) => held(own, name, at));
      return [facts({ lists: [{ prefix: items, rest: rest === undefined ? undefined : held(own, rest) }] })];
    },
    fails(own) {
      const { prefix, rest } = itemsOf(own);
      const branches = prefix.map(([name, at], length) => {
        const before = Array.from({ length }, () => own.terms.of(true, own.path));
        const items = [...before, denied(own, name, at)];
        const others = own.terms.of(true, own.path);
        return only("array", { leastItems: length + 1, lists: [{ prefix: items, rest: others, isDenied: true }] });
      });
      if (rest === undefined || isTrivial(own, rest)) return branches;
      if (own.schema[rest] === false) return [...branches, only("array", { leastItems: prefix.length + 1 })];
      if (prefix.length > 0) return unsupported(own, rest);
      return [
        only("array", { contains: [{ term: denied(own, rest), denied: held(own, rest), least: 1, most: Infinity }] }),
      ];
    },
  },
  {
    names: ["contains"],
    holds(own) {
      const { minContains = 1, maxContains = Infinity } = own.schema as { minContains?: number; maxContains?: number };
      const terms = { term: held(own, "contains"), denied: denied(own, "contains") };
      return [facts({ contains: [{ ...terms, least: minContains, most: maxContains }] })];
    },
    fails(own) {
      const { minContains = 1, maxContains = Infinity } = own.schema as { minContains?: number; maxContains?: number };
      const terms = { term: held(own, "contains"), denied: denied(own, "contains") };
      const few = only("array", { contains: [{ ...terms, least: 0, most: minContains - 1 }] });
      const many = only("array", { contains: [{ ...terms, least: maxContains + 1, most: Infinity }] });
      return [...(minContains > 0 ? [few] : []), ...(maxContains < Infinity ? [many] : [])];
    },
  },
  {
    names: ["uniqueItems"],
    holds: ({ schema }) => [facts({ isUnique: schema["uniqueItems"] === true })],
    fails: (own) => (own.schema["uniqueItems"] === true ? unsupported(own, "uniqueItems") : []),
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
    holds(own) {
      const properties = new Map(keysOf(own, "properties").map((key) => [key, held(own, "properties", key)]));
      const patterns = keysOf(own, "patternProperties").map((source) => {
        const path = `${own.path}.patternProperties.${source}`;
        return [atPath(path, () => readPattern(source, "part")), held(own, "patternProperties", source)] as const;
      });
      const others = isMissing(own, "additionalProperties") ? undefined : held(own, "additionalProperties");
      return [facts({ objects: [{ properties, patterns, others }] })];
    },
    fails(own) {
      for (const name of ["patternProperties", "additionalProperties"])
        if (!isTrivial(own, name)) return unsupported(own, name);
      return keysOf(own, "properties").map((key) => {
        const properties = new Map([[key, denied(own, "properties", key)]]);
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
    fails: (own) => (own.schema["required"] as string[]).map((name) => without(own, name)),
  },
  {
    names: ["propertyNames"],
    holds: (own) => [facts({ names: [held(own, "propertyNames")] })],
    fails: (own) => (isTrivial(own, "propertyNames") ? [] : unsupported(own, "propertyNames")),
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
  const entries = (own: Reading) => keysOf(own, name).map((key) => [key, (own.schema[name] as Schema)[key]] as const);
  const besides = (own: Reading, key: string, value: unknown): Branch =>
    Array.isArray(value)
      ? only("object", { required: [key, ...(value as string[])] })
      : { ...only("object", { required: [key] }), terms: [held(own, name, key)] };
  return {
    names: [name],
    holds: (own) =>
      product(
        own,
        entries(own).map(([key, value]) => [...absent(own, key), besides(own, key, value)]),
      ),
    fails: (own) =>
      entries(own).flatMap(([key, value]) =>
        Array.isArray(value)
          ? (value as string[]).map((each) => merged([only("object", { required: [key] }), without(own, each)]))
          : [{ ...only("object", { required: [key] }), terms: [denied(own, name, key)] }],
      ),
  };
};

/** Matches non-objects, and objects without a property. */
const absent = (own: Reading, key: string): Branches => [...others("object"), without(own, key)];

/** Returns all combinations of one branch from each. @throws {ArgumentError} `invalidSchema` for too many */
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
  facts: branches.reduce((shape, own) => meet(shape, own.facts ?? {}), anything),
  terms: branches.flatMap((own) => own.terms ?? []),
});

const every = (own: Reading, name: string, isDenied = false): Term[] =>
  (own.schema[name] as unknown[]).map((_, at) => termOf(own, name, at, isDenied));
const together = (terms: readonly Term[]): Branch => ({ terms });

const applicators: readonly Keyword[] = [
  {
    names: ["$ref", "$dynamicRef"],
    holds: ({ schema, terms }) => [together(terms.targets(schema).map(([own, path]) => terms.of(own, path)))],
    fails: ({ schema, terms }) => terms.targets(schema).map(([own, path]) => together([terms.of(own, path, true)])),
  },
  {
    names: ["allOf"],
    holds: (own) => [together(every(own, "allOf"))],
    fails: (own) => every(own, "allOf", true).map((term) => together([term])),
  },
  {
    names: ["anyOf"],
    holds: (own) => every(own, "anyOf").map((term) => together([term])),
    fails: (own) => [together(every(own, "anyOf", true))],
  },
  {
    names: ["oneOf"],
    holds(own) {
      const [terms, others] = [every(own, "oneOf"), every(own, "oneOf", true)];
      return terms.map((term, at) =>
        together([term, ...others.filter((_, other) => other !== at && !own.areDisjoint(term, terms[other]!))]),
      );
    },
    fails(own) {
      const terms = every(own, "oneOf");
      const pairs = terms.flatMap((a, at) => terms.slice(at + 1).map((b) => together([a, b])));
      return [together(every(own, "oneOf", true)), ...pairs];
    },
  },
  {
    names: ["not"],
    holds: (own) => [together([denied(own, "not")])],
    fails: (own) => [together([held(own, "not")])],
  },
  {
    names: ["if"],
    holds: (own) => conditional(own, false),
    fails: (own) => conditional(own, true),
  },
  dependent("dependentRequired"),
  dependent("dependentSchemas"),
  dependent("dependencies"),
];

function conditional(own: Reading, isDenied: boolean): Branches {
  const rest = (name: string) =>
    isMissing(own, name) ? (isDenied ? undefined : []) : [termOf(own, name, undefined, isDenied)];
  const [then, others] = [rest("then"), rest("else")];
  return [
    ...(then ? [together([held(own, "if"), ...then])] : []),
    ...(others ? [together([denied(own, "if"), ...others])] : []),
  ];
}

const keywords: readonly Keyword[] = [
  ...[...values, ...numbers, ...counts, ...texts, ...lists, ...objects],
  ...applicators,
];

/** Returns the branches of all keywords of a schema. One branch of each keyword holds. */
export const heldBy = (own: Reading): readonly Branches[] => spoken(own).map(({ holds }) => holds(own));

/** Returns the branches for values that fail a schema: one branch of one keyword holds. */
export function failing(own: Reading): Branches {
  for (const name of UNEVALUATED) if (!isTrivial(own, name)) return unsupported(own, name);
  return spoken(own).flatMap(({ fails }) => fails(own));
}

function spoken(own: Reading): readonly Keyword[] {
  return keywords.filter(({ names }) => names.some((name) => own.schema[name] !== undefined));
}
