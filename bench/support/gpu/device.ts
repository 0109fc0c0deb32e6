/**
 * Measures the rows of rows.ts on the GPU that ORCHARD_METAL_DEVICE selects, and PyTorch on the same GPU: the
 * milliseconds of a call when many are issued, medians of seven rounds after calls that are not counted. Words select
 * groups of rows.
 */
import { metalContext, setBackend, setStrict, Tensor } from "../../../src/index.ts";
import { table } from "../measure.ts";
import { PyTorch } from "../pytorch.ts";
import { allRows, groups, type Row } from "./rows.ts";

const ROUNDS = 7;
/** Calls before the first round: JavaScript's compilers need some thousand calls of an operation until it is fast. */
const WARM_SECONDS = 0.4;
const SECONDS = 0.02;
const MOST_CALLS = 1000;

setBackend("metal");
setStrict(true);
const context = metalContext();
context.configure("storage", "private");
console.log(`${context.deviceInfo().name}: milliseconds`);

function free(result: unknown): void {
  if (result instanceof Tensor) result.dispose();
  else if (Array.isArray(result)) result.forEach(free);
}

function secondsOf(run: () => unknown, count: number): number {
  context.wait();
  const start = performance.now();
  for (let call = 0; call < count; call++) free(run());
  context.wait();
  return (performance.now() - start) / 1000 / count;
}

function millisecondsOf(run: () => unknown): number {
  for (const start = performance.now(); performance.now() - start < 1000 * WARM_SECONDS; ) secondsOf(run, 20);
  const count = Math.max(1, Math.min(MOST_CALLS, Math.floor(SECONDS / secondsOf(run, 5))));
  const times = Array.from({ length: ROUNDS }, () => secondsOf(run, count));
  return 1000 * times.sort((a, b) => a - b)[ROUNDS >> 1];
}

const other = PyTorch.start("gpu/peer.py", 1);
console.log((await other?.hear()) ?? "PyTorch is absent");

const shown = (milliseconds: number): string => (Number.isNaN(milliseconds) ? "" : milliseconds.toPrecision(3));

async function measured({ name, setup, expression, variants }: Row): Promise<string[]> {
  const times = Object.entries(variants()).map(([column, run]) => [column, millisecondsOf(run)] as const);
  const theirs =
    other && expression !== undefined ? Number(await other.ask(JSON.stringify({ setup, expression }))) : Number.NaN;
  const cells = times.map(([column, time]) => `${column} ${shown(time)} (${shown(time / theirs)} x)`);
  return [name, ...cells, shown(theirs)];
}

const words = process.argv.slice(2);
for (const group of groups) {
  if (words.length > 0 && !words.includes(group)) continue;
  const rows: string[][] = [];
  for (const row of allRows()) if (row.group === group) rows.push(await measured(row));
  const variants = Math.max(...rows.map((row) => row.length - 2));
  const head = [
    group,
    ...Array.from({ length: variants }, (_, at) => (at === 0 ? "times of PyTorch's" : "")),
    "PyTorch",
  ];
  console.log(table(head, rows));
}

// Launches that are waited for, one at a time.
if (words.length === 0 || words.includes("dispatches")) {
  const [row] = allRows();
  const [run] = Object.values(row.variants());
  const times = Array.from({ length: 500 }, () => secondsOf(run, 1)).sort((a, b) => a - b);
  console.log(`${row.name}, waited for: ${(1000 * times[250]).toPrecision(3)}`);
}
await other?.close();
