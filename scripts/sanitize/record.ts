/** Records the test suite's calls of the cpu dylib. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { run, tail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";
import { inParallel } from "../parallel.ts";

/**
 * Tests that together call every function of the dylib on all its paths; the recording checks that. Each runs in a
 * separate process.
 */
const recordedTests = (): string[] => [
  ...[...new Bun.Glob("test/ops/*").scanSync({ cwd: packageRoot, onlyFiles: false })]
    .filter((path) => !path.endsWith(".ts") && hasTests(path))
    .sort(),
  ...["clip", "in_place", "muon"].map((name) => `test/optim/${name}.test.ts`),
  "test/linalg",
  "test/quant",
  "test/backend/cpu/convert.test.ts",
];

const hasTests = (path: string): boolean =>
  !new Bun.Glob("**/*.test.ts").scanSync({ cwd: join(packageRoot, path) }).next().done;

/** Tests that take long on other backends, need much memory, or count Metal's dispatches. */
const leftOut = [
  "test/ops/attention/attention.test.ts",
  "test/ops/attention/memory.test.ts",
  "test/ops/elementwise/counters.test.ts",
];

/** Tests of the cpu backend, by their names. */
const namePattern = "^(?!.*\\b(?:metal|reference)\\b)";

/** Runs the tests, which record their calls in files of the folder. @throws {Failure} if a test fails */
export async function recordTests(folder: string, progress: (text: string) => void): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  let ended = 0;
  const onLine = (line: string) => {
    if (/^\((?:pass|fail)\)/.test(line)) progress(`Recording: ${++ended} tests`);
  };
  const words = [...leftOut.map((path) => `--path-ignore-patterns=${path}`), "--test-name-pattern", namePattern];
  await inParallel(recordedTests(), async (path) => {
    const { status, output } = await run([process.execPath, "test", `./${path}`, ...words], {
      cwd: packageRoot,
      environment: { ORCHARD_CPU_RECORD: folder, ORCHARD_SKIP_METAL: "1" },
      onLine,
    });
    if (status !== 0) throw new Failure(`The tests whose calls are recorded failed:\n${tail(failuresOf(output), 60)}`);
  });
}

const failuresOf = (output: string): string =>
  output
    .split("\n")
    .filter((line) => !/^\((?:pass|skip)\)/.test(line))
    .join("\n");

/** Returns the files of recorded calls in a folder. @throws {Failure} if there are none */
export function recordedFiles(folder: string): string[] {
  const names = [...new Bun.Glob("*.calls").scanSync({ cwd: folder })].sort();
  if (names.length === 0)
    throw new Failure(`expected files *.calls in ${folder}, which ORCHARD_CPU_RECORD leaves there`);
  return names.map((name) => join(folder, name));
}
