/** Serializes schemas for the process for constraints. */
import { ArgumentError } from "../../core/errors.ts";

export type Schema = Readonly<Record<string, unknown>>;

const MOST_CHARACTERS = 65_536;
export const MOST_DEPTH = 64;

/** Keywords for parts that no other keyword of a schema and its in-place subschemas evaluates. */
export const UNEVALUATED = ["unevaluatedProperties", "unevaluatedItems"] as const;

/** Returns the error for a problem at a path of a schema. */
export const invalidSchema = (path: string, message: string, options?: ErrorOptions): ArgumentError =>
  new ArgumentError("compileConstraint", "invalidSchema", `schema${path}: ${message}`, options);

/** Serializes a schema to JSON. @throws {ArgumentError} `invalidSchema` if it is too deep or too long. */
export function schemaText(schema: Schema): string {
  let text: string;
  try {
    text = JSON.stringify(schema) ?? "null";
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw invalidSchema("", `expected JSON with at most ${MOST_DEPTH} nested levels: ${String(cause)}`, { cause });
  }
  if (text.length > MOST_CHARACTERS)
    throw invalidSchema("", `expected at most ${MOST_CHARACTERS} characters of JSON, got ${text.length}`);
  return text;
}

/** Returns the error for unsupported features; {@link atPath} adds the path. */
export const unsupported = (message: string): ArgumentError =>
  new ArgumentError("compileConstraint", "unsupported", message);

/** Adds the schema's path to errors about expressions. Other errors already have a path. */
export function atPath<T>(path: string, body: () => T): T {
  try {
    return body();
  } catch (cause) {
    if (!(cause instanceof ArgumentError) || cause.code === "invalidSchema") throw cause;
    throw invalidSchema(path, cause.message.replace(/^\[[^\]]*\] /, ""), { cause });
  }
}
