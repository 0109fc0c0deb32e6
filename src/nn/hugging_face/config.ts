import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ArgumentError, FileFormatError } from "../../core/errors.ts";
import { withFileErrors } from "../../io/file_errors.ts";
import { isJsonObject, type Json } from "../../io/json.ts";

/** @internal What `config.json` in a folder says. @throws {FileError} {@link FileFormatError} */
export function readConfig(operation: string, folder: string): object {
  const path = join(folder, "config.json");
  const text = withFileErrors(operation, path, () => readFileSync(path, "utf8"));
  const fail = (message: string) => new FileFormatError(operation, "invalidConfig", path, message);
  let json: Json;
  try {
    json = JSON.parse(text) as Json;
  } catch (cause) {
    throw fail(`it is no JSON: ${(cause as Error).message}`);
  }
  if (isJsonObject(json)) return json;
  throw fail("it holds no object");
}

/**
 * @internal Checks what a `config.json` says before a model is made of it.
 *
 * @param needed names of whole numbers that it must have
 * @param only what is computed in one way here: names with the value that they must have, where they are there
 * @throws {ArgumentError}
 */
export function checkConfig(
  model: string,
  config: object,
  modelType: string,
  needed: readonly string[],
  only: Readonly<Record<string, unknown>>,
): void {
  const fields = new Map(Object.entries(config));
  const type = fields.get("model_type") ?? modelType;
  if (type !== modelType)
    throw new ArgumentError(model, "otherModel", `model_type "${modelType}" is wanted, "${String(type)}" came`);
  const lacking = needed.filter((name) => !Number.isSafeInteger(fields.get(name)));
  if (lacking.length > 0)
    throw new ArgumentError(
      model,
      "incompleteConfig",
      `the config lacks ${lacking.join(", ")}, or has no whole number there`,
    );
  for (const [name, value] of Object.entries(only))
    if (fields.has(name) && fields.get(name) !== value)
      throw new ArgumentError(
        model,
        "unsupportedConfig",
        `${name}: ${JSON.stringify(value)} is all that there is, ${JSON.stringify(fields.get(name))} came`,
      );
}
