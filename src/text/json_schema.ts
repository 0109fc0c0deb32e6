/** Which JSON schemas texts can be held to. */
import { ArgumentError } from "../core/errors.ts";

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

const MOST_CHARACTERS = 65_536;
const MOST_DEPTH = 64;

type Schema = Readonly<Record<string, unknown>>;

const invalid = (path: string, message: string): ArgumentError =>
  new ArgumentError("compileConstraint", "invalidSchema", `schema${path}: ${message}`);

const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The schema as JSON. @throws {ArgumentError} `invalidSchema`, with the path of what is wrong. */
export function checkSchema(schema: Schema): string {
  const text = JSON.stringify(schema) ?? "null";
  if (text.length > MOST_CHARACTERS) throw invalid("", `expected at most ${MOST_CHARACTERS} characters of JSON`);
  const written: unknown = JSON.parse(text); // what the automaton is made of: an object may write itself otherwise
  check(written, "", 0, written as Schema);
  return text;
}

function check(schema: unknown, path: string, depth: number, root: Schema): void {
  if (typeof schema === "boolean" && depth > 0) return;
  if (!isObject(schema)) throw invalid(path, "expected an object");
  if (depth > MOST_DEPTH) throw invalid(path, `expected at most ${MOST_DEPTH} levels`);
  const unknown = Object.keys(schema).find((name) => !HELD.has(name) && !SILENT.has(name));
  if (unknown !== undefined) throw invalid(path, `expected keywords of ${[...HELD].join(", ")}, got ${unknown}`);
  checkValues(schema, path, root);
  for (const name of BY_NAME)
    if (schema[name] !== undefined) {
      if (!isObject(schema[name])) throw invalid(`${path}.${name}`, "expected an object of schemas");
      for (const [key, own] of Object.entries(schema[name])) check(own, `${path}.${name}.${key}`, depth + 1, root);
    }
  for (const name of LISTS)
    if (schema[name] !== undefined) {
      const list = schema[name];
      if (!Array.isArray(list) || list.length === 0) throw invalid(`${path}.${name}`, "expected a list of schemas");
      for (const [at, own] of list.entries()) check(own, `${path}.${name}.${at}`, depth + 1, root);
    }
  for (const name of ONE) if (schema[name] !== undefined) check(schema[name], `${path}.${name}`, depth + 1, root);
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
  for (const name of ["minimum", "maximum"])
    if (schema[name] !== undefined && (!Number.isSafeInteger(schema[name]) || types.join() !== "integer"))
      throw invalid(`${path}.${name}`, "expected a whole number, beside the type integer alone");
  if (schema["enum"] !== undefined && !(Array.isArray(schema["enum"]) && schema["enum"].length > 0))
    throw invalid(`${path}.enum`, "expected a list of values");
  checkPattern(schema, path);
  const reference = schema["$ref"];
  if (reference !== undefined && !leads(reference, root))
    throw invalid(`${path}.$ref`, "expected a definition of this schema, such as #/$defs/name");
}

function checkPattern(schema: Schema, path: string): void {
  const { pattern } = schema;
  if (pattern === undefined) return;
  if (schema["minLength"] !== undefined || schema["maxLength"] !== undefined)
    throw invalid(`${path}.pattern`, "expected no minLength or maxLength beside it");
  const repeats = [...String(pattern).matchAll(/\d+/g)].map(Number);
  if (typeof pattern !== "string" || pattern.length > 1000 || repeats.some((count) => count > 1000))
    throw invalid(`${path}.pattern`, "expected a regular expression of at most 1000 characters and repeats");
  try {
    new RegExp(pattern, "u");
  } catch {
    throw invalid(`${path}.pattern`, "expected a regular expression");
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
