/** Which JSON schemas texts can be held to, and how XGrammar reads what they say of texts. */
import { ArgumentError } from "../../core/errors.ts";
import { everything } from "./code_points.ts";
import { type Pattern, repeat, setOf } from "./pattern.ts";
import { readPattern } from "./read_pattern.ts";
import { invalidSchema as invalid, MOST_DEPTH, type Schema } from "./schema_text.ts";

/** Keywords that say something of values. What XGrammar would read over is not among them. */
const HELD = new Set([
  ...["type", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems"],
  ...["minItems", "maxItems", "minLength", "maxLength", "pattern", "minimum", "maximum", "anyOf", "$ref"],
]);
/** Keywords for people, and places of definitions. */
const SILENT = new Set([
  ...["$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples"],
]);
const TYPES = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);
/** Schemas by name. */
const BY_NAME = ["properties", "$defs", "definitions"] as const;
const LISTS = ["prefixItems", "anyOf"] as const;
const ONE = ["items", "additionalProperties"] as const;

/** Any of them may come next: XGrammar's automaton grows by their square. */
const MOST_OPTIONAL = 256;
const MOST_PROPERTIES = 1024;

const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A schema as XGrammar reads it, in which what it is not asked for are texts of the form `@1@`. */
export interface HeldSchema {
  readonly text: string;
  /** What stands in the place of each such text. */
  readonly places: readonly Placed[];
}

/** As JSON: a text by its pattern, or one of some values; and where the schema says so. */
export type Placed = { readonly path: string } & (
  | { readonly pattern: Pattern }
  | { readonly values: readonly unknown[] }
);

/**
 * Checks a schema, and takes out of it what is said of texts and of values one by one.
 *
 * @param text of {@link schemaText}
 * @throws {ArgumentError} `invalidSchema`, with the path of what is wrong or too large.
 */
export function readSchema(text: string): HeldSchema {
  const schema: unknown = JSON.parse(text);
  const seen: Seen = { properties: 0, places: [] };
  const own = read(schema, "", { root: schema as Schema, depth: 0, seen });
  return { text: JSON.stringify(own), places: seen.places };
}

/** What was read so far. */
interface Seen {
  properties: number;
  readonly places: Placed[];
}

/** Where a schema stands. */
interface Place {
  readonly root: Schema;
  readonly depth: number;
  readonly seen: Seen;
}

function read(schema: unknown, path: string, place: Place): unknown {
  const { root, depth, seen } = place;
  if (typeof schema === "boolean" && depth > 0) return schema;
  if (!isObject(schema)) throw invalid(path, "expected an object");
  if (depth > MOST_DEPTH) throw invalid(path, `expected at most ${MOST_DEPTH} levels`);
  const unknown = Object.keys(schema).find((name) => !HELD.has(name) && !SILENT.has(name));
  if (unknown !== undefined) throw invalid(path, `expected keywords of ${[...HELD].join(", ")}, got ${unknown}`);
  checkValues(schema, path, root);
  const own: Record<string, unknown> = Object.fromEntries(Object.entries(schema).filter(([name]) => HELD.has(name)));
  const inner = (name: string, key: string | number | undefined, value: unknown) =>
    read(value, `${path}.${name}${key === undefined ? "" : `.${key}`}`, { root, depth: depth + 1, seen });
  for (const name of BY_NAME)
    if (schema[name] !== undefined) {
      if (!isObject(schema[name])) throw invalid(`${path}.${name}`, "expected an object of schemas");
      const entries = Object.entries(schema[name]);
      own[name] = Object.fromEntries(entries.map(([key, value]) => [key, inner(name, key, value)]));
    }
  for (const name of LISTS)
    if (schema[name] !== undefined) {
      const list = schema[name];
      if (!Array.isArray(list) || list.length === 0) throw invalid(`${path}.${name}`, "expected a list of schemas");
      own[name] = list.map((value, at) => inner(name, at, value));
    }
  for (const name of ONE) if (schema[name] !== undefined) own[name] = inner(name, undefined, schema[name]);
  checkProperties(schema, path, seen);
  return readValues(own, path, seen) ?? readText(own, path, seen);
}

function checkProperties({ properties, required }: Schema, path: string, seen: Seen): void {
  const names = Object.keys((properties as Schema | undefined) ?? {});
  const needed = new Set(Array.isArray(required) ? required : []);
  const optional = names.filter((name) => !needed.has(name)).length;
  if (optional > MOST_OPTIONAL)
    throw invalid(`${path}.properties`, `expected at most ${MOST_OPTIONAL} that are not required, got ${optional}`);
  seen.properties += names.length;
  if (seen.properties > MOST_PROPERTIES)
    throw invalid(`${path}.properties`, `expected at most ${MOST_PROPERTIES} in the whole schema`);
}

function checkValues(schema: Schema, path: string, root: Schema): void {
  const types = [schema["type"] ?? []].flat();
  if (!types.every((own) => TYPES.has(own as string)))
    throw invalid(`${path}.type`, `expected ${[...TYPES].join(", ")}`);
  for (const name of ["minItems", "maxItems", "minLength", "maxLength"]) {
    const value = schema[name];
    if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= 10_000))
      throw invalid(`${path}.${name}`, "expected a whole number from 0 to 10000");
  }
  for (const [least, most] of [["minItems", "maxItems"], LENGTHS] as const)
    if (((schema[least] as number | undefined) ?? 0) > ((schema[most] as number | undefined) ?? Infinity))
      throw invalid(`${path}.${least}`, `expected at most ${most}`);
  for (const name of ["minimum", "maximum"])
    if (schema[name] !== undefined && (!Number.isSafeInteger(schema[name]) || types.join() !== "integer"))
      throw invalid(`${path}.${name}`, "expected a whole number, beside the type integer alone");
  if (schema["enum"] !== undefined && !(Array.isArray(schema["enum"]) && schema["enum"].length > 0))
    throw invalid(`${path}.enum`, "expected a list of values");
  const reference = schema["$ref"];
  if (reference !== undefined && !leads(reference, root))
    throw invalid(`${path}.$ref`, "expected a definition of this schema, such as #/$defs/name");
}

const LENGTHS = ["minLength", "maxLength"] as const;
const MOST_PATTERN = 1000;
/** Beside these XGrammar reads over what is said of texts. */
const INSTEAD = ["anyOf", "$ref"] as const;
const TEXTUAL = ["pattern", ...LENGTHS] as const;

/** What stands in the place of a text. */
function placed(own: Placed, { places }: Seen): Schema {
  return { type: "string", pattern: `(@${places.push(own) - 1}@)` };
}

function readValues(schema: Schema, path: string, seen: Seen): Schema | undefined {
  const values = schema["const"] !== undefined ? [schema["const"]] : (schema["enum"] as unknown[] | undefined);
  if (values === undefined) return undefined;
  const said = TEXTUAL.find((name) => schema[name] !== undefined);
  if (said !== undefined) throw invalid(`${path}.${said}`, "expected no enum or const beside it");
  const { $defs, definitions } = schema;
  return {
    ...($defs !== undefined && { $defs }),
    ...(definitions !== undefined && { definitions }),
    ...placed({ path, values }, seen),
  };
}

/** A schema whose pattern or lengths of texts stand elsewhere. */
function readText(schema: Schema, path: string, seen: Seen): Schema {
  const said = TEXTUAL.find((name) => schema[name] !== undefined);
  if (said === undefined) return schema;
  const { pattern, minLength, maxLength, ...others } = schema;
  if (pattern !== undefined && (minLength ?? maxLength) !== undefined)
    throw invalid(`${path}.pattern`, "expected no minLength or maxLength beside it");
  if (![schema["type"]].flat().includes("string"))
    throw invalid(`${path}.${said}`, "expected the type string beside it");
  const other = INSTEAD.find((name) => schema[name] !== undefined);
  if (other !== undefined) throw invalid(`${path}.${said}`, `expected no ${other} beside it`);
  const place = `${path}.${said}`;
  const own = atPath(place, () => patternOf(schema));
  return { ...others, pattern: placed({ path: place, pattern: own }, seen)["pattern"] };
}

function patternOf({ pattern, minLength = 0, maxLength = Infinity }: Schema): Pattern {
  if (pattern === undefined) return repeat(setOf(everything), minLength as number, maxLength as number);
  if (typeof pattern === "string" && pattern.length <= MOST_PATTERN) return readPattern(pattern);
  throw new ArgumentError(
    "compileConstraint",
    "tooLarge",
    `expected a regular expression of at most ${MOST_PATTERN} characters`,
  );
}

/** What is wrong with an expression is said with its place. */
export function atPath<T>(path: string, body: () => T): T {
  try {
    return body();
  } catch (cause) {
    if (!(cause instanceof ArgumentError)) throw cause;
    throw invalid(path, cause.message.replace(/^\[[^\]]*\] /, ""), { cause });
  }
}

function leads(reference: unknown, root: Schema): boolean {
  if (typeof reference !== "string" || !reference.startsWith("#")) return false;
  let at: unknown = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    if (!isObject(at) || !Object.hasOwn(at, part)) return false;
    at = at[part];
  }
  return true;
}
