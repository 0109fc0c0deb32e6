import type { Codepath } from "./codepaths.ts";

/**
 * A line for each way that operations took: the operation, the backend, how often, and why.
 *
 * @example
 * console.log(formatCodepaths(codepaths())); //   matmul  cpu             2  preferred
 */
export function formatCodepaths(paths: readonly Codepath[]): string {
  const widest = Math.max(0, ...paths.map(({ operation }) => operation.length));
  return paths
    .map(({ operation, backend, calls, reason }) =>
      `  ${operation.padEnd(widest)}  ${backend.padEnd(9)}  ${String(calls).padStart(6)}  ${reason}`.trimEnd(),
    )
    .join("\n");
}
