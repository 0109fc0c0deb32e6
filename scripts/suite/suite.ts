import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { environmentFlag } from "../../src/debug/environment.ts";
import { packageRoot } from "../../src/debug/paths.ts";
import type { SwiftToolchain } from "../../src/debug/toolchain.ts";
import { sum } from "../counts.ts";
import { build } from "../swift/command.ts";
import { setUp } from "../toolchain/setup.ts";
import { checkKernels, checkStyle, checkTypes } from "./checks.ts";
import { describe, leaveOut, type PartResult, runPart } from "./part.ts";
import { bunTests, swiftTests } from "./tests.ts";

const skipReason = "ORCHARD_SKIP_METAL=1";

/** Runs every part; words after the command choose the files and tests of `bun test`, and then nothing else runs. */
export async function testEverything(words: readonly string[]): Promise<void> {
  await mkdir(join(packageRoot, "report"), { recursive: true });
  const results = words.length > 0 ? [await runPart("TypeScript tests", () => bunTests(words))] : await allParts();
  const { passed, failed } = sum(results.map(({ counts }) => counts));
  console.log(describe(results));
  console.log(`${passed} passed, ${failed} failed`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
}

async function allParts(): Promise<PartResult[]> {
  const results = [await runPart("Types", checkTypes), await runPart("Format and lint", checkStyle)];
  results.push(...(environmentFlag("ORCHARD_SKIP_METAL") ? withoutMetal() : await metalParts()));
  results.push(await runPart("TypeScript tests", () => bunTests([])));
  return results;
}

const withoutMetal = () => ["Swift tests", "Kernels, strictly typed"].map((name) => leaveOut(name, skipReason));

async function metalParts(): Promise<PartResult[]> {
  let swift: SwiftToolchain | undefined;
  const built = await runPart("Set-up and build", async () => {
    swift = await setUp();
    await build(swift!);
    return { passed: 1, failed: 0, skipped: 0 };
  });
  if (!swift || built.counts.failed > 0) return [built];
  const found = swift;
  return [built, await runPart("Swift tests", () => swiftTests(found)), await runPart("Kernels, strictly typed", checkKernels)];
}
