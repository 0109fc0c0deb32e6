import { FileFormatError } from "../core/errors.ts";
import { counted } from "../core/plural.ts";
import { nearestName } from "../core/suggestion.ts";

/** Returns the error for a name that a file does not have. */
export function missingTensor(
  operation: string,
  path: string,
  name: string,
  names: readonly string[],
): FileFormatError {
  const near = nearestName(name, names);
  const hint = near === undefined ? `it has ${counted(names.length, "other")}` : `did you mean "${near}"?`;
  return new FileFormatError(operation, "missingTensor", path, `the file has no such tensor; ${hint}`, name);
}
