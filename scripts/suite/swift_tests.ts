import { join } from "node:path";
import { run } from "../../src/cli/run.ts";
import { packageFlags, swiftFolder } from "../../src/cli/swift_module.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { type Counts, countXCTest } from "../counts.ts";
import { headersFolder } from "../swift/dylib.ts";
import { buildTests, testProgram } from "../swift/package.ts";
import { reportFolder, suiteCacheLimit } from "./report.ts";

/** Builds the Swift package's tests, warnings as errors, and runs them. The whole output is kept under `report/`. */
export async function swiftTests(swift: SwiftToolchain): Promise<Counts> {
  await buildTests(swift);
  const command =
    process.platform === "darwin" ? [swift.swift, "test", "--skip-build", ...packageFlags(swift)] : [testProgram];
  const more = {
    ...(swift.sysroot ? { SDKROOT: swift.sysroot } : {}), // for tests that call a tool of the toolchain
    ORCHARD_METAL_CACHE_LIMIT: String(suiteCacheLimit),
    ORCHARD_METAL_HEADERS: headersFolder, // a program from the cache knows those of the clone that built it
  };
  const onLine = (line: string) => {
    if (/error:|: failed|Executed \d+ tests|Fatal error/.test(line)) console.log(line);
  };
  const { output, status } = await run(command, {
    cwd: swiftFolder,
    environment: { ...swift.environment, ...more },
    onLine,
  });
  await Bun.write(join(reportFolder(), "swift.txt"), output);
  return countXCTest(output, status);
}
