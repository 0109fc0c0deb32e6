import { join } from "node:path";
import { type RunResult, run } from "../../src/cli/run.ts";
import { releaseFlags } from "../../src/cli/swift_module.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";

export const swiftFolder: string = join(packageRoot, "swift");

/** `swift build` in release. */
export function buildRelease(swift: SwiftToolchain, ...words: string[]): Promise<RunResult> {
  return swiftBuild(swift, ["-c", "release", ...releaseFlags, ...words]);
}

/** `swift build` of the package and its tests, in debug, with warnings as errors. */
export async function buildTests(swift: SwiftToolchain): Promise<RunResult> {
  if (process.platform === "darwin") await requireXCTest();
  return swiftBuild(swift, ["--build-tests", "-Xswiftc", "-warnings-as-errors", ...swift.programFlags]);
}

/** Apple's command-line tools have no XCTest: only Xcode has. */
async function requireXCTest(): Promise<void> {
  const { status } = await run(["xcrun", "--find", "xctest"]);
  if (status === 0) return;
  throw new Failure(
    "The Swift tests need XCTest, which comes with Xcode and not with the command-line tools. Install Xcode, then " +
      "run `sudo xcode-select -s /Applications/Xcode.app`.",
  );
}

async function swiftBuild(swift: SwiftToolchain, words: string[]): Promise<RunResult> {
  const command = [swift.swift, "build", ...words, ...swift.buildFlags];
  const result = await run(command, { cwd: swiftFolder, environment: swift.environment });
  if (result.status !== 0) throw new Failure(`swift build failed:\n${interesting(result.output)}`);
  return result;
}

/**
 * What a person needs of a failed build: its diagnostics, each once (every file of a module may repeat them), and no
 * progress.
 */
function interesting(output: string): string {
  const lines = output.split("\n").filter((line) => !/^\[\d+\/\d+\]|^(Building|Planning) /.test(line));
  return [...new Set(lines)].slice(-200).join("\n").trim();
}

/** The folder of what was built in a configuration. */
export function productsFolder(configuration: "release" | "debug"): string {
  return join(swiftFolder, ".build", configuration);
}
