import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ArgumentError, FileFormatError } from "../../core/errors.ts";
import { withFileErrors } from "../../io/file_errors.ts";
import { isJsonObject, parseJson } from "../../io/json.ts";

/** @internal Reads `config.json` in a folder. @throws {FileError} @throws {FileFormatError} */
export function readConfig(operation: string, folder: string): object {
  const path = join(folder, "config.json");
  const text = withFileErrors(operation, path, () => readFileSync(path, "utf8"));
  const fail = (message: string) => new FileFormatError(operation, "invalidConfig", path, message);
  const json = parseJson(text, (_, message) => fail(`expected JSON: ${message}`));
  if (isJsonObject(json)) return json;
  throw fail("expected a JSON object");
}

/**
 * @internal Checks a `config.json` before a model is made of it.
 *
 * @param required names of whole numbers that it must have
 * @param supported fields of which one value is supported: if they are present, they must have it
 * @throws {ArgumentError}
 */
export function checkConfig(
  model: string,
  config: object,
  modelType: string,
  required: readonly string[],
  supported: Readonly<Record<string, unknown>>,
): void {
  const fields = new Map(Object.entries(config));
  const type = fields.get("model_type") ?? modelType;
  if (type !== modelType)
    throw new ArgumentError(model, "otherModel", `expected model_type "${modelType}", got "${String(type)}"`);
  const missing = required.filter((name) => !Number.isSafeInteger(fields.get(name)));
  if (missing.length > 0)
    throw new ArgumentError(
      model,
      "incompleteConfig",
      `expected whole numbers in the config for ${missing.join(", ")}`,
    );
  for (const [name, value] of Object.entries(supported)) {
    const got = fields.get(name);
    if (fields.has(name) && got !== value)
      throw new ArgumentError(
        model,
        "unsupportedConfig",
        `expected ${name} to be ${JSON.stringify(value)}, the only supported value, got ${JSON.stringify(got)}`,
      );
  }
}
