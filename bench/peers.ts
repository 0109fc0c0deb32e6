// Compares the cpu backend with PyTorch, MLX's CPU build and ONNX Runtime: single operations, products, attention and
// training steps, in alternating order on the same number of threads. Results are compared before they are timed. The
// table has the other library's time divided by Orchard's: above 1, Orchard is faster. `bun run bench peers --threads
// 1,2,4 matmul` selects rows, and `bun bench/peers.ts --help` shows all options.

import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { table } from "./support/measure.ts";
import { drawRatios } from "./support/peers/picture.ts";
import type { Line, Row } from "./support/peers/run.ts";

const PEERS = ["pytorch", "mlx", "onnxruntime"] as const;

function threadsOf(text: string): number[] {
  const counts = text.split(",").map(Number);
  if (counts.some((count) => !Number.isInteger(count) || count < 1))
    throw new InvalidArgumentError("expected whole numbers from 1 on, separated by commas.");
  return counts;
}

interface Options {
  readonly threads: readonly number[];
  readonly peers: string;
  readonly onnxruntime: string;
  readonly json?: string;
  readonly picture?: string;
}

const command = new Command("bun run bench peers")
  .argument("[words...]", "measures the rows whose names contain these words")
  .option("--threads <list>", "numbers of threads", threadsOf, [cpuInfo(cpuLibrary().native).threads])
  .option("--peers <list>", "libraries to compare with", PEERS.join(","))
  .option("--onnxruntime <folder>", "the folder whose node_modules has onnxruntime-node", ".")
  .option("--json <file>", "writes the rows there")
  .option("--picture <file>", "draws the ratios there, as an SVG")
  .parse();
const { threads, peers, onnxruntime, json, picture } = command.opts<Options>();

/** A backend reads the number of threads when it is loaded, so each number gets a separate process. */
async function measureOn(count: number): Promise<Row[]> {
  const program = join(import.meta.dir, "support/peers/run.ts");
  const child = Bun.spawn([process.execPath, program, peers, onnxruntime, ...command.args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ORCHARD_CPU_THREADS: `${count}` },
  });
  const rows: Row[] = [];
  let rest = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.map((text) => JSON.parse(text) as Line)) {
      if ("note" in line) console.log(line.note);
      else rows.push(line);
    }
  }
  console.log(tableOf(rows));
  if ((await child.exited) !== 0) process.exitCode = 1; // the failed row was reported
  return rows;
}

const shown = (value: number | undefined, digits: number): string => value?.toFixed(digits) ?? "";

/** Returns the bandwidth or compute rate of a call, from the minimum of its work. */
function speedOf({ bytes, operations, milliseconds: { ours } }: Row): string {
  if (bytes !== undefined) return `${(bytes / ours / 1e6).toFixed(1)} GB/s`;
  return operations === undefined ? "" : `${(operations / ours / 1e6).toFixed(0)} GFLOP/s`;
}

function tableOf(rows: readonly Row[]): string {
  const others = [...new Set(rows.flatMap(({ ratios }) => Object.keys(ratios)))].filter((name) => name !== "ours");
  const head = ["", "ours, ms", "", ...others.flatMap((peer) => [`${peer}, ms`, "over ours"])];
  const cells = rows.map((row) => [
    row.name,
    shown(row.milliseconds["ours"], 4),
    speedOf(row),
    ...others.flatMap((peer) => [shown(row.milliseconds[peer], 4), shown(row.ratios[peer], 2)]),
  ]);
  return table(head, cells);
}

const rows: Row[] = [];
for (const count of threads) rows.push(...(await measureOn(count)));
if (json) await Bun.write(json, `${JSON.stringify(rows, null, 2)}\n`);
if (picture) await Bun.write(picture, drawRatios(rows));
