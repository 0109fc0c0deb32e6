/** Checks JSON schemas: drafts 6 to 2020-12, except keywords that can't be enforced while a text is incomplete. */
import { isSafeInteger, numberIn } from "../../core/values.ts";
import { checked, formats } from "./formats.ts";
import { placesOf } from "./number_pattern.ts";
import { invalidSchema as invalid, MOST_DEPTH, type Schema } from "./schema_text.ts";

/** The expected kind of a keyword's value. */
type Kind =
  | "silent"
  | "schema"
  | "schemas"
  | "named"
  | "items"
  | "dependencies"
  | "lists"
  | "types"
  | "values"
  | "value"
  | "number"
  | "positive"
  | "count"
  | "text"
  | "names"
  | "flag";

const kinds: Readonly<Record<Kind, readonly string[]>> = {
  /** Annotations and identifiers of schemas. */
  silent: [
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$comment",
    "$vocabulary",
    "title",
    "description",
    "default",
    "examples",
    "readOnly",
    "writeOnly",
    "deprecated",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
  ],
  schema: [
    "additionalProperties",
    "additionalItems",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
  ],
  schemas: ["allOf", "anyOf", "oneOf", "prefixItems"],
  named: ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"],
  items: ["items"],
  dependencies: ["dependencies"],
  lists: ["dependentRequired"],
  types: ["type"],
  values: ["enum"],
  value: ["const"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  positive: ["multipleOf"],
  count: [
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
  ],
  text: ["pattern", "format", "$ref", "$dynamicRef"],
  names: ["required"],
  flag: ["uniqueItems"],
};
const kindOf = new Map(Object.entries(kinds).flatMap(([kind, names]) => names.map((name) => [name, kind as Kind])));
const TYPES = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);
const said = [...kindOf.keys()].filter((name) => kindOf.get(name) !== "silent");

/**
 * Maximum number of properties. Any of them may come next, so XGrammar's automaton grows with the square of their
 * number.
 */
const MOST_OPTIONAL = 256;
const MOST_PROPERTIES = 1024;
const MOST_COUNT = 10_000;
const MOST_PATTERN = 1000;

export const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A subschema. */
export interface Placed {
  readonly schema: Schema;
  readonly path: string;
  /** The enclosing schema; undefined for the whole. */
  readonly parent: Placed | undefined;
}

/**
 * Checks a schema.
 *
 * @returns the schema and all its subschemas, the whole first
 * @throws {ArgumentError} `invalidSchema`, with the path of the problem.
 */
export function checkSchema(whole: unknown): Placed[] {
  const found: Placed[] = [];
  check(whole, "", { depth: 0, parent: undefined, found });
  const properties = found.reduce((sum, { schema }) => sum + Object.keys(schema["properties"] ?? {}).length, 0);
  if (properties > MOST_PROPERTIES)
    throw invalid(".properties", `expected at most ${MOST_PROPERTIES} in the whole schema, got ${properties}`);
  return found;
}

interface Place {
  readonly depth: number;
  readonly parent: Placed | undefined;
  readonly found: Placed[];
}

function check(schema: unknown, path: string, { depth, parent, found }: Place): void {
  if (typeof schema === "boolean" && depth > 0) return;
  if (!isObject(schema)) throw invalid(path, "expected an object");
  if (depth > MOST_DEPTH) throw invalid(path, `expected at most ${MOST_DEPTH} nested levels`);
  const placed: Placed = { schema, path, parent };
  found.push(placed);
  const inner = (value: unknown, key: string) =>
    check(value, `${path}.${key}`, { depth: depth + 1, parent: placed, found });
  for (const [name, value] of Object.entries(schema)) {
    const kind = kindOf.get(name);
    if (kind === undefined) throw invalid(path, `expected only the keywords ${said.join(", ")}, got ${name}`);
    for (const [key, each] of innerOf(kind, name, value, path)) inner(each, key);
    const expected = expectedOf(kind, value);
    if (expected !== undefined) throw invalid(`${path}.${name}`, `expected ${expected}`);
  }
  checkTogether(schema, path);
}

type Inner = readonly (readonly [key: string, schema: unknown])[];

/** Returns the schemas in the value of a keyword. */
function innerOf(kind: Kind, name: string, value: unknown, path: string): Inner {
  const listed = () => {
    if (!Array.isArray(value) || value.length === 0) throw invalid(`${path}.${name}`, "expected a list of schemas");
    return value.map((each, at) => [`${name}.${at}`, each] as const);
  };
  const named = () => {
    if (!isObject(value)) throw invalid(`${path}.${name}`, "expected an object of schemas");
    return Object.entries(value).map(([key, each]) => [`${name}.${key}`, each] as const);
  };
  switch (kind) {
    case "schema":
      return [[name, value]];
    case "schemas":
      return listed();
    case "items":
      return Array.isArray(value) ? listed() : [[name, value]];
    case "named":
      return named();
    case "dependencies":
      return named().filter(([, each]) => !isNames(each));
    default:
      return [];
  }
}

const isNames = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string");

/** Returns the expected kind if a value does not match it. */
function expectedOf(kind: Kind, value: unknown): string | undefined {
  const unless = (isRight: boolean, expected: string) => (isRight ? undefined : expected);
  switch (kind) {
    case "types": {
      const types = [value].flat();
      return unless(
        types.length > 0 && types.every((type) => typeof type === "string" && TYPES.has(type)),
        [...TYPES].join(", "),
      );
    }
    case "values":
      return unless(Array.isArray(value) && value.length > 0, "a list of values");
    case "number":
      return unless(Number.isFinite(value), "a number");
    case "positive":
      return unless(Number.isFinite(value) && numberIn(value) > 0, "a number above 0");
    case "count":
      return unless(
        isSafeInteger(value) && value >= 0 && value <= MOST_COUNT,
        `a whole number from 0 to ${MOST_COUNT}`,
      );
    case "text":
      return unless(typeof value === "string", "a text");
    case "names":
      return unless(isNames(value), "a list of names");
    case "flag":
      return unless(typeof value === "boolean", "true or false");
    case "lists":
      return unless(isObject(value) && Object.values(value).every(isNames), "an object of lists of names");
    default:
      return undefined;
  }
}

/** With this limit, a multiple with all its decimals is exact in float64. */
const MOST_MULTIPLE = 10_000;

function checkTogether(schema: Schema, path: string): void {
  const { properties, required, format, pattern, multipleOf } = schema;
  const needed = new Set((required as readonly string[] | undefined) ?? []);
  const optional = Object.keys((properties as Schema | undefined) ?? {}).filter((name) => !needed.has(name)).length;
  if (optional > MOST_OPTIONAL)
    throw invalid(`${path}.properties`, `expected at most ${MOST_OPTIONAL} optional properties, got ${optional}`);
  if (typeof format === "string" && checked.has(format))
    throw invalid(
      `${path}.format`,
      `${format} is not supported, since it has a checksum; remove it to keep the pattern`,
    );
  // An unknown format requires a pattern, which expresses it.
  if (format !== undefined && !(typeof format === "string" && formats.has(format)) && !hasPattern(schema))
    throw invalid(
      `${path}.format`,
      `expected one of ${[...formats].join(", ")}, got ${format}; other formats require a pattern`,
    );
  if (typeof pattern === "string" && pattern.length > MOST_PATTERN)
    throw invalid(`${path}.pattern`, `expected a regular expression of at most ${MOST_PATTERN} characters`);
  if (typeof multipleOf === "number") {
    const places = placesOf(multipleOf);
    if (places > 9 || multipleOf * 10 ** places > MOST_MULTIPLE)
      throw invalid(
        `${path}.multipleOf`,
        `expected at most ${MOST_MULTIPLE} after removing the decimal point, and at most 9 decimals`,
      );
  }
}

const hasPattern = ({ pattern, allOf }: Schema): boolean =>
  pattern !== undefined || ((allOf as readonly Schema[] | undefined)?.some(hasPattern) ?? false);
