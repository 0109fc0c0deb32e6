/**
 * Classes of tests whose outcome can depend on the machine's load. The file's name has the class: `*.timing.test.ts`.
 * They run last, and a failed file runs once more, alone.
 */
import { join } from "node:path";
import { type Counts, noTests, sum } from "../counts.ts";
import type { TestRun } from "./bun_test.ts";
import type { PartCounts } from "./part.ts";
import { reportFolder } from "./report.ts";

/** Each class, with what its tests depend on. */
export const loadClasses = {
  timing: "ratios of processor time",
  memory: "the memory of a process, and which of its pages are resident",
  faults: "signals that must hit a process at a moment of its work",
  hosts: "several processes that find each other, over MPI or a network",
} as const;

export type LoadClass = keyof typeof loadClasses;

const names = Object.keys(loadClasses) as LoadClass[];

/** Returns the class of a test file; undefined for one that does not depend on load. */
export const classOf = (file: string): LoadClass | undefined => names.find((name) => file.endsWith(`.${name}.test.ts`));

/** Globs of all files that have a class. */
export const classGlobs: readonly string[] = names.map((name) => `**/*.${name}.test.ts`);

/**
 * How many files of a class run at a time. A measurement needs a process and the machine for one file. Tests of faults
 * and hosts mostly wait for processes that they started, for as long as these take. A second file loads the machine
 * less than `stress-ng --cpu 4`, beside which they pass too.
 */
export const filesAtOnce: Readonly<Record<LoadClass, number>> = { timing: 1, memory: 1, faults: 2, hosts: 2 };

/** Returns the files by the call of Bun that runs them. Files that run at the same time are in one call. */
export const callsOf = (name: LoadClass, files: readonly string[]): readonly (readonly string[])[] =>
  filesAtOnce[name] === 1 ? files.map((file) => [file]) : [files];

type RunFiles = (files: readonly string[], report: string) => Promise<TestRun>;

/**
 * Runs the files of each call in sequence, and failed ones again, one at a time. It fails if a file fails twice, and
 * reports both results.
 */
export async function runClassFiles(calls: readonly (readonly string[])[], runFiles: RunFiles): Promise<PartCounts> {
  const counts: Counts[] = [];
  const remarks: string[] = [];
  const reportOf = (file: string, attempt: string) =>
    join(reportFolder(), `${file.replaceAll("/", ".")}${attempt}.xml`);
  for (const files of calls) {
    const first = await runFiles(files, reportOf(files[0], ""));
    const failed = failedFiles(files, first);
    counts.push(failed.length === 0 ? first.counts : passedIn(first, failed));
    for (const file of failed) {
      const second = await runFiles([file], reportOf(file, ".again"));
      counts.push(second.counts);
      const outcome = second.counts.failed === 0 ? "passed" : "failed";
      remarks.push(`${file} failed once, ${outcome} alone: ${failuresOf(file, first).join("; ")}`);
    }
  }
  return { ...sum(counts), remarks };
}

/** Returns the files to run again: those with a failed test or no report, or all if none explains the failure. */
function failedFiles(files: readonly string[], run: TestRun): readonly string[] {
  const { counts, files: outcomes, hasOuterErrors } = run;
  if (counts.failed === 0) return [];
  const passed = new Set(outcomes.filter(({ failed }) => failed === 0).map(({ file }) => file));
  const failed = files.filter((file) => !passed.has(file));
  return hasOuterErrors || failed.length === 0 ? files : failed;
}

function passedIn({ files }: TestRun, failed: readonly string[]): Counts {
  const others = files.filter(({ file }) => !failed.includes(file));
  return sum(others.map(({ passed, skipped }) => ({ ...noTests, passed, skipped })));
}

/** The file's failures; all failures if none names it. */
function failuresOf(file: string, { counts: { failures } }: TestRun): readonly string[] {
  const own = failures.filter((failure) => failure.startsWith(`${file}: `));
  return own.length === 0 ? failures : own;
}
