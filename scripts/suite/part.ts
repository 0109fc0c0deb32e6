import { type Counts, type FileTime, noTests, oneFailed } from "../counts.ts";
import { Failure } from "../failure.ts";

/** The counts of a part, and what else its report says. */
export interface PartCounts extends Counts {
  /** A sentence each, such as that a file failed once and then passed. */
  readonly remarks?: readonly string[];
}

/** The outcome of one part of the suite. */
export interface PartResult {
  readonly name: string;
  readonly counts: PartCounts;
  readonly seconds: number;
  /** Why it was left out on purpose; it then counts neither way. */
  readonly leftOut?: string;
}

/**
 * Runs a part and times it. A part that can't run at all counts as one failure: a suite is not green for lack of tests.
 * Several parts may run at once, so each says when it begins and when it ends.
 */
export async function runPart(name: string, body: () => Promise<PartCounts>): Promise<PartResult> {
  console.log(`\n── ${name}`);
  const start = performance.now();
  const counts = await body().catch((error: unknown) => {
    console.error(error instanceof Failure ? error.message : error);
    return oneFailed(error instanceof Error ? error.message : String(error));
  });
  const seconds = (performance.now() - start) / 1000;
  console.log(`── ${name}: ${outcome(counts)} (${seconds.toFixed(1)} s)`);
  return { name, counts, seconds };
}

export const leaveOut = (name: string, leftOut: string): PartResult => ({ name, counts: noTests, seconds: 0, leftOut });

const outcome = ({ passed, failed, skipped }: Counts): string =>
  `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}`;

/** A row for each part, and what was left out. Parts overlap, so their times do not add up to that of the suite. */
export function describe(results: readonly PartResult[]): string {
  const rows = results.map(({ name, counts, seconds, leftOut }) =>
    leftOut
      ? `  ${name.padEnd(26)} left out: ${leftOut}`
      : `  ${name.padEnd(26)} ${outcome(counts)} (${seconds.toFixed(1)} s)`,
  );
  return `\n${rows.join("\n")}\n`;
}

/** The test files that took longest. */
export function describeSlowest(times: readonly FileTime[], count = 10): string {
  const slowest = times.toSorted((a, b) => b.seconds - a.seconds).slice(0, count);
  const rows = slowest.map(({ file, seconds }) => `  ${seconds.toFixed(1).padStart(7)} s  ${file}`);
  return rows.length === 0 ? "" : `\nThe slowest test files\n${rows.join("\n")}\n`;
}

/** Everything that failed, once more and together: where it happened lies far above in a long output. */
export function describeFailures(results: readonly PartResult[]): string {
  const remarks = results.flatMap(({ counts }) => counts.remarks ?? []).map((remark) => `  ${remark}`);
  const rows = results.flatMap(({ name, counts }) => counts.failures.map((failure) => `  ${name}: ${failure}`));
  const again = remarks.length === 0 ? "" : `\nRun once more, alone\n${remarks.join("\n")}\n`;
  return again + (rows.length === 0 ? "" : `\nWhat failed\n${rows.join("\n")}\n`);
}
