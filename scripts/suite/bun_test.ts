/** Runs `bun test`, shows its output, and reads its report. */
import { availableParallelism } from "node:os";
import { relative, resolve } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import { type Counts, countJUnit, type FileOutcome, fileOutcomes } from "../counts.ts";
import type { Timings } from "./order.ts";
import { suiteCacheLimit } from "./report.ts";

/** Each process takes gigabytes, and some tests use as many threads as there are cores. */
const MOST_WORKERS = 4;

/** In characters: the summary has six short lines. */
const LENGTH_OF_SUMMARY = 1000;

export interface TestRunOptions {
  /** Where Bun writes its JUnit report. */
  readonly report: string;
  /** Whether several processes share the files: a test must then not depend on what another file has left. */
  readonly isParallel?: boolean;
  /**
   * Seconds of each file. Parallel processes start the longest files first, and share the files by time: they ignore
   * the order of the arguments. Default: the order of paths.
   */
  readonly times?: Timings;
  /** Further arguments for `bun test`. */
  readonly words?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether to hide Bun's output. */
  readonly isQuiet?: boolean;
}

export interface TestRun {
  readonly counts: Counts;
  readonly files: readonly FileOutcome[];
  /** Whether an error occurred outside the tests. The report has none of these, and any of the files may cause one. */
  readonly hasOuterErrors: boolean;
}

/** Runs these files in their order, or those that the arguments select. */
export async function runTestFiles(files: readonly string[], options: TestRunOptions): Promise<TestRun> {
  const { report, isParallel = false, times, words = [], environment = {}, isQuiet = false } = options;
  await Bun.file(report)
    .delete()
    .catch(() => undefined); // missing on the first run
  const timings = `${report}.timings.json`;
  if (times) await Bun.write(timings, describeTimes(files, times));
  const workers = Math.min(availableParallelism(), MOST_WORKERS);
  const child = Bun.spawn(
    [
      process.execPath,
      "test",
      "--reporter=junit",
      `--reporter-outfile=${report}`,
      ...(isParallel ? [`--parallel=${workers}`, "--no-isolate"] : []),
      ...(times ? [`--timings=${timings}`] : []),
      ...words,
      ...files.map((file) => (file.startsWith("test/") ? `./${file}` : file)), // makes it a path instead of a filter
    ],
    {
      cwd: packageRoot,
      env: {
        ...process.env,
        // Programs that tests start inherit this environment, without the variables that preload.ts sets in
        // process.env. With the usual limit of the cache, they would evict the suite's kernels.
        ORCHARD_METAL_CACHE_LIMIT: String(suiteCacheLimit),
        ...(process.stderr.isTTY ? { FORCE_COLOR: "1" } : {}),
        ...environment,
      },
      stdio: ["ignore", isQuiet ? "ignore" : "inherit", "pipe"],
    },
  );
  const end = lastLines(child.stderr, isQuiet ? undefined : process.stderr);
  const status = await child.exited;
  const text = await Bun.file(report)
    .text()
    .catch(() => undefined);
  const outcomes = fileOutcomes(text ?? "");
  const isExplained = status === 0 || outcomes.some(({ failed }) => failed > 0);
  const hasOuterErrors = !isExplained || endsWithErrors(await endOf(end));
  return { counts: countJUnit(text, status), files: outcomes, hasOuterErrors };
}

/** The times as Bun reads them: milliseconds, by the path from the working folder. */
function describeTimes(files: readonly string[], times: Timings): string {
  const own = files.map(
    (file) => [relative(packageRoot, resolve(packageRoot, file)), Math.ceil(times(file) * 1000)] as const,
  );
  return JSON.stringify({ version: 1, files: Object.fromEntries(own) });
}

/** A process that a test left behind may hold the output open after Bun has ended: the run does not wait for it. */
async function endOf(lines: Promise<string>): Promise<string> {
  const late = Promise.withResolvers<string>();
  const timer = setTimeout(() => late.resolve("1 error"), 5000);
  const end = await Promise.race([lines, late.promise]);
  clearTimeout(timer);
  return end;
}

/** Copies Bun's output as it arrives. @returns its last lines, which are Bun's summary */
async function lastLines(output: ReadableStream<Uint8Array>, to?: NodeJS.WriteStream): Promise<string> {
  let end = "";
  const decoder = new TextDecoder();
  for await (const piece of output) {
    to?.write(piece);
    end = (end + decoder.decode(piece, { stream: true })).slice(-LENGTH_OF_SUMMARY);
  }
  return end;
}

/** Bun's summary has the line " 2 errors" if errors occurred outside the tests, and no such line otherwise. */
const endsWithErrors = (summary: string): boolean => /^ *\d+ errors?$/m.test(Bun.stripANSI(summary));
