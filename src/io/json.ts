/** JSON values, with checks that `JSON.parse` does not do. */
import { messageOf } from "../core/causes.ts";

/** A value that JSON can represent. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export const isJsonObject = (value: Json | undefined): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A problem of a text: it is not JSON, an object has a key twice, or it is nested too deep. */
export type JsonProblem = "notJson" | "duplicateKey" | "tooDeep";

/** The depth of nesting that the reference implementation of safetensors accepts: the limit of Rust's serde. */
const MAX_DEPTH = 128;

/**
 * Parses the JSON of an untrusted file, in linear time. It rejects duplicate keys, which are ambiguous: `JSON.parse`
 * keeps the last value, other parsers the first. It rejects deep nesting, because walking the value would exhaust the
 * stack.
 *
 * @param fail creates the error of a problem, from a message such as `nested more than 128 deep`
 */
export function parseJson(
  text: string,
  fail: (problem: JsonProblem, message: string) => Error,
  maxDepth: number = MAX_DEPTH,
): Json {
  const duplicate = scan(text, maxDepth);
  if (duplicate === tooDeep) throw fail("tooDeep", `nested more than ${maxDepth} deep`);
  let json: Json;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw fail("notJson", messageOf(cause));
  }
  if (duplicate !== undefined)
    throw fail("duplicateKey", `the key ${shorten(JSON.stringify(duplicate))} more than once`);
  return json;
}

/** Returns a value for a message, shortened if it is long. */
export function brief(json: Json | undefined): string {
  if (json === undefined) return "nothing";
  return shorten(JSON.stringify(json, numberOrText));
}

/** Prints numbers that JSON can't represent, such as the infinity that `1e400` parses to, instead of null. */
const numberOrText = (_: string, value: unknown): unknown =>
  typeof value === "number" && !Number.isFinite(value) ? String(value) : value;

const shorten = (text: string): string => (text.length > 60 ? `${text.slice(0, 59)}…` : text);

const tooDeep = Symbol("too deep");

const codesOf = (characters: string) => new Set(Array.from(characters, (character) => character.charCodeAt(0)));
const [quote, backslash, colon] = Array.from('"\\:', (character) => character.charCodeAt(0));
const [opening, closing, spaces] = [codesOf("{["), codesOf("}]"), codesOf(" \t\n\r")];

/**
 * Finds the first duplicate key, or nesting that is too deep. For a text that is not JSON, it terminates, but the
 * result is meaningless.
 */
function scan(text: string, maxDepth: number): string | typeof tooDeep | undefined {
  const open: Set<string>[] = [];
  let duplicate: string | undefined;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (opening.has(code)) {
      if (open.push(new Set()) > maxDepth) return tooDeep;
    } else if (closing.has(code)) open.pop();
    else if (code === quote) {
      const end = endOfString(text, at);
      const key = isKey(text, end) ? unescaped(text.slice(at, end + 1)) : undefined;
      if (key !== undefined && !addTo(open.at(-1), key)) duplicate ??= key;
      at = end;
    }
  }
  return duplicate;
}

/** Adds a key; returns false if it exists already. */
function addTo(keys: Set<string> | undefined, key: string): boolean {
  if (keys?.has(key)) return false;
  keys?.add(key);
  return true;
}

/** The index of the quote that ends a string, or the length of the text. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (let code = text.charCodeAt(at); code !== quote && at < text.length; code = text.charCodeAt(at))
    at += code === backslash ? 2 : 1;
  return Math.min(at, text.length);
}

/** Whether a colon follows the string that ends there. */
function isKey(text: string, end: number): boolean {
  let at = end + 1;
  while (spaces.has(text.charCodeAt(at))) at++;
  return text.charCodeAt(at) === colon;
}

/** The name that a key in quotes means: `"\u0061"` is `a`. */
function unescaped(key: string): string {
  if (!key.includes("\\")) return key.slice(1, -1);
  try {
    return JSON.parse(key);
  } catch {
    return key; // not JSON, which the parser will report
  }
}
