import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { environmentFlag } from "../../src/debug/environment.ts";
import { packageRoot } from "../../src/debug/paths.ts";
import type { SwiftToolchain } from "../../src/debug/toolchain.ts";
import { type Counts, sum } from "../counts.ts";
import { buildCpu } from "../cpu/build.ts";
import { build } from "../swift/command.ts";
import { buildTests } from "../swift/package.ts";
import { bringBlas } from "../toolchain/blas.ts";
import { setUp } from "../toolchain/setup.ts";
import { checkKernels, checkStyle, checkTypes } from "./checks.ts";
import { describe, leaveOut, type PartResult, runPart } from "./part.ts";
import { bunTests, metalTests, swiftTests } from "./tests.ts";

/** A part that needs Swift. */
interface MetalPart {
  readonly name: string;
  readonly body: (swift: SwiftToolchain) => Promise<Counts>;
}

const one: Counts = { passed: 1, failed: 0, skipped: 0 };

const kernels: MetalPart = { name: "Kernels, strictly typed", body: checkKernels };
const swiftSuite: MetalPart = { name: "Swift tests", body: swiftTests };
const swiftWarnings: MetalPart = {
  name: "Swift without warnings",
  body: async (swift) => {
    await buildTests(swift);
    return one;
  },
};

/** Every part of the suite; words choose files and tests of `bun test`, and then nothing else runs. */
export async function testEverything(words: readonly string[]): Promise<void> {
  await mkdir(join(packageRoot, "report"), { recursive: true });
  const typescript = () => runPart("TypeScript tests", () => bunTests(words));
  if (words.length > 0) return report([await typescript()]);
  const before = [...(await sourceChecks()), ...(await metalParts([swiftSuite, kernels])), await cpuPart()];
  report([...before, await typescript()]);
}

/** What needs no test to run. */
export async function checkEverything(): Promise<void> {
  report([...(await sourceChecks()), ...(await metalParts([swiftWarnings, kernels])), await cpuPart()]);
}

const sourceChecks = async (): Promise<PartResult[]> => [
  await runPart("Types", checkTypes),
  await runPart("Format and lint", checkStyle),
];

/** Warnings are errors. It comes after the set-up of Swift, which brings a compiler where the machine has none. */
const cpuPart = (): Promise<PartResult> =>
  runPart("The cpu backend, built", async () => {
    await bringBlas();
    await buildCpu();
    return one;
  });

/** Sets up, builds, and then runs the parts; where the build fails, they are told as not run. */
async function metalParts(parts: readonly MetalPart[]): Promise<PartResult[]> {
  if (environmentFlag("ORCHARD_SKIP_METAL"))
    return [...parts.map(({ name }) => name), `Tests of ${metalTests.join(", ")}`].map((name) =>
      leaveOut(name, "ORCHARD_SKIP_METAL=1"),
    );
  let swift: SwiftToolchain | undefined;
  const built = await runPart("Set-up and build", async () => {
    swift = await setUp();
    if (swift) await build(swift);
    return one;
  });
  if (!swift || built.counts.failed > 0) return [built, ...parts.map(({ name }) => leaveOut(name, "the build failed"))];
  const results = [built];
  for (const { name, body } of parts) results.push(await runPart(name, () => body(swift!)));
  return results;
}

function report(results: readonly PartResult[]): void {
  const { passed, failed } = sum(results.map(({ counts }) => counts));
  console.log(describe(results));
  console.log(`${passed} passed, ${failed} failed`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
}
