/** A record of which backend ran each operation, and why. */
import { getOrMake } from "../core/collections.ts";
import type { BackendName } from "./names.ts";

/** Calls of one operation that took the same codepath for the same reason. */
export interface Codepath {
  readonly operation: string;
  readonly backend: BackendName;
  /**
   * `"preferred"`, or why the backends before it did not run it; of attention as it was called, which path it took and
   * why.
   */
  readonly reason: string;
  readonly calls: number;
}

interface Count {
  readonly operation: string;
  readonly backend: BackendName;
  readonly reason: string;
  calls: number;
}

const counts = new Map<string, Map<string, Count>>();

/** @internal The counter of a codepath; frequent callers keep it. */
export function codepathCount(operation: string, backend: BackendName, reason: string): Count {
  const paths = getOrMake(counts, operation, () => new Map<string, Count>());
  return getOrMake(paths, `${backend} ${reason}`, () => ({ operation, backend, reason, calls: 0 }));
}

/**
 * Which backend ran each operation so far, how often, and why; the most frequent first.
 *
 * @example
 * codepaths()[0]; // { operation: "matmul", backend: "cpu", reason: "preferred", calls: 2 }
 */
export function codepaths(): Codepath[] {
  return [...counts.values()]
    .flatMap((paths) => [...paths.values()])
    .filter(({ calls }) => calls > 0)
    .map((count) => ({ ...count }))
    .sort((a, b) => b.calls - a.calls);
}

/** Starts the counts anew. */
export function resetCodepaths(): void {
  for (const paths of counts.values()) for (const count of paths.values()) count.calls = 0;
}
