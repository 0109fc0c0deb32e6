/**
 * Tests whose outcome can depend on what else the machine does. A file's name says its class: `*.timing.test.ts`. They
 * run last, one file at a time with nothing beside them, and a file that fails is run once more.
 */
import { join } from "node:path";
import { type Counts, sum } from "../counts.ts";
import type { TestRun } from "./bun_test.ts";
import type { PartCounts } from "./part.ts";
import { reportFolder } from "./report.ts";

/** Each class, with the part of the machine that its tests depend on. */
export const loadClasses = {
  timing: "ratios of processor time",
  memory: "the memory of a process, and which of its pages are resident",
  faults: "signals that must hit a process at a moment of its work",
  hosts: "several processes that find each other, over MPI or a network",
} as const;

export type LoadClass = keyof typeof loadClasses;

const names = Object.keys(loadClasses) as LoadClass[];

/** The class of a test file; undefined for one that no load can change. */
export const classOf = (file: string): LoadClass | undefined => names.find((name) => file.endsWith(`.${name}.test.ts`));

/** Globs of all files that have a class. */
export const classGlobs: readonly string[] = names.map((name) => `**/*.${name}.test.ts`);

type RunFile = (file: string, report: string) => Promise<TestRun>;

/**
 * Runs the files one after another, and those that fail once more. It fails if a file fails twice, and says of each
 * that failed what became of it.
 */
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
