import { availableParallelism } from "node:os";
import { join } from "node:path";
import { run } from "../../src/cli/run.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { type Counts, countJUnit, countXCTest } from "../counts.ts";
import { buildTests, productsFolder, swiftFolder } from "../swift/package.ts";
import { reportFolder } from "./report.ts";

/** Builds the Swift package's tests, warnings as errors, and runs them. The whole output is kept under `report/`. */
export async function swiftTests(swift: SwiftToolchain): Promise<Counts> {
  await buildTests(swift);
  const command =
    process.platform === "darwin"
      ? [swift.swift, "test", "--skip-build"]
      : [join(productsFolder("debug"), "OrchardPackageTests.xctest")];
  const sdk = swift.sysroot ? { SDKROOT: swift.sysroot } : {}; // for tests that call a tool of the toolchain
  const onLine = (line: string) => {
    if (/error:|: failed|Executed \d+ tests|Fatal error/.test(line)) console.log(line);
  };
  const { output, status } = await run(command, {
    cwd: swiftFolder,
    environment: { ...swift.environment, ...sdk },
    onLine,
  });
  await Bun.write(join(reportFolder(), "swift.txt"), output);
  return countXCTest(output, status);
}

/** Tests that load the dylib. */
export const metalTests = ["test/backend/metal/**", "test/scripts/dylib.test.ts"];

/** Each takes gigabytes, and some of their tests have as many threads as there are cores. */
const MOST_WORKERS = 4;

/**
 * `bun test`, shown as it runs; without Metal, those that load the dylib are left out. Files of the whole suite are
 * shared by several processes: a test must not need what another file has left, nor a name that others may use.
 */
export async function bunTests(words: readonly string[]): Promise<Counts> {
  const report = join(reportFolder(), "bun.xml");
  await Bun.file(report)
    .delete()
    .catch(() => undefined); // there is none on the first run
  const ignored = environmentFlag("ORCHARD_SKIP_METAL")
    ? metalTests.map((glob) => `--path-ignore-patterns=${glob}`)
    : [];
  const workers = Math.min(availableParallelism(), MOST_WORKERS);
  const parallel = words.length > 0 ? [] : [`--parallel=${workers}`, "--no-isolate"];
  const options = ["--reporter=junit", `--reporter-outfile=${report}`, ...parallel, ...ignored];
  const child = Bun.spawn([process.execPath, "test", ...options, ...words], {
    cwd: packageRoot,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const status = await child.exited;
  const file = Bun.file(report);
  return countJUnit((await file.exists()) ? await file.text() : undefined, status);
}
