import { listOf, someNumber, text } from "../core/kinds.ts";
import { operand, parameters, required, structure } from "../core/parameters.ts";
import type { Codepath } from "./codepaths.ts";

const aCodepath = structure({
  operation: required(text),
  backend: required(text),
  reason: required(text),
  calls: required(someNumber),
});
const formatParameters = parameters("formatCodepaths", {
  paths: operand(listOf(aCodepath, "a list of codepaths() results")),
});

/**
 * Formats codepaths, one line each: operation, backend, number of calls and reason.
 *
 * @example
 * console.log(formatCodepaths(codepaths())); //   matmul  cpu             2  preferred
 */
export function formatCodepaths(paths: readonly Codepath[]): string;
export function formatCodepaths(...values: unknown[]): string {
  const { paths } = formatParameters(values);
  const widest = Math.max(0, ...paths.map(({ operation }) => operation.length));
  return paths
    .map(({ operation, backend, calls, reason }) =>
      `  ${operation.padEnd(widest)}  ${backend.padEnd(9)}  ${String(calls).padStart(6)}  ${reason}`.trimEnd(),
    )
    .join("\n");
}
