/** Records which backend ran each operation, and why. */

import { getOrMake } from "../core/collections.ts";
import { expectNothing } from "../core/parameters.ts";
import type { BackendName } from "./names.ts";

/** Calls of one operation with the same backend and reason. */
export interface Codepath {
  readonly operation: string;
  readonly backend: BackendName;
  /** `"preferred"`, or why earlier backends did not run it; for attention, the path it took and why. */
  readonly reason: string;
  readonly calls: number;
}

interface Count {
  readonly operation: string;
  readonly backend: BackendName;
  readonly reason: string;
  calls: number;
}

/** The codepaths of one operation. */
interface Paths {
  /** Codepaths by backend and reason. */
  readonly counts: Map<string, Count>;
  /** The last codepath. The next call usually has the same one and needs no lookup. */
  last: Count | undefined;
}

const all = new Map<string, Paths>();

/** @internal Returns the counter of a codepath. Frequent callers cache it. */
export function codepathCount(operation: string, backend: BackendName, reason: string): Count {
  let paths = all.get(operation);
  if (paths === undefined) {
    paths = { counts: new Map(), last: undefined };
    all.set(operation, paths);
  }
  if (paths.last?.backend === backend && paths.last.reason === reason) return paths.last;
  paths.last = getOrMake(paths.counts, `${backend} ${reason}`, () => ({ operation, backend, reason, calls: 0 }));
  return paths.last;
}

/**
 * Returns which backend ran each operation so far, how often and why, most frequent first.
 *
 * @example
 * codepaths()[0]; // { operation: "matmul", backend: "cpu", reason: "preferred", calls: 2 }
 */
export function codepaths(): Codepath[];
export function codepaths(...values: unknown[]): Codepath[] {
  expectNothing("codepaths", values);
  return [...all.values()]
    .flatMap(({ counts }) => [...counts.values()])
    .filter(({ calls }) => calls > 0)
    .map((count) => ({ ...count }))
    .sort((a, b) => b.calls - a.calls);
}

/**
 * Resets the counts of {@link codepaths}.
 *
 * @example
 * resetCodepaths();
 * model.forward(x);
 * console.log(codepaths()); // the operations of this pass
 */
export function resetCodepaths(): void;
export function resetCodepaths(...values: unknown[]): void {
  expectNothing("resetCodepaths", values);
  for (const { counts } of all.values()) for (const count of counts.values()) count.calls = 0;
}
