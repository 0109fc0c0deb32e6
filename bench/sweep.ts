// Compares the cpu backend with PyTorch over drawn cases: every operation and layer, forward and with backward,
// optimizers and small models, with random shapes, layouts and dtypes. The tables give PyTorch's time divided by
// Orchard's: above 1, Orchard is faster. `bun run bench sweep --seed 7 --cases 300 --threads 1,2 matmul` draws products
// only; `bun bench/sweep.ts --help` lists all options.

import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { drawSweep } from "./support/sweep/picture.ts";
import { byFamily, byThreads, changes, worst } from "./support/sweep/report.ts";
import type { Line, Row, Run } from "./support/sweep/run.ts";

function whole(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < least)
      throw new InvalidArgumentError(`expected a whole number from ${least} on.`);
    return value;
  };
}
const threadsOf = (text: string): number[] => text.split(",").map(whole(1));

interface Options {
  readonly seed: number;
  readonly cases: number;
  readonly only?: number;
  readonly threads: readonly number[];
  readonly worst: number;
  readonly json?: string;
  readonly picture?: string;
  readonly since?: string;
  readonly small: boolean;
  readonly processor: boolean;
}

const command = new Command("bun run bench sweep")
  .argument("[words...]", "draws only operations and families whose names contain one of these words")
  .option("--seed <number>", "draws other cases", whole(0), 1)
  .option("--cases <number>", "how many cases are drawn", whole(1), 300)
  .option("--only <number>", "measures only the case with this number", whole(0))
  .option("--threads <list>", "numbers of threads", threadsOf, [cpuInfo(cpuLibrary().native).threads])
  .option("--worst <number>", "how many of the slowest cases are listed", whole(0), 40)
  .option("--json <file>", "writes the measured cases there")
  .option("--picture <file>", "draws ratios against sizes there, as an SVG")
  .option("--small", "draws only operands of a few elements", false)
  .option("--processor", "compares the fastest processor times, for a busy machine; with one thread", false)
  .option("--since <file>", "compares with the cases that `--json` wrote")
  .parse();
const { seed, cases, only, threads, worst: listed, json, picture, since, small, processor } = command.opts<Options>();

const run: Run = {
  seed,
  cases: only === undefined ? [0, cases] : [only, only + 1],
  words: command.args,
  small,
  processor,
};
const rows: Row[] = [];
const problems = { faults: [] as string[], missing: [] as string[] };

function take(line: Line): void {
  if ("row" in line) rows.push(line.row);
  else if ("fault" in line) problems.faults.push(`${line.number}: ${line.fault}`);
  else if ("missing" in line) problems.missing.push(`${line.number}: ${line.missing}`);
  else console.log(line.note);
}

/** A backend reads the number of threads when it is loaded, so each number is measured in a separate process. */
async function measureOn(count: number): Promise<void> {
  const program = join(import.meta.dir, "support/sweep/run.ts");
  const child = Bun.spawn([process.execPath, program, JSON.stringify(run)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ORCHARD_CPU_THREADS: `${count}` },
  });
  let rest = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(JSON.parse(line) as Line);
  }
  if ((await child.exited) !== 0) throw new Error(`bench sweep: measuring on ${count} threads ended early`);
}

const flags = [...(small ? ["--small"] : []), ...(processor ? ["--processor"] : [])];
const repeat = ({ number, threads: count }: Row): string =>
  ["bun run bench sweep", "--seed", seed, "--only", number, "--threads", count, ...flags, ...command.args].join(" ");

function list(title: string, lines: readonly string[]): void {
  if (lines.length > 0) console.log(`\n${title}\n  ${[...new Set(lines)].join("\n  ")}`);
}

for (const count of threads) await measureOn(count);
if (rows.length > 0) {
  console.log(`\nPyTorch's time over ours\n\n${byThreads(rows)}`);
  console.log(`\nBy family\n\n${byFamily(rows)}`);
  console.log(`\nThe slowest\n\n${worst(rows, listed, repeat)}`);
}
list("Not measured, since PyTorch has no such call", problems.missing);
list("Faults: errors, or results that differ from PyTorch's", problems.faults);
if (since) console.log(`\nChanged since ${since}\n\n${changes(rows, (await Bun.file(since).json()) as Row[], 20)}`);
if (json) await Bun.write(json, JSON.stringify(rows, null, 1));
if (picture) await Bun.write(picture, drawSweep(rows));
process.exitCode = problems.faults.length > 0 ? 1 : 0;
