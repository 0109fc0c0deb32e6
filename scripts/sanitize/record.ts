/** Records the calls of the cpu dylib that the test suite makes. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { run, tail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";
import { inParallel } from "../parallel.ts";

/**
 * Tests that together call every function of the dylib on its paths; whether they do is checked after the recording.
 * Each of these runs in a process of its own.
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

/** Those that take long for what other backends compute, for large memory, or that count Metal's dispatches. */
const leftOut = [
  "test/ops/attention/attention.test.ts",
  "test/ops/attention/memory.test.ts",
  "test/ops/elementwise/counters.test.ts",
];

/** Tests of the cpu backend, by their names. */
const namePattern = "^(?!.*\\b(?:metal|reference)\\b)";

/** Runs the tests, whose calls are then in files of the folder. @throws {Failure} where a test fails. */
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

/** The files of recorded calls in a folder. @throws {Failure} where there are none. */
export function recordedFiles(folder: string): string[] {
  const names = [...new Bun.Glob("*.calls").scanSync({ cwd: folder })].sort();
  if (names.length === 0)
    throw new Failure(`expected files *.calls in ${folder}, which ORCHARD_CPU_RECORD leaves there`);
  return names.map((name) => join(folder, name));
}
