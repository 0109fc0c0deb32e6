/** Schemas as they are sent to the process for forms. */
import { ArgumentError } from "../../core/errors.ts";

export type Schema = Readonly<Record<string, unknown>>;

const MOST_CHARACTERS = 65_536;
export const MOST_DEPTH = 64;

/** Keywords for what no other keyword of a schema, and of those that it applies in place, says something of. */
export const UNEVALUATED = ["unevaluatedProperties", "unevaluatedItems"] as const;

/** What is wrong with a schema, and where. */
export const invalidSchema = (path: string, message: string, options?: ErrorOptions): ArgumentError =>
  new ArgumentError("compileConstraint", "invalidSchema", `schema${path}: ${message}`, options);

/** A schema as JSON, as it is now. @throws {ArgumentError} `invalidSchema` if it is too deep or too long. */
export function schemaText(schema: Schema): string {
  let text: string;
  try {
    text = JSON.stringify(schema) ?? "null";
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw invalidSchema("", `expected JSON of at most ${MOST_DEPTH} levels: ${String(cause)}`, { cause });
  }
  if (text.length > MOST_CHARACTERS)
    throw invalidSchema("", `expected at most ${MOST_CHARACTERS} characters of JSON, got ${text.length}`);
  return text;
}

/** What texts can't be held to; {@link atPath} says where. */
export const unsupported = (message: string): ArgumentError =>
  new ArgumentError("compileConstraint", "unsupported", message);

/** What is wrong with an expression is said with its place. */
export function atPath<T>(path: string, body: () => T): T {
  try {
    return body();
  } catch (cause) {
    if (!(cause instanceof ArgumentError)) throw cause;
    throw invalidSchema(path, cause.message.replace(/^\[[^\]]*\] /, ""), { cause });
  }
}
