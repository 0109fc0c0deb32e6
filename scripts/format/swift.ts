/** Runs `swift-format`, which comes with Swift and has its version. */
import { join } from "node:path";
import { run } from "../../src/cli/run.ts";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { filesOf } from "./files.ts";

/** Other releases wrap some lines differently, so only this one formats and checks; set-up installs it on Linux. */
const release = "600.";

export const swiftFiles = (): string[] => filesOf(["swift/Package.swift", "swift/{Sources,Tests}/**/*.swift"]);

/** Returns why this Swift can't format the sources; undefined if it can. */
export async function swiftFormatGap(swift: SwiftToolchain): Promise<string | undefined> {
  const { output, status } = await run([swift.swift, "format", "--version"], { environment: swift.environment });
  if (status !== 0) return "this Swift has no swift-format";
  const version = output.trim();
  return version.startsWith(release) ? undefined : `expected swift-format ${release}x (Swift 6.0), got ${version}`;
}

/** Returns the lines that `swift-format` would change, as `file:line: why`. */
export async function swiftProblems(swift: SwiftToolchain, files: readonly string[]): Promise<string[]> {
  const { output, status } = await swiftFormat(swift, ["lint", "--strict"], files);
  const lines = [...output.matchAll(/^(.+?:\d+):\d+: (?:error|warning): (.*)$/gm)];
  const problems = lines.map(([, line, message]) => `${line}: ${message}`);
  return status !== 0 && problems.length === 0 ? [`swift-format: ${output.trim()}`] : problems;
}

export const formatSwift = (swift: SwiftToolchain, files: readonly string[]) =>
  swiftFormat(swift, ["format", "--in-place"], files);

const configuration = join(packageRoot, "swift", ".swift-format");

const swiftFormat = (swift: SwiftToolchain, words: readonly string[], files: readonly string[]) =>
  run([swift.swift, "format", ...words, "--parallel", "--configuration", configuration, ...files], {
    cwd: packageRoot,
    environment: swift.environment,
  });
