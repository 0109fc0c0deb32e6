/** The TypeScript tests as parts of the suite: those that do not depend on load in parallel, then each class alone. */
import { join } from "node:path";
import { environmentFlag } from "../../src/core/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { type FileTime, noTests } from "../counts.ts";
import { runTestFiles, type TestRun } from "./bun_test.ts";
import { classOf, type LoadClass, loadClasses, runClassFiles } from "./classes.ts";
import { packModules } from "./modules.ts";
import type { SuiteOptions } from "./options.ts";
import { drawnTimes, inOrderOf, measuredTimings, shareOf } from "./order.ts";
import type { Outcomes } from "./outcomes.ts";
import { type PartResult, runPart, withKept } from "./part.ts";
import { reportFolder } from "./report.ts";

/** Tests that load the metal backend's dylib. */
export const metalTests: readonly string[] = [
  "test/backend/metal/**",
  "test/scripts/dylib.test.ts",
  "test/scripts/verify.test.ts",
];

/** The test files to run. */
export interface Selection extends Pick<SuiteOptions, "isFull" | "shard" | "seed" | "isDrawn"> {
  /** Paths of test files; undefined for all. */
  readonly files?: readonly string[];
}

/** The results of TypeScript tests, and how long each file took. */
export interface TypeScriptOutcome {
  readonly results: readonly PartResult[];
  readonly times: readonly FileTime[];
}

const ignored = (): readonly string[] => (environmentFlag("ORCHARD_SKIP_METAL") ? metalTests : []);

/** All test files that this run may select. */
function allTests(): string[] {
  const left = ignored().map((glob) => new Bun.Glob(glob));
  const all = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: packageRoot })].sort();
  return all.filter((file) => !left.some((glob) => glob.match(file)));
}

/** Full sweeps (`test/support/repeats.ts`) load every module from its source, usual runs from a pack. */
const environmentOf = async ({ isFull }: Pick<Selection, "isFull">): Promise<Readonly<Record<string, string>>> =>
  isFull ? { ORCHARD_TEST_ALL: "1" } : { ORCHARD_TEST_MODULES: await packModules() };

/**
 * A function runs more often than by default before JavaScriptCore's last tier compiles it: a million counts instead of
 * 64,000. Most functions of tests run briefly, and their compilation would take a tenth of the processor time.
 * Without the last tier, oracles in loops take longer.
 */
const laterTiers = {
  BUN_JSC_thresholdForFTLOptimizeAfterWarmUp: "1000000",
  BUN_JSC_thresholdForFTLOptimizeSoon: "10000",
} as const;

/** A single process must not wait for a pack. */
const environmentOfChosen = ({ isFull }: Pick<Selection, "isFull">): Readonly<Record<string, string>> =>
  isFull ? { ORCHARD_TEST_ALL: "1" } : {};

/** Runs the tests that do not depend on load in several processes, except those with remembered outcomes. */
export async function testOrdinary(selection: Selection, outcomes?: Outcomes): Promise<TypeScriptOutcome> {
  const { files = allTests(), shard, seed, isDrawn } = selection;
  const ordinary = files.filter((file) => classOf(file) === undefined);
  const timings = measuredTimings();
  const chosen = inOrderOf(seed, shard === undefined ? ordinary : shareOf(ordinary, shard, timings), timings);
  if (chosen.length === 0) return { results: [], times: [] };
  const kept = chosen.flatMap((file) => outcomes?.ofFile(file) ?? []);
  const left = chosen.filter((file) => !outcomes?.ofFile(file));
  let times: TestRun["files"] = [];
  const result = await runPart("TypeScript tests", async () => {
    if (isDrawn) console.log(describeOrder(seed));
    if (left.length === 0) return withKept(noTests, kept);
    const run = await runTestFiles(left, {
      report: join(reportFolder(), "bun.xml"),
      isParallel: true,
      ...(isDrawn ? { times: drawnTimes(seed, timings) } : {}),
      environment: { ...laterTiers, ...(await environmentOf(selection)) },
    });
    times = run.files;
    const passed = run.hasOuterErrors ? [] : run.files.filter(({ failed }) => failed === 0);
    for (const file of passed) outcomes?.keepFile(file.file, file);
    return withKept(run.counts, kept);
  });
  return { results: [result], times };
}

/** Runs the files of each class, one at a time; nothing else may run meanwhile. */
export async function testClasses({ files, shard, ...rest }: Selection): Promise<TypeScriptOutcome> {
  const times: FileTime[] = [];
  const results: PartResult[] = [];
  const all = files ?? allTests();
  for (const name of Object.keys(loadClasses) as LoadClass[]) {
    const ofClass = all.filter((file) => classOf(file) === name);
    const chosen = ofClass.filter((_, at) => shard === undefined || at % shard.count === shard.index - 1);
    if (chosen.length === 0) continue;
    const result = await runPart(`Tests of class ${name}`, () =>
      runClassFiles(chosen, async (file, report) => {
        const run = await runTestFiles([file], { report, environment: await environmentOf(rest) });
        times.push(...run.files);
        return run;
      }),
    );
    results.push(result);
  }
  return { results, times };
}

/** Prints how to repeat the order, for failures that depend on it. */
const describeOrder = (seed: number): string => `Files run in the order of --seed ${seed}`;

/** Runs the selected tests in one process, as when working on a test. */
export async function testChosen(selection: Selection, words: readonly string[]): Promise<PartResult> {
  const files = inOrderOf(selection.seed, filesNamed(selection.files ?? []), measuredTimings());
  return runPart("TypeScript tests", async () => {
    console.log(describeOrder(selection.seed));
    const patterns = ignored().map((glob) => `--path-ignore-patterns=${glob}`);
    const report = join(reportFolder(), "bun.xml");
    const options = { report, words: [...patterns, ...words], environment: environmentOfChosen(selection) };
    return (await runTestFiles(files, options)).counts;
  });
}

/**
 * Selects files as Bun does: those whose paths contain one of the words. Words without a match are left for Bun to
 * reject.
 */
export function filesNamed(words: readonly string[]): string[] {
  const all = allTests();
  const named = words.map((word) => [word, all.filter((file) => file.includes(word.replace(/^\.\//, "")))] as const);
  return [...new Set(named.flatMap(([word, files]) => (files.length > 0 ? files : [word])))];
}
