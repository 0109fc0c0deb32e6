import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
import { run, tail } from "../run.ts";
import { bringBlas } from "./blas.ts";
import { describeMachine, installedToolchain, installToolchain } from "./install.ts";

/** Finds or brings Swift, and OpenBLAS where it is missing. Undefined where Metal is left out by `ORCHARD_SKIP_METAL=1`. */
export async function setUp(): Promise<SwiftToolchain | undefined> {
  const swift = await setUpSwift(); // first: a machine that can have none is told so before anything is downloaded
  await bringBlas();
  return swift;
}

async function setUpSwift(): Promise<SwiftToolchain | undefined> {
  if (environmentFlag("ORCHARD_SKIP_METAL")) {
    console.log("ORCHARD_SKIP_METAL=1: Swift, and with it the metal backend, is left out.");
    return undefined;
  }
  const swift = (await usableSwiftOnPath()) ?? (await broughtSwift());
  console.log(`Swift ${swift.version}: ${swift.swift}`);
  return swift;
}

/** What the cpu backend needs, and no more: OpenBLAS, and a C++ compiler, which Swift brings to a machine that has none. */
export async function setUpCpu(): Promise<void> {
  if (!hasCompiler()) await setUpSwift();
  await bringBlas();
}

/** PATH's Swift, where it is new enough and builds a package; else says why it is passed over. */
async function usableSwiftOnPath(): Promise<SwiftToolchain | undefined> {
  const swift = swiftOnPath();
  if (!swift) return undefined;
  const problem = isAtLeast(swift.version, oldestSwift) ? await trialProblem(swift) : `it is older than ${oldestSwift}`;
  if (!problem) return swift;
  console.log(`Swift ${swift.version} on PATH (${swift.swift}) is passed over: ${problem}`);
  return undefined;
}

async function broughtSwift(): Promise<SwiftToolchain> {
  if (process.platform === "darwin")
    throw new Failure(
      `There is no Swift ${oldestSwift} or newer. \`xcode-select --install\` brings Apple's command-line tools, which have it, and an update of Xcode a newer one; run this again afterwards.`,
    );
  const folder = installedToolchain(toolchainsFolder()) ?? (await installedAnew());
  const swift = cachedToolchain(folder);
  if (!swift)
    throw new Failure(`The Swift in ${folder} does not start. Remove that folder and run \`bun run setup\` again.`);
  return swift;
}

async function installedAnew(): Promise<string> {
  const machine = await describeMachine();
  return withSpinner("Bringing Swift", (progress) => installToolchain(toolchainsFolder(), machine, progress));
}

const trialFiles = {
  "Package.swift": `// swift-tools-version:5.9
import PackageDescription
let package = Package(name: "Trial", targets: [.target(name: "Bridge"), .executableTarget(name: "Trial", dependencies: ["Bridge"])])
`,
  "Sources/Bridge/bridge.cpp":
    '#include <vector>\n#include "include/bridge.h"\nint bridge(void) { return (int)std::vector<int>(3).size(); }\n',
  "Sources/Bridge/include/bridge.h": '#ifdef __cplusplus\nextern "C"\n#endif\nint bridge(void);\n',
  "Sources/Trial/main.swift": "import Bridge\nimport Foundation\nprint(bridge(), Date().timeIntervalSince1970 > 0)\n",
};

/** Builds a package of Swift and C++ once for each compiler, and remembers that it went well. */
async function trialProblem(swift: SwiftToolchain): Promise<string | undefined> {
  const remembered = join(cacheFolder(), "trials", Bun.hash(`${swift.swift} ${swift.version}`).toString(16));
  if (existsSync(remembered)) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "orchard-trial-"));
  try {
    for (const [path, text] of Object.entries(trialFiles)) await Bun.write(join(folder, path), text);
    const result = await run([swift.swift, "build", ...swift.buildFlags], { cwd: folder });
    if (result.status !== 0) return `it can't build a small package:\n${tail(result.output, 8)}`;
    await mkdir(join(cacheFolder(), "trials"), { recursive: true });
    await Bun.write(remembered, swift.version);
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
