import { join } from "node:path";
import { type RunResult, run } from "../../src/cli/run.ts";
import { moduleEnvironment, packageFlags, swiftFolder } from "../../src/cli/swift_module.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { type Counts, countXCTest } from "../counts.ts";
import { headersFolder } from "../swift/dylib.ts";
import { buildTests, testProgram } from "../swift/package.ts";
import { reportFolder, suiteCacheLimit } from "./report.ts";

/** Builds and runs the Swift package's tests, with warnings as errors. The complete output is kept in `report/`. */
export async function swiftTests(swift: SwiftToolchain): Promise<Counts> {
  const { output, status } = await runSwiftTests(swift);
  await Bun.write(join(reportFolder(), "swift.txt"), output);
  return countXCTest(output, status);
}

export interface SwiftTestChoice {
  /** Classes of the dylib's tests, or tests as `Class/testName`; all tests by default. */
  readonly names?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export async function runSwiftTests(swift: SwiftToolchain, choice: SwiftTestChoice = {}): Promise<RunResult> {
  await buildTests(swift);
  const environment = {
    ...swift.environment,
    ...moduleEnvironment(),
    ...(swift.sysroot ? { SDKROOT: swift.sysroot } : {}), // for tests that call a tool of the toolchain
    ORCHARD_METAL_CACHE_LIMIT: String(suiteCacheLimit),
    ORCHARD_METAL_HEADERS: headersFolder, // a cached program contains the paths of the clone that built it
    ...choice.environment,
  };
  const onLine = (line: string) => {
    if (/error:|: failed|Executed \d+ tests|Fatal error/.test(line)) console.log(line);
  };
  return run(testCommand(swift, choice.names ?? []), { cwd: swiftFolder, environment, onLine });
}

function testCommand(swift: SwiftToolchain, names: readonly string[]): string[] {
  const chosen = names.map((name) => `OrchardMetalTests.${name}`);
  if (process.platform !== "darwin") return [testProgram, ...(chosen.length > 0 ? [chosen.join(",")] : [])];
  const filters = chosen.flatMap((name) => ["--filter", name]);
  return [swift.swift, "test", "--skip-build", ...packageFlags(swift), ...filters];
}
