/**
 * Runs test files on an NVIDIA GPU: each in a separate process with a limit of time, several at once. Files and tests
 * of gpu_exceptions.ts are left out, with a reason each.
 *
 *     bun scripts/suite/gpu.ts [--results FILE] [--seconds N] [--jobs N] [--limit N] [--sanitize TOOL] [PATH…]
 *
 * `--sanitize memcheck` (or racecheck, synccheck, initcheck) runs the files under NVIDIA's compute-sanitizer; its
 * findings are failures.
 *
 * After `--seconds` no file starts, and the running ones end. A later call with the same file of results runs the files
 * that it lacks, so that machines which are lent for minutes can run the suite in parts.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { packageRoot } from "../../src/core/paths.ts";
import { countJUnit, failedTests } from "../counts.ts";
import { variables, whyExcepted, whyNotRun } from "./gpu_exceptions.ts";
import { measuredTimings } from "./order.ts";

export interface GpuOutcome {
  readonly seconds: number;
  readonly passed: number;
  readonly skipped: number;
  /** Failed tests, each with the first line of its message. */
  readonly failed: readonly string[];
  /** Reasons by test, or by `""` for the whole file. */
  readonly leftOut: Readonly<Record<string, string>>;
}

/** The status of a process that was ended by SIGKILL, as at the limit of time. */
const KILLED = 128 + 9;

export type GpuOutcomes = Record<string, GpuOutcome>;

/** Returns the outcome of a file from Bun's report, which is undefined if Bun was ended before it wrote one. */
export function outcomeOf(file: string, report: string | undefined, status: number, seconds: number): GpuOutcome {
  const { passed, skipped, failed: count } = countJUnit(report, status);
  const failures = failedTests(report ?? "");
  const leftOut: Record<string, string> = {};
  const failed: string[] = [];
  for (const { name, message } of failures) {
    const reason = whyExcepted(file, name);
    if (reason) leftOut[name] = reason;
    else failed.push(`${name}: ${message}`);
  }
  if (failures.length === 0 && count > 0)
    failed.push(status === KILLED ? "the file did not end in time" : `the file ended with status ${status}`);
  return { seconds, passed, skipped, failed, leftOut };
}

/** Returns the findings in a log of compute-sanitizer, each kind with how often it occurred. */
export function findingsOf(log: string): string[] {
  const found = new Map<string, number>();
  for (const [, text] of log.matchAll(
    /^=+ (?:Error: |Warning: )?((?:Invalid|Race|Barrier|Uninitialized|Misaligned)\b.*)$/gm,
  ))
    found.set(text, (found.get(text) ?? 0) + 1);
  const total = Number(/ERROR SUMMARY: (\d+)|RACECHECK SUMMARY: (\d+)/.exec(log)?.slice(1).find(Boolean) ?? 0);
  if (total > 0 && found.size === 0) found.set("errors of another kind", total);
  return [...found].map(([text, count]) => `compute-sanitizer: ${text} (${count} times)`);
}

/** Returns the sums and the failures as text. */
export function describeOutcomes(outcomes: Readonly<GpuOutcomes>, missing: readonly string[]): string {
  const all = Object.values(outcomes);
  const sum = (count: (outcome: GpuOutcome) => number) => all.reduce((total, outcome) => total + count(outcome), 0);
  const reasons = new Map<string, number>();
  for (const { leftOut } of all)
    for (const reason of Object.values(leftOut)) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  return [
    ...Object.entries(outcomes).flatMap(([file, { failed }]) => failed.map((failure) => `failed: ${file}: ${failure}`)),
    ...[...reasons].map(([reason, count]) => `left out (${count} files or tests): ${reason}`),
    `${all.length} files: ${sum(({ passed }) => passed)} tests passed, ${sum(({ failed }) => failed.length)} failed, ` +
      `${sum(({ leftOut }) => Object.keys(leftOut).length)} left out; ${missing.length} files were not run`,
  ].join("\n");
}

/** Returns undefined if the run's end, and not the file's limit, ended it. */
async function runFile(
  file: string,
  { left, limit, tool }: { readonly left: number; readonly limit: number; readonly tool: string | undefined },
  folder: string,
): Promise<GpuOutcome | undefined> {
  const report = join(folder, `${file.replaceAll("/", "_")}.xml`);
  const log = `${report}.log`;
  const start = performance.now();
  const words = [process.execPath, "test", "--reporter=junit", `--reporter-outfile=${report}`, `./${file}`];
  const sanitizer = tool ? ["compute-sanitizer", "--tool", tool, "--show-backtrace", "no", "--log-file", log] : [];
  const child = Bun.spawn([...sanitizer, ...words], {
    cwd: packageRoot,
    env: { ORCHARD_METAL_DEVICE: "nvidia", ...process.env, ...variables[file] },
    stdio: ["ignore", "ignore", "ignore"],
    timeout: Math.ceil(Math.min(left, limit) * 1000),
    killSignal: "SIGKILL",
  });
  const status = await child.exited;
  const text = existsSync(report) ? readFileSync(report, "utf8") : undefined;
  if (text === undefined && child.signalCode && left < limit) return undefined;
  const outcome = outcomeOf(file, text, status, (performance.now() - start) / 1000);
  const findings = existsSync(log) ? findingsOf(readFileSync(log, "utf8")) : [];
  return { ...outcome, failed: [...outcome.failed, ...findings] };
}

/** The longest files first, so that the last ones to end are short. */
function filesOf(paths: readonly string[]): string[] {
  const times = measuredTimings();
  const all = [...new Bun.Glob("test/**/*.test.ts").scanSync(packageRoot)];
  const chosen = all.filter((file) => paths.length === 0 || paths.some((path) => file.startsWith(path)));
  return chosen.sort((a, b) => times(b) - times(a) || (a < b ? -1 : 1));
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      results: { type: "string", default: "build/gpu.json" },
      seconds: { type: "string", default: "470" },
      jobs: { type: "string", default: `${availableParallelism()}` },
      limit: { type: "string", default: "170" },
      sanitize: { type: "string" },
    },
    allowPositionals: true,
  });
  const [seconds, jobs, limit] = [values.seconds, values.jobs, values.limit].map(Number);
  const end = performance.now() + seconds * 1000;
  const known = existsSync(values.results) ? (JSON.parse(readFileSync(values.results, "utf8")) as GpuOutcomes) : {};
  const paths = positionals.map((path) => relative(packageRoot, join(process.cwd(), path)));
  const waiting = filesOf(paths).filter((file) => !(file in known));
  const folder = join(tmpdir(), `orchard-gpu-suite-${process.pid}`);
  mkdirSync(folder);
  const work = async (): Promise<void> => {
    for (let file = waiting.shift(); file; file = waiting.shift()) {
      const left = (end - performance.now()) / 1000;
      if (left <= 0) return void waiting.push(file);
      const reason = whyNotRun(file);
      const none = { seconds: 0, passed: 0, skipped: 0, failed: [] };
      const outcome = reason
        ? { ...none, leftOut: { "": reason } }
        : await runFile(file, { left, limit, tool: values.sanitize }, folder);
      if (!outcome) return void waiting.push(file);
      known[file] = outcome;
      writeFileSync(values.results, JSON.stringify(known, null, 1)); // after each file, since the call may be ended
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  rmSync(folder, { recursive: true });
  console.log(describeOutcomes(known, waiting));
}

if (import.meta.main) await main();
