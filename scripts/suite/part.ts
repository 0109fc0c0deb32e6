import { type Counts, type FileTime, noTests, oneFailed, sum } from "../counts.ts";
import { Failure } from "../failure.ts";
import type { Outcomes, Passed } from "./outcomes.ts";

/** The counts of a part, and further remarks of its report. */
export interface PartCounts extends Counts {
  /** Sentences, such as one that says that a file failed once and then passed. */
  readonly remarks?: readonly string[];
  /** The number of tests that passed in an earlier run of the same files. */
  readonly kept?: number;
}

/** The outcome of one part of the suite. */
export interface PartResult {
  readonly name: string;
  readonly counts: PartCounts;
  readonly seconds: number;
  /** Why the part was skipped on purpose; then it is neither passed nor failed. */
  readonly leftOut?: string;
}

/**
 * Runs and times a part. A part that can't run counts as one failure, since a suite without tests must not pass.
 * Several parts may run at once, so each prints its start and end.
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

/** Adds outcomes that passed in an earlier run of the same files. */
export function withKept(counts: PartCounts, kept: readonly Passed[]): PartCounts {
  const earlier = sum(kept.map((each) => ({ ...noTests, ...each })));
  return { ...counts, ...sum([counts, earlier]), kept: earlier.passed };
}

/** Runs a part whose outcome is a function of the repository's files, unless it passed with these files. */
export const runKept = (name: string, outcomes: Outcomes | undefined, body: () => Promise<PartCounts>) =>
  runPart(name, async () => {
    const kept = outcomes?.ofPart(name);
    if (kept) return withKept(noTests, [kept]);
    const counts = await body();
    if (counts.failed === 0) outcomes?.keepPart(name, counts);
    return counts;
  });

export const leaveOut = (name: string, leftOut: string): PartResult => ({ name, counts: noTests, seconds: 0, leftOut });

const outcome = ({ passed, failed, skipped, kept }: PartCounts): string =>
  [
    `${passed} passed${kept ? ` (${kept} of them earlier)` : ""}`,
    `${failed} failed`,
    ...(skipped ? [`${skipped} skipped`] : []),
  ].join(", ");

/** Returns how much of the report is from an earlier run. */
export function describeKept(results: readonly PartResult[]): string {
  const kept = results.reduce((total, { counts }) => total + (counts.kept ?? 0), 0);
  return kept === 0
    ? ""
    : `\n${kept} of the tests passed in an earlier run, and no file changed since that they may depend on: ` +
        "`bun run test --again` runs them too\n";
}

/**
 * Returns a row for each part, and the skipped parts. Parts overlap, so the suite takes less than the sum of their
 * times.
 */
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

/** Returns all failures in one list, since in a long output their first reports are far above. */
export function describeFailures(results: readonly PartResult[]): string {
  const remarks = results.flatMap(({ counts }) => counts.remarks ?? []).map((remark) => `  ${remark}`);
  const rows = results.flatMap(({ name, counts }) => counts.failures.map((failure) => `  ${name}: ${failure}`));
  const again = remarks.length === 0 ? "" : `\nRun once more, alone\n${remarks.join("\n")}\n`;
  return again + (rows.length === 0 ? "" : `\nWhat failed\n${rows.join("\n")}\n`);
}
