import { mkdir } from "node:fs/promises";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { type Counts, onePassed, sum } from "../counts.ts";
import { buildCpu } from "../cpu/build.ts";
import { swiftFormatGap } from "../format/swift.ts";
import { checkPackages } from "../release/check.ts";
import { build } from "../swift/command.ts";
import { buildTests } from "../swift/package.ts";
import { setUp } from "../toolchain/setup.ts";
import { checkClangFormat, checkKernels, checkLines, checkStyle, checkSwiftFormat, checkTypes } from "./checks.ts";
import { describeGaps, forgetGaps, readGaps } from "./gaps.ts";
import { checkLayers } from "./layers.ts";
import { describe, describeFailures, leaveOut, type PartResult, runPart } from "./part.ts";
import { reportFolder } from "./report.ts";
import { bunTests, metalTests, swiftTests } from "./tests.ts";

/** A part that needs Swift. */
interface MetalPart {
  readonly name: string;
  readonly body: (swift: SwiftToolchain) => Promise<Counts>;
}

const kernels: MetalPart = { name: "Kernels, strictly typed", body: checkKernels };
const swiftSuite: MetalPart = { name: "Swift tests", body: swiftTests };
const swiftWarnings: MetalPart = {
  name: "Swift without warnings",
  body: async (swift) => {
    await buildTests(swift);
    return onePassed;
  },
};

/** Every part of the suite; words choose files and tests of `bun test`, and then nothing else runs. */
export async function testEverything(words: readonly string[]): Promise<void> {
  await mkdir(reportFolder(), { recursive: true });
  await forgetGaps();
  const typescript = () => runPart("TypeScript tests", () => bunTests(words));
  if (words.length > 0) return report([await typescript()], await readGaps());
  const swift = await setUp(); // a machine that can have no Swift is told at once, in one line
  const before = [...(await sourceChecks(swift)), ...(await metalParts(swift, [swiftSuite, kernels]))];
  const results = [...before, ...(await builtParts()), await typescript()];
  report(results, await readGaps());
}

/** What needs no test to run. */
export async function checkEverything(): Promise<void> {
  const swift = await setUp();
  const before = [...(await sourceChecks(swift)), ...(await metalParts(swift, [swiftWarnings, kernels]))];
  report([...before, ...(await builtParts())]);
}

const sourceChecks = async (swift: SwiftToolchain | undefined): Promise<PartResult[]> => [
  await runPart("Types", checkTypes),
  await runPart("Format and lint", checkStyle),
  await runPart("Layers of src", checkLayers),
  await runPart("Format of C++ and MSL", checkClangFormat),
  await swiftFormatPart(swift),
  await runPart("Length of lines", checkLines),
];

async function swiftFormatPart(swift: SwiftToolchain | undefined): Promise<PartResult> {
  const gap = swift ? await swiftFormatGap(swift) : "ORCHARD_SKIP_METAL=1";
  return swift && !gap
    ? runPart("Format of Swift", () => checkSwiftFormat(swift))
    : leaveOut("Format of Swift", gap ?? "");
}

/** Warnings are errors. It comes after the set-up of Swift, which brings a compiler where the machine has none. */
const cpuPart = (): Promise<PartResult> =>
  runPart("The cpu backend, built", async () => {
    await buildCpu();
    return onePassed;
  });

/** The packages hold the dylib of the cpu backend. */
async function builtParts(): Promise<PartResult[]> {
  const built = await cpuPart();
  const name = "Packages";
  return [built, built.counts.failed > 0 ? leaveOut(name, "the build failed") : await runPart(name, checkPackages)];
}

/** Builds, and then runs the parts; where there is no Swift or the build fails, they are told as not run. */
async function metalParts(swift: SwiftToolchain | undefined, parts: readonly MetalPart[]): Promise<PartResult[]> {
  const names = parts.map(({ name }) => name);
  if (!swift)
    return [...names, `Tests of ${metalTests.join(", ")}`].map((name) => leaveOut(name, "ORCHARD_SKIP_METAL=1"));
  const built = await runPart("Build", async () => {
    await build(swift);
    return onePassed;
  });
  if (built.counts.failed > 0) return [built, ...names.map((name) => leaveOut(name, "the build failed"))];
  const results = [built];
  for (const { name, body } of parts) results.push(await runPart(name, () => body(swift)));
  return results;
}

function report(results: readonly PartResult[], gaps = ""): void {
  const { passed, failed } = sum(results.map(({ counts }) => counts));
  console.log(describe(results) + describeGaps(gaps) + describeFailures(results));
  console.log(`${passed} passed, ${failed} failed`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
}
