/**
 * Classes of tests whose outcome can depend on the machine's load. The file's name has the class: `*.timing.test.ts`.
 * They run last, and a failed file runs once more, alone. Ratios of time are measured with nothing beside them. The
 * memory of a process doesn't depend on others, so those files run beside the ones that wait for signals and networks.
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

/** The classes that run one after another in a lane. Lanes of a stage run side by side; stages follow each other. */
export const stages: readonly (readonly (readonly LoadClass[])[])[] = [[["timing"]], [["memory"], ["faults", "hosts"]]];

export type RunFile = (file: string, report: string) => Promise<TestRun>;

/** The first results of a class: a file that failed has to run again. */
export interface FirstRun {
  readonly passed: readonly Counts[];
  readonly failed: readonly { readonly file: string; readonly counts: Counts }[];
}

const reportOf = (file: string, attempt: string): string =>
  join(reportFolder(), `${file.replaceAll("/", ".")}${attempt}.xml`);

/** Runs the files in sequence. */
export async function runClassFiles(files: readonly string[], runFile: RunFile): Promise<FirstRun> {
  const passed: Counts[] = [];
  const failed: { readonly file: string; readonly counts: Counts }[] = [];
  for (const file of files) {
    const { counts } = await runFile(file, reportOf(file, ""));
    if (counts.failed === 0) passed.push(counts);
    else failed.push({ file, counts });
  }
  return { passed, failed };
}

/**
 * Runs failed files again, when nothing else runs. A class fails if a file fails twice; the remarks have both results.
 */
export async function runAgain({ passed, failed }: FirstRun, runFile: RunFile): Promise<PartCounts> {
  const counts = [...passed];
  const remarks: string[] = [];
  for (const { file, counts: first } of failed) {
    const second = await runFile(file, reportOf(file, ".again"));
    counts.push(second.counts);
    const outcome = second.counts.failed === 0 ? "passed" : "failed";
    remarks.push(`${file} failed once, ${outcome} alone: ${first.failures.join("; ")}`);
  }
  return { ...sum(counts), remarks };
}
