/**
 * Classes of tests whose outcome can depend on the machine's load. The file's name has the class: `*.timing.test.ts`.
 * They run last, one file at a time with nothing else, and a failed file runs once more.
 */
import { join } from "node:path";
import { type Counts, sum } from "../counts.ts";
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

type RunFile = (file: string, report: string) => Promise<TestRun>;

/** Runs the files in sequence, and failed ones again. It fails if a file fails twice, and reports both results. */
export async function runClassFiles(files: readonly string[], runFile: RunFile): Promise<PartCounts> {
  const counts: Counts[] = [];
  const remarks: string[] = [];
  for (const file of files) {
    const report = (attempt: string) => join(reportFolder(), `${file.replaceAll("/", ".")}${attempt}.xml`);
    const first = await runFile(file, report(""));
    if (first.counts.failed === 0) counts.push(first.counts);
    else {
      const second = await runFile(file, report(".again"));
      counts.push(second.counts);
      const outcome = second.counts.failed === 0 ? "passed" : "failed";
      remarks.push(`${file} failed once, ${outcome} alone: ${first.counts.failures.join("; ")}`);
    }
  }
  return { ...sum(counts), remarks };
}
