/**
 * Measures drawn cases in alternation with PyTorch on a given number of threads, and prints a line of JSON for each.
 * Results are compared before anything is timed.
 *
 * The argument is a {@link Run} as JSON.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { manualSeed, setBackend, setStrict, type Tensor, toDType } from "../../../src/index.ts";
import { PyTorch } from "../pytorch.ts";
import { baseShape, type Case, describeCase, type Operand } from "./case.ts";
import { type DrawOptions, drawCase, largestOf } from "./cases.ts";
import { drawBase, view } from "./operands.ts";
import { type Prepared, prepare } from "./ours.ts";

/** A measured case: milliseconds of a call, and the median over rounds of PyTorch's time divided by Orchard's. */
export interface Row {
  readonly number: number;
  readonly family: string;
  readonly operation: string;
  readonly name: string;
  readonly threads: number;
  readonly elements: number;
  readonly ours: number;
  readonly theirs: number;
  readonly ratio: number;
}

/**
 * The outcome of a case. `fault`: an error in Orchard, or results that differ; `missing`: PyTorch may lack the
 * operation.
 */
export type Line =
  | { readonly row: Row }
  | { readonly note: string }
  | { readonly fault: string; readonly number: number }
  | { readonly missing: string; readonly number: number };

/** What is drawn and how it is measured. */
export interface Run extends DrawOptions {
  readonly seed: number;
  /** The number of the first case, and the number after the last one. */
  readonly cases: readonly [first: number, end: number];
  /**
   * Whether the fastest processor time of the rounds counts, which other programs disturb little, instead of elapsed
   * time.
   */
  readonly processor: boolean;
}

const run = JSON.parse(process.argv[2]) as Run;
const { seed, cases: [first, last], processor } = run; // biome-ignore format: one line

const ROUNDS = 7;
/** The minimum duration of a sample, in milliseconds, if one call is shorter. */
const SAMPLE = 6;
/**
 * Calls before the first sample, because JavaScript's compiler needs time; the first cases are measured twice, since it
 * also compiles what all calls share.
 */
const WARM = { calls: 500, milliseconds: 80, cases: 3 } as const;
/**
 * Idle threads may spin before they sleep, and would take processors from the other library. PyTorch's execute up to
 * 300,000 pause instructions. A process has settled once it used less than a share of a processor for this long.
 */
const SETTLING = { milliseconds: 8, share: 0.15, mostRounds: 25 } as const;

/** The request to PyTorch's side. */
const command = processor ? "processor" : "run";

const print = (line: Line): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[(values.length - 1) >> 1];

interface File {
  readonly name?: string;
  readonly path: string;
  /** The dtype of the elements in the file. */
  readonly stored: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly base: readonly number[];
  readonly layout: Operand["layout"];
}

let files = 0;
async function write(folder: string, x: Tensor, given: Partial<File> = {}): Promise<File> {
  const path = join(folder, `${files++ % 512}`);
  const stored = x.dtype === "float16" || x.dtype === "bfloat16" ? "float32" : x.dtype; // exact in float32
  await Bun.write(path, toDType(x.detach(), stored).dataSync() as Float32Array<ArrayBuffer>);
  return { path, stored, dtype: x.dtype, shape: x.shape, base: x.shape, layout: { kind: "contiguous" }, ...given };
}

/** The largest difference that a dtype's rounding explains, relative to the largest number. */
const tolerances: Readonly<Record<string, number>> = {
  float32: 1e-5,
  float64: 1e-13,
  float16: 2 ** -9,
  bfloat16: 2 ** -6,
};

/** @throws if results differ */
function compare(each: Case, output: Tensor, theirs: Float64Array): void {
  const mine = toDType(output, "float64").dataSync() as Float64Array;
  if (mine.length !== theirs.length) throw new Error(`${mine.length} elements here, ${theirs.length} in PyTorch`);
  const allowed = (tolerances[output.dtype] ?? 0) * each.slack;
  let [largest, off] = [0, 0];
  for (const [at, value] of theirs.entries()) {
    const computed = mine[at];
    if (Object.is(computed, value) || computed === value) continue;
    if (Number.isNaN(computed) !== Number.isNaN(value))
      throw new Error(`element ${at}: ${computed} here, ${value} in PyTorch`);
    if (Number.isNaN(computed)) continue;
    largest = Math.max(largest, Math.abs(value));
    off = Math.max(off, Math.abs(value - computed));
  }
  if (off > allowed * Math.max(1, largest))
    throw new Error(`results differ by ${off}; their largest absolute value is ${largest}`);
}

function dispose(results: readonly Tensor[]): void {
  for (const result of results) result.dispose();
}

function callsOf(call: Prepared): number {
  let [spent, taken] = [0, 0];
  for (let warm = 0; warm < WARM.calls && (warm < 2 || spent < WARM.milliseconds); warm++) {
    const started = clock();
    dispose(call());
    taken = clock() - started;
    spent += taken;
  }
  return Math.max(1, Math.round(SAMPLE / Math.max(taken, 1e-3))); // processor time has a resolution of a microsecond
}

/** Milliseconds of processor time or elapsed time. */
function clock(): number {
  if (!processor) return performance.now();
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function timed(call: Prepared, calls: number): number {
  const started = clock();
  for (let done = 0; done < calls; done++) dispose(call());
  return (clock() - started) / calls;
}

async function settle(): Promise<void> {
  for (let round = 0; round < SETTLING.mostRounds; round++) {
    const before = process.cpuUsage();
    await Bun.sleep(SETTLING.milliseconds);
    const { user, system } = process.cpuUsage(before);
    if (user + system < SETTLING.share * SETTLING.milliseconds * 1000) return;
  }
}

/** Returns the time of a call in both libraries, and PyTorch's divided by Orchard's. */
function summary(ours: readonly number[], theirs: readonly number[]): Pick<Row, "ours" | "theirs" | "ratio"> {
  if (!processor) {
    const ratio = median(theirs.map((time, at) => time / ours[at]));
    return { ours: median(ours), theirs: median(theirs), ratio };
  }
  const fastest = { ours: Math.min(...ours), theirs: Math.min(...theirs) };
  return { ...fastest, ratio: fastest.theirs / fastest.ours };
}

async function measure(number: number, other: PyTorch, folder: string, threads: number): Promise<Line> {
  const each = drawCase(seed, number, run);
  manualSeed(number + 1);
  const bases = each.operands.map((operand) => drawBase(operand, baseShape(operand)));
  const given = await Promise.all(
    bases.map((base, at) => write(folder, base, { shape: each.operands[at].shape, layout: each.operands[at].layout })),
  );
  const operands = bases.map((base, at) => view(base, each.operands[at]).detach());
  const { call, weights } = prepare(each, operands);
  const named = await Promise.all([...weights].map(([name, x]) => write(folder, x, { name })));
  const result = join(folder, "result");
  const answer = await other.ask(JSON.stringify({ ...each, operands: given, weights: named, result }));
  const outputs = call();
  if (answer !== "ready") return { missing: `${describeCase(each)}: ${answer.slice(8)}`, number };
  if (each.compared !== null)
    compare(each, outputs[each.compared], new Float64Array(await Bun.file(result).arrayBuffer()));
  dispose(outputs);
  const calls = callsOf(call);
  await other.ask(`${command} ${Math.min(calls, 100)}`);
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let round = 0; round < (calls === 1 ? 3 : ROUNDS); round++) {
    if (threads > 1) await settle();
    ours.push(timed(call, calls));
    if (threads > 1) await settle();
    theirs.push(Number(await other.ask(`${command} ${calls}`)));
  }
  dispose([...operands, ...bases, ...weights.values()]);
  const { family, ours: { name: operation } } = each; // biome-ignore format: one line
  const [name, elements] = [describeCase(each), largestOf(each)];
  return { row: { number, family, operation, name, threads, elements, ...summary(ours, theirs) } };
}

setBackend("cpu");
setStrict(true);
const { threads, isa } = cpuInfo(cpuLibrary().native);
const other = PyTorch.start("sweep/pytorch.py", threads);
if (other === undefined) throw new Error("bench sweep: there is no PyTorch; `bun run fixtures` installs it");
print({ note: `${threads} threads, ${isa}; ${await other.hear()}` });
const folder = mkdtempSync(join(tmpdir(), "orchard-sweep-"));
const lineOf = async (number: number): Promise<Line> => {
  try {
    return await measure(number, other, folder, threads);
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    return { fault: `${describeCase(drawCase(seed, number, run))}: ${problem}`, number };
  }
};
try {
  const warm = Array.from({ length: Math.min(WARM.cases, last - first) }, (_, at) => first + at);
  for (const number of warm) await lineOf(number);
  for (let number = first; number < last; number++) print(await lineOf(number));
} finally {
  await other.close();
  rmSync(folder, { recursive: true });
}
