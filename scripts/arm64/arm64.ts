/**
 * `bun run test:arm64`: runs the tests of operations on arm64: on this machine if it is arm64, otherwise on processors
 * that QEMU emulates, about twenty times slower.
 */
import { type Counts, sum } from "../counts.ts";
import { Failure } from "../failure.ts";
import { emulatedProcessors, findProcessors, type Processor } from "./machine.ts";
import { chooseFiles, type Outcome, testOn } from "./tests.ts";

/** `--processor NAME` selects an emulated processor; other arguments are test files, or folders of them. */
export async function testArm64(words: readonly string[]): Promise<void> {
  const { processor, paths } = parseWords(words);
  const files = chooseFiles(paths);
  if (files.length === 0) throw new Failure(`There is no test of arm64's code in ${paths.join(", ")}.`);
  const processors = (await findProcessors()).filter(({ name }) => processor === undefined || name === processor);
  if (processors.length === 0) throw new Failure("--processor requires an emulated machine: this one is arm64");
  await testAll(processors, files);
}

/** Runs files on each processor, prints a summary, and sets the exit code. */
export async function testAll(processors: readonly Processor[], files: readonly string[]): Promise<void> {
  const rows: Row[] = [];
  for (const one of processors) {
    const chosen = filesFor(one, files);
    if (chosen.length === 0) continue;
    console.log(`\n── ${one.name}`);
    rows.push({ processor: one, outcomes: await testOn(one, chosen) });
  }
  console.log(summarize(rows));
  const { passed, failed } = countsOf(rows);
  console.log(`${passed} passed, ${failed} failed`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
}

/** Parses the command's arguments. @throws {Failure} for an unknown processor */
export function parseWords(words: readonly string[]): { processor?: string; paths: readonly string[] } {
  const at = words.indexOf("--processor");
  if (at < 0) return { paths: words };
  const processor = words[at + 1];
  const names = Object.keys(emulatedProcessors);
  if (processor === undefined || !names.includes(processor))
    throw new Failure(`expected --processor to be one of ${names.join(", ")}, got ${processor ?? "nothing"}`);
  return { processor, paths: words.toSpliced(at, 2) };
}

/** Returns the files to run on a processor. */
export const filesFor = ({ folders }: Pick<Processor, "folders">, files: readonly string[]): string[] =>
  files.filter((file) => folders === undefined || folders.some((folder) => file.startsWith(`${folder}/`)));

/** The results of the files on a processor. */
export interface Row {
  readonly processor: Pick<Processor, "name">;
  readonly outcomes: readonly Outcome[];
}

const countsOf = (rows: readonly Row[]): Counts =>
  sum(rows.flatMap(({ outcomes }) => outcomes.map((outcome) => outcome.counts)));

/** Prints a line for each processor, the skipped tests with their reasons, and the failures. */
export function summarize(rows: readonly Row[]): string {
  const processors = rows.map((row) => {
    const { passed, failed } = countsOf([row]);
    return `  ${row.processor.name.padEnd(14)} ${passed} passed, ${failed} failed`;
  });
  const reasons = rows.flatMap(({ outcomes }) => outcomes.flatMap(({ skipped }) => skipped));
  const skipped = [...Map.groupBy(reasons, (reason) => reason)]
    .sort(([left], [right]) => left.localeCompare(right))
    .map(([reason, all]) => `  ${all.length} skipped: ${reason}`);
  const failures = countsOf(rows).failures.map((failure) => `  ${failure}`);
  return ["", ...processors, ...skipped, ...(failures.length > 0 ? ["\nWhat failed", ...failures] : [])].join("\n");
}
