/** Runs test files of the cpu backend on a processor, and counts passed and skipped tests. */
import { mkdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { run, tail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { type Counts, countJUnit, skippedTests } from "../counts.ts";
import { inParallel } from "../parallel.ts";
import { reportFolder } from "../suite/report.ts";
import type { Processor } from "./machine.ts";
import { variable as bunVariable } from "./spawn.ts";

/** Tests of operations, and other tests of the cpu backend's dylib. */
const patterns = [
  "test/ops/*/**/*.test.ts",
  "test/linalg/*.test.ts",
  "test/quant/*.test.ts",
  "test/random/*.test.ts",
  "test/optim/{clip,in_place,muon}.test.ts",
  "test/fixtures/fixtures.test.ts",
  "test/backend/cpu/{bounds,convert,collection.memory,copy,elementwise,matmul,memory}.test.ts",
  "test/backend/cpu/{threads,threads.timing,two_byte_products}.test.ts",
];

/** Tests that are skipped in emulation, by parts of their names, and why. */
export const notEmulated: readonly (readonly [string, string])[] = [
  [
    "a forked child starts its threads again",
    "the compiler makes the test's program for this machine, not for the emulated one",
  ],
  ["threads that share a processor", "the test measures time, of which emulation takes many times as much"],
];

/** The name of a backend's test contains the backend's name. */
function namePattern({ isEmulated }: Processor): string {
  const leftOut = isEmulated ? notEmulated.map(([words]) => `|${words}`).join("") : "";
  return `^(?!.*(?:\\b(?:metal|reference)\\b${leftOut}))`;
}

const [noMetal, noReference] = [
  "there is no Metal on this system",
  "the reference backend is TypeScript, the same on every processor",
];

/** Returns why a test of this name was skipped. The reason of all other skipped tests is that Metal is missing. */
export function reasonOf(name: string): string {
  const inEmulation = notEmulated.find(([words]) => name.includes(words));
  if (inEmulation) return inEmulation[1];
  return /\breference\b/.test(name) && !/\bmetal\b/i.test(name) ? noReference : noMetal;
}

/** Returns the files selected by arguments, which may be folders; all files without arguments. */
export function chooseFiles(words: readonly string[], root: string = packageRoot): string[] {
  const found = patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root })]);
  const files = [...new Set(found)].sort();
  if (words.length === 0) return files;
  return files.filter((file) => words.some((word) => file === word || file.startsWith(`${word.replace(/\/$/, "")}/`)));
}

/** The results of the files on one processor. */
export interface Outcome {
  readonly counts: Counts;
  /** The reason for each skipped test. */
  readonly skipped: readonly string[];
}

const reportsOf = ({ name }: Processor): string => join(reportFolder(), "emulated", name.replaceAll(" ", "-"));

/** Runs each file in a separate process, one per available processor at a time. */
export async function testOn(processor: Processor, files: readonly string[]): Promise<Outcome[]> {
  await mkdir(reportsOf(processor), { recursive: true });
  const outcomes: Outcome[] = [];
  const work = async (file: string) => {
    outcomes.push(await testFile(processor, file));
  };
  await inParallel(files, work, availableParallelism());
  return outcomes;
}

async function testFile(processor: Processor, file: string): Promise<Outcome> {
  const { bun, library, isEmulated, isas } = processor;
  const report = Bun.file(join(reportsOf(processor), `${file.replaceAll("/", ".")}.xml`));
  await report.delete().catch(() => undefined); // missing on the first run
  const options = [
    "--reporter=junit",
    `--reporter-outfile=${report.name}`,
    "--test-name-pattern",
    namePattern(processor),
  ];
  const preload = isEmulated ? ["--preload", "./scripts/arm64/spawn.ts"] : [];
  const { status, output, seconds } = await run([...bun, "test", ...preload, `./${file}`, ...options], {
    cwd: packageRoot,
    environment: {
      ORCHARD_SKIP_METAL: "1",
      ORCHARD_CPU_LIBRARY: library,
      [bunVariable]: JSON.stringify(bun),
      ...(isas ? { ARM64_ISAS: isas.join() } : {}), // expected by test/backend/cpu/two_byte_products.test.ts
    },
  });
  const text = (await report.exists()) ? await report.text() : undefined;
  const counts = countJUnit(text, hasNone(output) ? 0 : status);
  console.log(`  ${file}: ${describeCounts(counts)} (${seconds.toFixed(1)} s)`);
  if (counts.failed > 0) console.log(tail(output.replaceAll(/^\((?:pass|skip)\).*\n/gm, ""), 60));
  return { counts, skipped: skippedTests(text ?? "").map(reasonOf) };
}

/** Whether the pattern skips all tests of a file, which Bun reports as a failure. */
const hasNone = (output: string): boolean => /^error: regex .* matched 0 tests\./m.test(output);

const describeCounts = ({ passed, failed, skipped }: Counts): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
