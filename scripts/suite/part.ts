import { type Counts, noTests, oneFailed } from "../counts.ts";
import { Failure } from "../failure.ts";

/** What became of one part of the suite. */
export interface PartResult {
  readonly name: string;
  readonly counts: Counts;
  readonly seconds: number;
  /** Why it was left out on purpose; it then counts neither way. */
  readonly leftOut?: string;
}

/**
 * Runs a part and times it. A part that can't run at all counts as one failure: a suite is not green for lack of tests.
 */
export async function runPart(name: string, body: () => Promise<Counts>): Promise<PartResult> {
  console.log(`\n── ${name}`);
  const start = performance.now();
  const counts = await body().catch((error: unknown) => {
    console.error(error instanceof Failure ? error.message : error);
    return oneFailed(error instanceof Error ? error.message : String(error));
  });
  return { name, counts, seconds: (performance.now() - start) / 1000 };
}

export const leaveOut = (name: string, leftOut: string): PartResult => ({ name, counts: noTests, seconds: 0, leftOut });

/** A row for each part, and what was left out. */
export function describe(results: readonly PartResult[]): string {
  const rows = results.map(({ name, counts, seconds, leftOut }) => {
    if (leftOut) return `  ${name.padEnd(26)} left out: ${leftOut}`;
    const skipped = counts.skipped ? `, ${counts.skipped} skipped` : "";
    return `  ${name.padEnd(26)} ${counts.passed} passed, ${counts.failed} failed${skipped} (${seconds.toFixed(1)} s)`;
  });
  return `\n${rows.join("\n")}\n`;
}

/** Everything that failed, once more and together: where it happened lies far above in a long output. */
export function describeFailures(results: readonly PartResult[]): string {
  const rows = results.flatMap(({ name, counts }) => counts.failures.map((failure) => `  ${name}: ${failure}`));
  return rows.length === 0 ? "" : `\nWhat failed\n${rows.join("\n")}\n`;
}
