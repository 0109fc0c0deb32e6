/** `bun run test`, `check` and `check:quick`: the parts, and which of them run at the same time. */
import { mkdir } from "node:fs/promises";
import type { SwiftToolchain } from "../../src/cli/toolchain.ts";
import { type Counts, type FileTime, onePassed, sum } from "../counts.ts";
import { type BuildKind, buildCpu } from "../cpu/build.ts";
import { checkDocs } from "../docs/check.ts";
import { Failure } from "../failure.ts";
import { swiftFormatGap } from "../format/swift.ts";
import { checkPrecedent } from "../precedent/precedent.ts";
import { checkPackages } from "../release/check.ts";
import { build } from "../swift/command.ts";
import { buildTests } from "../swift/package.ts";
import { setUp, setUpCpu } from "../toolchain/setup.ts";
import { changedFiles, reachedTests } from "./changed.ts";
import { checkClangFormat, checkLines, checkStyle, checkSwiftFormat, checkTypes } from "./checks.ts";
import { dylibsToBuild } from "./dylibs.ts";
import { describeGaps, forgetGaps, readGaps } from "./gaps.ts";
import { checkLayers } from "./layers.ts";
import { readOptions, type SuiteOptions } from "./options.ts";
import { Outcomes } from "./outcomes.ts";
import {
  describe,
  describeFailures,
  describeKept,
  describeSlowest,
  leaveOut,
  type PartResult,
  runKept,
  runPart,
} from "./part.ts";
import { reportFolder } from "./report.ts";
import { swiftTests } from "./swift_tests.ts";
import { filesNamed, metalTests, type Selection, testChosen, testClasses, testOrdinary } from "./typescript.ts";

/** A part that needs Swift, and its dylib. */
interface MetalPart {
  readonly name: string;
  readonly body: (swift: SwiftToolchain) => Promise<Counts>;
}

/** Imports them after the dylib is built. */
const kernels = (isFull = false): MetalPart => ({
  name: "Kernels, strictly typed",
  body: async () => (await import("./kernels.ts")).checkKernels({ isFull }),
});
const swiftSuite: MetalPart = { name: "Swift tests", body: swiftTests };
const swiftWarnings: MetalPart = {
  name: "Swift without warnings",
  body: async (swift) => {
    await buildTests(swift);
    return onePassed;
  },
};

/** Runs the suite, or the share that the arguments select. */
export async function testEverything(words: readonly string[]): Promise<void> {
  const options = readOptions(words);
  await mkdir(reportFolder(), { recursive: true });
  await forgetGaps();
  if (options.files.length > 0) return testNamed(options);
  if (options.onlyChanged) return testChanged(options);
  return testAll(options);
}

/** Runs chosen files. Missing dylibs are built; those that are there are used, so that a test starts at once. */
async function testNamed(options: SuiteOptions): Promise<void> {
  const built: PartResult[] = [];
  for (const name of dylibsToBuild(filesNamed(options.files))) {
    if (name === "cpu") await setUpCpu();
    built.push(await (name === "cpu" ? cpuPart() : metalPart(await setUp(), { withTests: false })));
  }
  report([...built, await testChosen(options, options.bunWords)], [], await readGaps());
}

/** Runs everything, or one share: the other parts run with the first share of the TypeScript tests. */
async function testAll(options: SuiteOptions): Promise<void> {
  const { isFull, shard, seed, isDrawn } = options;
  const selection: Selection = { isFull, shard, seed, isDrawn };
  const outcomes = await outcomesFor(options);
  const isFirst = options.shard === undefined || options.shard.index === 1;
  const swift = await setUp(); // reports unsupported machines immediately, in one line
  const checks = isFirst ? sourceChecks(swift) : Promise.resolve([]);
  const [cpu, metal] = await Promise.all([cpuPart(isThorough(options) ? "all" : "tests"), metalPart(swift)]);
  const beside = isFirst ? besideTests(swift, cpu, metal, options.isFull, outcomes) : Promise.resolve([]);
  const ordinary = await testOrdinary(selection, outcomes);
  const before = [...(await checks), metal, ...(await beside), cpu, ...ordinary.results];
  const classes = await testClasses(selection); // nothing else runs at this point
  const gaps = await readGaps();
  report([...before, ...classes.results], [...ordinary.times, ...classes.times], outcomes?.allGaps(gaps) ?? gaps);
  outcomes?.save();
}

/** Full runs, shares and continuous integration build everything as for users, and run everything that they count. */
const isThorough = ({ isFull, shard }: SuiteOptions): boolean =>
  isFull || shard !== undefined || Boolean(process.env["CI"]);

const outcomesFor = async (options: SuiteOptions): Promise<Outcomes | undefined> =>
  isThorough(options) ? undefined : Outcomes.open({ forget: options.isAgain });

/** Parts that only need CPU time: they run in sequence beside the TypeScript tests. */
async function besideTests(
  swift: SwiftToolchain | undefined,
  cpu: PartResult,
  metal: PartResult,
  isFull: boolean,
  outcomes: Outcomes | undefined,
): Promise<PartResult[]> {
  const documentation = await runPart("Documentation, built", () => checkDocs({ isFull }));
  return [
    ...(await metalParts(swift, metal, [swiftSuite, kernels(isFull)], outcomes)),
    await packagesPart(cpu, outcomes),
    documentation,
  ];
}

/** Runs the tests affected by the working tree's changes, after building changed parts. */
async function testChanged(options: SuiteOptions): Promise<void> {
  const changed = await changedFiles();
  const files = reachedTests(changed);
  console.log(`${changed.length} changed files reach ${files.length} test files.`);
  if (files.length === 0) return;
  const results: PartResult[] = [];
  if (changed.some((file) => /^(?:native|kernels\/formulas)\/|\/primitive\.ts$/.test(file)))
    results.push(await cpuPart());
  if (changed.some((file) => file.startsWith("swift/"))) results.push(await metalPart(await setUp()));
  const { isFull, seed, isDrawn } = options;
  const selection: Selection = { files, isFull, shard: undefined, seed, isDrawn };
  const ordinary = await testOrdinary(selection);
  const classes = await testClasses(selection);
  const times = [...ordinary.times, ...classes.times];
  report([...results, ...ordinary.results, ...classes.results], times, await readGaps());
}

/**
 * Runs all checks, or those whose names contain one of the words. @throws {Failure} for a word that matches no check
 */
export async function checkEverything(words: readonly string[]): Promise<void> {
  const isChosen = chooseFrom(
    [...sourceNames, cpuName, metalName, swiftWarnings.name, kernels().name, packages],
    words,
  );
  const swift = await setUp();
  const metalChecks = [swiftWarnings, kernels()].filter(({ name }) => isChosen(name));
  const needsCpu = isChosen(cpuName) || isChosen(packages);
  const needsMetal = isChosen(metalName) || metalChecks.length > 0;
  const checks = sourceChecks(swift, isChosen);
  const [cpu, metal] = await Promise.all([needsCpu && cpuPart("all"), needsMetal && metalPart(swift)]);
  const beside = metal ? await metalParts(swift, metal, metalChecks) : [];
  const packed = cpu && isChosen(packages) ? [await packagesPart(cpu)] : [];
  report([...(await checks), metal, ...beside, cpu, ...packed].filter((part) => part !== false));
}

/** Returns whether a name contains one of the words; without words, all names match. */
function chooseFrom(names: readonly string[], words: readonly string[]): (name: string) => boolean {
  const contains = (name: string, word: string) => name.toLowerCase().includes(word.toLowerCase());
  const unknown = words.find((word) => !names.some((name) => contains(name, word)));
  if (unknown !== undefined)
    throw new Failure(`check: no check has "${unknown}" in its name; the checks are: ${names.join("; ")}.`);
  return (name) => words.length === 0 || words.some((word) => contains(name, word));
}

/** Runs the checks that take seconds, for use before a commit: formats only of changed files. */
export async function checkQuickly(): Promise<void> {
  const changed = await changedFiles();
  const parts = [
    runPart("Types", checkTypes),
    runPart("Format and lint", checkStyle),
    runPart("Layers of src", checkLayers),
    runPart("Format of C++ and MSL", () => checkClangFormat(changed)),
    runPart("Length of lines", checkLines),
  ];
  report(await Promise.all(parts));
}

const swiftFormat = "Format of Swift";

/** Checks of the sources without a build, with Swift or without. */
const sourceParts: Readonly<Record<string, (swift: SwiftToolchain | undefined) => Promise<PartResult>>> = {
  Types: () => runPart("Types", checkTypes),
  "Format and lint": () => runPart("Format and lint", checkStyle),
  "Layers of src": () => runPart("Layers of src", checkLayers),
  "Format of C++ and MSL": () => runPart("Format of C++ and MSL", checkClangFormat),
  [swiftFormat]: swiftFormatPart,
  "Length of lines": () => runPart("Length of lines", checkLines),
  Precedents: () => runPart("Precedents", checkPrecedent),
};
const sourceNames = Object.keys(sourceParts);

const sourceChecks = (
  swift: SwiftToolchain | undefined,
  isChosen: (name: string) => boolean = () => true,
): Promise<PartResult[]> => Promise.all(sourceNames.filter(isChosen).map((name) => sourceParts[name](swift)));

async function swiftFormatPart(swift: SwiftToolchain | undefined): Promise<PartResult> {
  const gap = swift ? await swiftFormatGap(swift) : "ORCHARD_SKIP_METAL=1";
  return swift && !gap ? runPart(swiftFormat, () => checkSwiftFormat(swift)) : leaveOut(swiftFormat, gap ?? "");
}

const cpuName = "The cpu backend, built";

/** Warnings are errors. It runs after the set-up of Swift, which installs a compiler if the machine has none. */
const cpuPart = (which: BuildKind = "tests"): Promise<PartResult> =>
  runPart(cpuName, async () => {
    await buildCpu(which);
    return onePassed;
  });

const metalName = "The metal backend, built";

/** Also builds the Swift tests and their modules, with which TypeScript tests compile programs. */
async function metalPart(swift: SwiftToolchain | undefined, { withTests = true } = {}): Promise<PartResult> {
  if (!swift) return leaveOut(metalName, "ORCHARD_SKIP_METAL=1");
  return runPart(metalName, async () => {
    await build(swift);
    if (withTests) await buildTests(swift);
    return onePassed;
  });
}

const packages = "Packages";

/** The packages contain the cpu backend's dylib. */
async function packagesPart(cpu: PartResult, outcomes?: Outcomes): Promise<PartResult> {
  return cpu.counts.failed > 0 ? leaveOut(packages, "the build failed") : runKept(packages, outcomes, checkPackages);
}

/** Runs the parts; without Swift or after a failed build, they are reported as not run. */
async function metalParts(
  swift: SwiftToolchain | undefined,
  built: PartResult,
  parts: readonly MetalPart[],
  outcomes?: Outcomes,
): Promise<PartResult[]> {
  const names = parts.map(({ name }) => name);
  if (!swift)
    return [...names, `Tests of ${metalTests.join(", ")}`].map((name) => leaveOut(name, "ORCHARD_SKIP_METAL=1"));
  if (built.counts.failed > 0) return names.map((name) => leaveOut(name, "the build failed"));
  const results: PartResult[] = [];
  for (const { name, body } of parts) results.push(await runKept(name, outcomes, () => body(swift)));
  return results;
}

function report(results: readonly PartResult[], times: readonly FileTime[] = [], gaps = ""): void {
  const { passed, failed } = sum(results.map(({ counts }) => counts));
  console.log(
    describe(results) + describeSlowest(times) + describeGaps(gaps) + describeKept(results) + describeFailures(results),
  );
  console.log(`${passed} passed, ${failed} failed`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
}
