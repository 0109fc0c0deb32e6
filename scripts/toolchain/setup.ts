import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run, tail } from "../../src/cli/run.ts";
import { describeMachine, installedToolchain, installToolchain } from "../../src/cli/toolchain/install.ts";
import {
  cachedToolchain,
  isAtLeast,
  oldestSwift,
  type SwiftToolchain,
  swiftOnPath,
  toolchainsFolder,
} from "../../src/cli/toolchain.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { cacheFolder } from "../../src/core/paths.ts";
import { hasCompiler } from "../cpu/compiler.ts";
import { Failure } from "../failure.ts";
import { withSpinner } from "../progress.ts";
import { ensureBlas } from "./blas.ts";

/**
 * Finds or installs Swift, and installs OpenBLAS if it is missing. Undefined if `ORCHARD_SKIP_METAL=1` skips Metal.
 */
export async function setUp(): Promise<SwiftToolchain | undefined> {
  const swift = await setUpSwift(); // first, to fail on an unsupported machine before anything is downloaded
  await ensureBlas();
  return swift;
}

async function setUpSwift(): Promise<SwiftToolchain | undefined> {
  if (environmentFlag("ORCHARD_SKIP_METAL")) {
    console.log("ORCHARD_SKIP_METAL=1: Swift is left out, and with it the metal backend.");
    return undefined;
  }
  const swift = (await usableSwiftOnPath()) ?? (await installedSwift());
  console.log(`Swift ${swift.version}: ${swift.swift}`);
  return swift;
}

/**
 * Installs only what the cpu backend needs: a C++ compiler, which is part of the Swift toolchain, and OpenBLAS,
 * optionally during the build.
 */
export async function setUpCpu(build?: () => Promise<void>): Promise<void> {
  if (!hasCompiler()) await setUpSwift();
  if (build === undefined) return ensureBlas();
  await Promise.all([ensureBlas(inBackground), build()]);
}

/** Prints a line when it is done, since the build uses the spinner. */
const inBackground: typeof withSpinner = async (what, body) => {
  const result = await body(() => undefined);
  console.log(`${what}: done`);
  return result;
};

/** The Swift on PATH, if it is new enough and builds a package. Otherwise prints why it is not used. */
async function usableSwiftOnPath(): Promise<SwiftToolchain | undefined> {
  const swift = swiftOnPath();
  if (!swift) return undefined;
  const problem = isAtLeast(swift.version, oldestSwift) ? await trialProblem(swift) : `it is older than ${oldestSwift}`;
  if (!problem) return swift;
  console.log(`Swift ${swift.version} on PATH (${swift.swift}) is not used: ${problem}`);
  return undefined;
}

async function installedSwift(): Promise<SwiftToolchain> {
  if (process.platform === "darwin")
    throw new Failure(
      `expected Swift ${oldestSwift} or newer. Install Apple's command-line tools with \`xcode-select --install\`, ` +
        "or update Xcode; then run this again.",
    );
  const folder = installedToolchain(toolchainsFolder()) ?? (await installSwift());
  const swift = cachedToolchain(folder);
  if (!swift)
    throw new Failure(`The Swift in ${folder} does not start. Remove that folder and run \`bun run setup\` again.`);
  return swift;
}

async function installSwift(): Promise<string> {
  const machine = await describeMachine();
  return withSpinner("Installing Swift", (progress) => installToolchain(toolchainsFolder(), machine, progress));
}

const trialFiles = {
  "Package.swift": `// swift-tools-version:5.9
import PackageDescription
let package = Package(
  name: "Trial",
  targets: [.target(name: "Bridge"), .executableTarget(name: "Trial", dependencies: ["Bridge"])]
)
`,
  "Sources/Bridge/bridge.cpp":
    '#include <vector>\n#include "include/bridge.h"\nint bridge(void) { return (int)std::vector<int>(3).size(); }\n',
  "Sources/Bridge/include/bridge.h": '#ifdef __cplusplus\nextern "C"\n#endif\nint bridge(void);\n',
  "Sources/Trial/main.swift": "import Bridge\nimport Foundation\nprint(bridge(), Date().timeIntervalSince1970 > 0)\n",
};

/** Builds a package of Swift and C++ once for each compiler. A stamp file caches success. */
async function trialProblem(swift: SwiftToolchain): Promise<string | undefined> {
  const stamp = join(cacheFolder(), "trials", Bun.hash(`${swift.swift} ${swift.version}`).toString(16));
  if (existsSync(stamp)) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "orchard-trial-"));
  try {
    for (const [path, text] of Object.entries(trialFiles)) await Bun.write(join(folder, path), text);
    const result = await run([swift.swift, "build", ...swift.buildFlags], { cwd: folder });
    if (result.status !== 0) return `it cannot build a small package:\n${tail(result.output, 8)}`;
    await mkdir(join(cacheFolder(), "trials"), { recursive: true });
    await Bun.write(stamp, swift.version);
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
