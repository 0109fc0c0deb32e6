/** The TypeScript tests as parts of the suite: those that no load can change in parallel, then each class alone. */
import { join } from "node:path";
import { environmentFlag } from "../../src/core/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";
import type { FileTime } from "../counts.ts";
import { runTestFiles, type TestRun } from "./bun_test.ts";
import { classGlobs, classOf, type LoadClass, loadClasses, runClassFiles } from "./classes.ts";
import type { SuiteOptions } from "./options.ts";
import { type PartResult, runPart } from "./part.ts";
import { reportFolder } from "./report.ts";

/** Tests that load the metal backend's dylib. */
export const metalTests: readonly string[] = ["test/backend/metal/**", "test/scripts/dylib.test.ts"];

/** Which test files run. */
export interface Selection extends Pick<SuiteOptions, "isFull" | "shard"> {
  /** Paths of test files; undefined for all. */
  readonly files?: readonly string[];
}

/** The results of TypeScript tests, and how long each file took. */
export interface TypeScriptOutcome {
  readonly results: readonly PartResult[];
  readonly times: readonly FileTime[];
}

const ignored = (): readonly string[] => (environmentFlag("ORCHARD_SKIP_METAL") ? metalTests : []);

/** Sweeps run in full where this is set: see test/support/repeats.ts. */
const environmentOf = ({ isFull }: Pick<Selection, "isFull">): Readonly<Record<string, string>> =>
  isFull ? { ORCHARD_TEST_ALL: "1" } : {};

/** Runs the tests that no load can change, in several processes. */
export async function testOrdinary(selection: Selection): Promise<TypeScriptOutcome> {
  const { files = [], shard } = selection;
  const chosen = files.filter((file) => classOf(file) === undefined);
  if (files.length > 0 && chosen.length === 0) return { results: [], times: [] };
  let times: TestRun["times"] = [];
  const result = await runPart("TypeScript tests", async () => {
    const run = await runTestFiles(chosen, {
      report: join(reportFolder(), "bun.xml"),
      isParallel: true,
      words: [
        ...[...classGlobs, ...ignored()].map((glob) => `--path-ignore-patterns=${glob}`),
        ...(shard ? [`--shard=${shard.index}/${shard.count}`] : []),
      ],
      environment: environmentOf(selection),
    });
    times = run.times;
    return run.counts;
  });
  return { results: [result], times };
}

/** Runs the files of each class, one at a time; nothing else may run meanwhile. */
export async function testClasses({ files, shard, ...rest }: Selection): Promise<TypeScriptOutcome> {
  const times: FileTime[] = [];
  const results: PartResult[] = [];
  const all = files ?? [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: packageRoot })].sort();
  const left = ignored().map((glob) => new Bun.Glob(glob));
  for (const name of Object.keys(loadClasses) as LoadClass[]) {
    const own = all.filter((file) => classOf(file) === name && !left.some((glob) => glob.match(file)));
    const chosen = own.filter((_, at) => shard === undefined || at % shard.count === shard.index - 1);
    if (chosen.length === 0) continue;
    const result = await runPart(`Tests of class ${name}`, () =>
      runClassFiles(chosen, async (file, report) => {
        const run = await runTestFiles([file], { report, environment: environmentOf(rest) });
        times.push(...run.times);
        return run;
      }),
    );
    results.push(result);
  }
  return { results, times };
}

/** One process for what the words select, as while working on a test. */
export async function testChosen(selection: Selection, words: readonly string[]): Promise<PartResult> {
  return runPart("TypeScript tests", async () => {
    const patterns = ignored().map((glob) => `--path-ignore-patterns=${glob}`);
    const report = join(reportFolder(), "bun.xml");
    const options = { report, words: [...patterns, ...words], environment: environmentOf(selection) };
    return (await runTestFiles(selection.files ?? [], options)).counts;
  });
}
