/**
 * `bun run check:sanitize`: replays the tests' calls of the cpu backend's dylib under sanitizers, with every
 * instruction set of the machine.
 */
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { relative } from "node:path";
import { cpuInfo } from "../../src/backend/cpu/report.ts";
import { tail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { buildCpu, buildPath } from "../cpu/build.ts";
import { Failure } from "../failure.ts";
import { inParallel } from "../parallel.ts";
import { withSpinner } from "../progress.ts";
import { setUpCpu } from "../toolchain/setup.ts";
import { buildReplayer } from "./build.ts";
import { recordedFiles, recordTests } from "./record.ts";
import { commandOf, type Job, type Replayed, replay, type Settings } from "./replay.ts";
import { findInstrumented, type Sanitizer, sanitizers } from "./sanitizers.ts";

/** Records and replays; an argument is a folder of calls to replay instead. */
export async function checkSanitized([folder]: readonly string[]): Promise<void> {
  if (folder !== undefined && !existsSync(folder)) throw new Failure(`There is no folder ${folder}.`);
  await setUpCpu(buildCpu);
  const files = folder ? recordedFiles(folder) : await record();
  const isas = await instructionSets();
  const results: Result[] = [];
  for (const sanitizer of sanitizers)
    results.push(...(await replayUnder(sanitizer, settingsOf(sanitizer, isas), files)));
  const missing = folder ? [] : [...new Set(results.flatMap(({ replayed }) => replayed.notRecorded))];
  const { text, failed } = summarize(results, missing);
  console.log(text);
  if (failed > 0) process.exitCode = 1;
}

async function record(): Promise<string[]> {
  const folder = buildPath("sanitize", "calls");
  await withSpinner("Recording the tests' calls", (progress) => recordTests(folder, progress));
  const files = recordedFiles(folder);
  const bytes = files.reduce((sum, path) => sum + Bun.file(path).size, 0);
  console.log(`${relative(packageRoot, folder)}: ${(bytes / 1e6).toFixed(0)} MB`);
  return files;
}

/** Returns the machine's instruction sets. The dylib is loaded after it is built. */
async function instructionSets(): Promise<readonly string[]> {
  const { cpuLibrary } = await import("../../src/backend/cpu/loader.ts");
  return cpuInfo(cpuLibrary().native).isas;
}

/** Each instruction set with several threads; for data races, also with several concurrent callers. */
export function settingsOf({ name }: Sanitizer, isas: readonly string[]): Settings[] {
  const each = isas.map((isa): Settings => ({ isa, threads: 4, callers: 1, blas: "none" }));
  return name === "thread" ? [...each, { isa: isas.at(-1) ?? "auto", threads: 4, callers: 4, blas: "none" }] : each;
}

export interface Result {
  readonly job: Job;
  readonly replayed: Replayed;
  readonly seconds: number;
}

async function replayUnder(
  sanitizer: Sanitizer,
  settings: readonly Settings[],
  files: readonly string[],
): Promise<Result[]> {
  const instrumented = await findInstrumented(sanitizer);
  const { title, name } = sanitizer;
  const replayer = await withSpinner(`Building the cpu backend with ${title}`, (progress) =>
    buildReplayer(sanitizer, instrumented, progress),
  );
  const jobs = settings.map((each, index): Job => {
    const state = buildPath("sanitize", name, `state-${index}`);
    return { ...replayer, sanitizer, launcher: instrumented.launcher, settings: each, files, state };
  });
  return withSpinner(`Replaying with ${title}`, (progress) => runAll(jobs, progress));
}

/** Each job uses several threads, so that half as many jobs as there are processors run at once, but at least two. */
async function runAll(jobs: readonly Job[], progress: (text: string) => void): Promise<Result[]> {
  const results: Result[] = [];
  const shares = jobs.map(() => 0);
  const show = (index: number, share: number) => {
    shares[index] = share;
    progress(`Replaying: ${((shares.reduce((sum, one) => sum + one, 0) / jobs.length) * 100).toFixed(0)} %`);
  };
  const runJob = async ([index, job]: readonly [number, Job]) => {
    const start = performance.now();
    const replayed = await replay(job, (done, total) => show(index, total > 0 ? done / total : 0));
    results[index] = { job, replayed, seconds: (performance.now() - start) / 1000 };
    show(index, 1);
  };
  await inParallel(jobs.entries(), runJob, Math.max(2, availableParallelism() / 2));
  return results;
}

const wordsOf = (settings: Settings): string =>
  Object.entries(settings)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");

/**
 * Prints the counts, then each finding with the command that repeats it. A finding is a failure, and so is a function
 * without a recorded call.
 */
export function summarize(results: readonly Result[], missing: readonly string[]): { text: string; failed: number } {
  const findings = results.flatMap(describeFindings);
  const gaps = missing.map((name) => `expected the tests to call ${name}, got no record of it`);
  const counts = `${results.length} replays, ${findings.length} findings, ${gaps.length} functions not recorded`;
  const text = [...results.map(describeCounts), ...findings, ...gaps, counts].join("\n");
  return { text, failed: findings.length + gaps.length };
}

function describeCounts({ job: { sanitizer, settings }, replayed, seconds }: Result): string {
  const { calls, tooLarge, findings } = replayed;
  const large = tooLarge > 0 ? `, ${tooLarge} too large to replay` : "";
  const row = `  ${sanitizer.name.padEnd(8)} ${wordsOf(settings)}`;
  return `${row}: ${calls} calls${large}, ${findings.length} findings (${seconds.toFixed(1)} s)`;
}

const describeFindings = ({ job, replayed }: Result): string[] =>
  replayed.findings.map(({ calls, report }) => {
    const again = commandOf(job, Number.parseInt(calls[0] ?? "0", 10)).join(" ");
    return `\nRecord ${calls.join(", ")}, ${wordsOf(job.settings)}:\n${tail(report, 80)}\nagain: ${again}\n`;
  });
