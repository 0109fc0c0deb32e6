import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FileFormatError } from "../../../core/errors.ts";
import { withFileErrors } from "../../../io/file_errors.ts";
import { isJsonObject, parseJson } from "../../../io/json.ts";

/** @internal Reads `config.json` in a folder. @throws {FileError} @throws {FileFormatError} */
export function readConfig(operation: string, folder: string, name = "config.json"): object {
  const path = join(folder, name);
  const text = withFileErrors(operation, path, () => readFileSync(path, "utf8"));
  const fail = (message: string) => new FileFormatError(operation, "invalidConfig", path, message);
  const json = parseJson(withNumbers(text), (_, message) => fail(`expected JSON: ${message}`));
  if (isJsonObject(json)) return json;
  throw fail("expected a JSON object");
}

/**
 * Replaces `Infinity`, which Python writes and JSON does not have, by a number that is too large for a double. Version
 * 5 of `transformers` writes {"__float__": "Infinity"}.
 */
const withNumbers = (text: string): string =>
  text.includes("Infinity")
    ? text
        .replace(/\{\s*"__float__"\s*:\s*"(-?Infinity)"\s*\}/g, "$1")
        .replace(/("(?:[^"\\]|\\.)*")|\bInfinity\b/g, (_, quoted?: string) => quoted ?? "1e999")
    : text;
