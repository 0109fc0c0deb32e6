/** Runs `bun test`, shows its output, and reads its report. */
import { availableParallelism } from "node:os";
import { packageRoot } from "../../src/core/paths.ts";
import { type Counts, countJUnit, type FileOutcome, fileOutcomes } from "../counts.ts";

/** Each takes gigabytes, and some of their tests use as many threads as there are cores. */
const MOST_WORKERS = 4;

export interface TestRunOptions {
  /** Where Bun writes its JUnit report. */
  readonly report: string;
  /** Whether several processes share the files: a test must then not depend on what another file has left. */
  readonly isParallel?: boolean;
  /** Further arguments for `bun test`. */
  readonly words?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export interface TestRun {
  readonly counts: Counts;
  readonly files: readonly FileOutcome[];
}

/** Runs these files in their order, or those that the arguments select. */
export async function runTestFiles(files: readonly string[], options: TestRunOptions): Promise<TestRun> {
  const { report, isParallel = false, words = [], environment = {} } = options;
  await Bun.file(report)
    .delete()
    .catch(() => undefined); // missing on the first run
  const workers = Math.min(availableParallelism(), MOST_WORKERS);
  const child = Bun.spawn(
    [
      ...[process.execPath, "test", "--reporter=junit", `--reporter-outfile=${report}`],
      ...(isParallel ? [`--parallel=${workers}`, "--no-isolate"] : []),
      ...words,
      ...files.map((file) => (file.startsWith("test/") ? `./${file}` : file)), // a path, not a part of one
    ],
    { cwd: packageRoot, env: { ...process.env, ...environment }, stdio: ["ignore", "inherit", "inherit"] },
  );
  const status = await child.exited;
  const text = await Bun.file(report)
    .text()
    .catch(() => undefined);
  return { counts: countJUnit(text, status), files: fileOutcomes(text ?? "") };
}
