/** Runs recorded calls under a sanitizer, in a new process after each report, which ends the process. */
import { readFileSync } from "node:fs";
import { type RunResult, run } from "../../src/cli/run.ts";
import { Failure } from "../failure.ts";
import type { Replayer } from "./build.ts";
import { environmentOn, type Sanitizer } from "./sanitizers.ts";

/** How calls are replayed: the arguments of `native/replay/replay.cpp`. */
export interface Settings {
  readonly isa: string;
  readonly threads: number;
  readonly callers: number;
  /** A BLAS library, or `none`. */
  readonly blas: string;
}

export interface Job extends Replayer {
  readonly sanitizer: Sanitizer;
  readonly launcher: readonly string[];
  readonly settings: Settings;
  readonly files: readonly string[];
  /** The file to which the program writes its progress. */
  readonly state: string;
}

/** A sanitizer's report, or a call whose result differs from the recorded one. */
export interface Finding {
  /** The number of calls, and the names of their functions. */
  readonly calls: readonly string[];
  readonly report: string;
}

export interface Replayed {
  readonly calls: number;
  /** Calls that were too large to record. */
  readonly tooLarge: number;
  /** Functions of the dylib without a recorded call. */
  readonly notRecorded: readonly string[];
  readonly findings: readonly Finding[];
}

/** Maximum number of reports, after which the remaining calls are not replayed. */
const mostFindings = 10;

export async function replay(job: Job, progress: (done: number, total: number) => void = () => {}): Promise<Replayed> {
  const findings: Finding[] = [];
  let [calls, tooLarge, first] = [0, 0, 0];
  let notRecorded: string[] = [];
  while (findings.length < mostFindings) {
    const result = await runOnce(job, first, progress);
    const state = readState(job.state);
    notRecorded = [...result.output.matchAll(/^not recorded: (.*)$/gm)].map(([, name]) => name);
    const count = (what: string) => Number(new RegExp(`^${what}: (\\d+)$`, "m").exec(result.output)?.[1] ?? Number.NaN);
    calls += state.done;
    findings.push(...otherStatuses(result.output));
    if (result.status === 0 || (result.status === 1 && !Number.isNaN(count("replayed")))) {
      tooLarge += count("too large");
      break;
    }
    if (result.status === 2 || state.running.length === 0)
      throw new Failure(`The replay ended with ${result.status}:\n${result.output.trim()}`);
    findings.push({
      calls: state.running.map(({ record, name }) => `${record} (${name})`),
      report: result.output.replace(/^(?:record \d+ \(|not recorded: ).*\n/gm, "").trim(),
    });
    first = Math.max(...state.running.map(({ record }) => record)) + 1;
  }
  return { calls, tooLarge, notRecorded, findings };
}

/** A line of the output for a call whose status differs from the recorded one. */
const otherStatus = /^record (\d+) \((.*?)\): (.*)\n/gm;

/** Returns the first few calls whose status differs, and the number of others. */
function otherStatuses(output: string): Finding[] {
  const all = [...output.matchAll(otherStatus)].map(([, number, name, report]) => ({
    calls: [`${number} (${name})`],
    report: report,
  }));
  const [shown, more] = [all.slice(0, mostFindings), all.slice(mostFindings)];
  return more.length === 0 ? shown : [...shown, { ...more[0], report: `${more.length} more gave another status` }];
}

/** Returns the command that replays from a record on. */
export function commandOf({ library, program, launcher, settings, state, files }: Job, first: number): string[] {
  const words = Object.entries({ library, state, ...settings, first }).map(([name, value]) => `${name}=${value}`);
  return [...launcher, program, ...words, ...files];
}

async function runOnce(job: Job, first: number, progress: (done: number, total: number) => void): Promise<RunResult> {
  await Bun.write(job.state, new Uint8Array(64));
  const timer = setInterval(() => {
    const { done, total } = readState(job.state);
    progress(first + done, total);
  }, 500);
  try {
    return await run(commandOf(job, first), { environment: environmentOn(job.sanitizer, job.settings.isa) });
  } finally {
    clearInterval(timer);
  }
}

interface State {
  readonly total: number;
  readonly done: number;
  readonly running: readonly { readonly record: number; readonly name: string }[];
}

/** The file that `native/replay/state.h` describes. */
function readState(path: string): State {
  const bytes = readFileSync(path);
  const number = (at: number) => Number(bytes.readBigInt64LE(at));
  const slots = Array.from({ length: Math.floor(bytes.length / 64) - 1 }, (_, index) => 64 * (index + 1));
  const running = slots
    .map((at) => ({ record: number(at), name: bytes.toString("utf8", at + 8, at + 64).replace(/\0.*$/s, "") }))
    .filter(({ record, name }) => record >= 0 && name !== "");
  return { total: number(0), done: number(8), running };
}
