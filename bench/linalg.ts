// Compares linear algebra on the cpu backend with PyTorch on the same number of threads, and with direct calls of
// LAPACK's routines, in alternating order; and counts the memory traffic of the batched kernels on the software Metal
// device. It uses the PyTorch of `bun run fixtures` or of `python3`; without it, the table has only Orchard's times.
// Results are compared before they are timed. Arguments select rows: `bun bench/linalg.ts qr`.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { metalContext } from "../src/backend/metal/context.ts";
import { withBackend, withStrict } from "../src/backend/policy.ts";
import { whyUnavailable } from "../src/backend/registry.ts";
import { abs, add, eye, linalg, manualSeed, matmul, mul, randn, type Tensor, transpose, triu } from "../src/index.ts";
import { direct, useThreads } from "./support/lapack.ts";
import { measureTraffic } from "./support/linalg_traffic.ts";
import { table } from "./support/measure.ts";
import { PyTorch } from "./support/pytorch.ts";

/**
 * A public function: its operands, its results, and the part of the results that does not depend on signs and
 * permutations.
 */
interface Subject {
  readonly operands: (shape: readonly number[]) => Tensor[];
  readonly call: (...operands: Tensor[]) => Tensor[];
  readonly compared: (results: readonly Tensor[]) => Tensor;
  /** Whether only one triangle of the matrix is read. */
  readonly readsTriangle?: true;
}

const first = ([result]: readonly Tensor[]): Tensor => result;
const transposed = (x: Tensor): Tensor => transpose(x, -1, -2);
const identity = (shape: readonly number[]): Tensor => eye(shape.at(-1)!);

/** A well-conditioned matrix. */
const regular = (shape: readonly number[]): Tensor =>
  add(randn(shape), mul(identity(shape), 4 * Math.sqrt(shape.at(-1)!))) as Tensor;
function symmetric(shape: readonly number[]): Tensor {
  const x = randn(shape);
  return add(x, transposed(x)) as Tensor;
}
function definite(shape: readonly number[]): Tensor {
  const x = randn(shape);
  return add(mul(matmul(x, transposed(x)), 1 / shape.at(-1)!), identity(shape)) as Tensor;
}
const rightSides = (shape: readonly number[], count: number): Tensor => randn([...shape.slice(0, -1), count]);

const subjects = {
  cholesky: {
    operands: (shape) => [definite(shape)],
    call: (a) => [linalg.cholesky(a)],
    compared: first,
    readsTriangle: true,
  },
  luFactor: {
    operands: (shape) => [randn(shape)],
    call: (a) => Object.values(linalg.luFactor(a)),
    compared: ([lu]) => triu(lu),
  },
  qr: {
    operands: (shape) => [randn(shape)],
    call: (a) => Object.values(linalg.qr(a)),
    compared: ([, r]) => abs(r),
  },
  eigh: {
    operands: (shape) => [symmetric(shape)],
    call: (a) => Object.values(linalg.eigh(a)),
    compared: first,
    readsTriangle: true,
  },
  svd: {
    operands: (shape) => [randn(shape)],
    call: (a) => Object.values(linalg.svd(a, { fullMatrices: false })),
    compared: ([, s]) => s,
  },
  solve: {
    operands: (shape) => [regular(shape), rightSides(shape, 1)],
    call: (a, b) => [linalg.solve(a, b)],
    compared: first,
  },
  inv: { operands: (shape) => [regular(shape)], call: (a) => [linalg.inv(a)], compared: first },
  lstsq: {
    operands: (shape) => [randn(shape), rightSides(shape, 1)],
    call: (a, b) => Object.values(linalg.lstsq(a, b)),
    compared: first,
  },
} satisfies Record<string, Subject>;
type Name = keyof typeof subjects;

interface Case {
  readonly name: Name;
  readonly shape: readonly number[];
}

const batched: readonly Case[] = [
  { name: "qr", shape: [500, 16, 16] },
  { name: "cholesky", shape: [100, 16, 16] },
  { name: "solve", shape: [1000, 8, 8] },
  { name: "inv", shape: [1000, 8, 8] },
  { name: "eigh", shape: [100, 32, 32] },
  { name: "svd", shape: [100, 32, 32] },
  { name: "luFactor", shape: [64, 64, 64] },
];
const tall: readonly Case[] = (["qr", "svd", "lstsq"] as const).map((name) => ({ name, shape: [10000, 64] }));
const singles: readonly Case[] = [256, 512, 1024, 2048].flatMap((size) =>
  (["cholesky", "luFactor", "qr", "eigh", "svd"] as const).map((name) => ({ name, shape: [size, size] })),
);

const titleOf = ({ name, shape }: Case): string => `${name} ${shape.join("x")}`;
const wanted = process.argv.slice(2).join(" ");
const isWanted = (each: Case): boolean => titleOf(each).includes(wanted);
const folder = mkdtempSync(join(tmpdir(), "orchard-linalg-"));

/** Runs a case and returns the milliseconds per call. */
type Run = () => number | Promise<number>;

function ours({ name }: Case, operands: readonly Tensor[], calls: number): Run {
  const { call } = subjects[name] as Subject;
  return () => {
    const started = performance.now();
    for (let done = 0; done < calls; done++) for (const result of call(...operands)) result.dispose();
    return (performance.now() - started) / calls;
  };
}

/**
 * Calls LAPACK directly, with the same number of threads and calls. It overwrites the matrix, which Orchard and PyTorch
 * keep, so the time includes a copy into existing memory.
 */
function lapacks({ name, shape }: Case, [a]: readonly Tensor[], calls: number): Run | undefined {
  const given = Float32Array.from(a.dataSync() as Float32Array);
  const copy = given.slice();
  const run = direct(name, shape[0], copy);
  if (!run) return undefined;
  return () => {
    useThreads(threads);
    const started = performance.now();
    for (let done = 0; done < calls; done++) {
      copy.set(given);
      run();
    }
    const taken = (performance.now() - started) / calls;
    useThreads(1);
    return taken;
  };
}

/** Prepares a case in PyTorch, and compares its result with Orchard's. */
async function pytorchs(other: PyTorch, each: Case, operands: readonly Tensor[], calls: number): Promise<Run> {
  const files = await Promise.all(
    operands.map(async (operand, at) => {
      const path = join(folder, `operand${at}`);
      await Bun.write(path, Float32Array.from(operand.dataSync() as Float32Array));
      return { path, shape: operand.shape };
    }),
  );
  const compared = join(folder, "compared");
  await other.ask(JSON.stringify({ function: each.name, operands: files, compared, calls }));
  compare(each, operands, new Float32Array(await Bun.file(compared).arrayBuffer()));
  return async () => Number(await other.ask("run"));
}

/** @throws if a result differs by more than LAPACK's 30 roundings per row */
function compare(each: Case, operands: readonly Tensor[], theirs: Float32Array): void {
  const { call, compared } = subjects[each.name] as Subject;
  const mine = compared(call(...operands)).dataSync() as Float32Array;
  if (mine.length !== theirs.length) throw new Error(`${titleOf(each)}: ${mine.length} and ${theirs.length} elements`);
  const largest = theirs.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const off = mine.reduce((most, value, at) => Math.max(most, Math.abs(value - theirs[at])), 0);
  const allowed = 30 * Math.max(...each.shape.slice(-2)) * 2 ** -23 * largest;
  if (!(off <= allowed)) throw new Error(`${titleOf(each)}: results differ by ${off}; at most ${allowed} is allowed`);
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

/** PyTorch's threads spin while they wait for work; they stop within this many milliseconds. */
const settling = 30;

/**
 * Returns the median time of each call, in alternating order after a warm-up round, and the medians of the ratios to
 * the first within a round.
 */
async function measure(runs: readonly Run[], rounds: number) {
  const samples: number[][] = [];
  for (let round = -1; round < rounds; round++) {
    const taken: number[] = [];
    for (const run of runs) {
      await Bun.sleep(settling);
      taken.push(await run());
    }
    if (round >= 0) samples.push(taken);
  }
  return {
    medians: runs.map((_, at) => median(samples.map((taken) => taken[at]))),
    ratios: runs.map((_, at) => median(samples.map((taken) => taken[at] / taken[0]))),
  };
}

/**
 * Returns how many calls take about ten milliseconds, after enough calls for JavaScript's compiler to have optimized
 * them.
 */
function callsOf(each: Case, operands: readonly Tensor[]): { calls: number; rounds: number } {
  const once = ours(each, operands, 1) as () => number;
  let spent = once();
  let taken = spent;
  for (let warm = 0; warm < 300 && spent < 400; warm++) {
    taken = once();
    spent += taken;
  }
  return { calls: Math.max(1, Math.round(10 / taken)), rounds: taken > 500 ? 3 : 9 };
}

const shown = (value: number | undefined, digits: number): string =>
  value === undefined || Number.isNaN(value) ? "" : value.toFixed(digits);

async function rowOf(each: Case, other: PyTorch | undefined): Promise<string[]> {
  manualSeed(1);
  const operands = (subjects[each.name] as Subject).operands(each.shape);
  const { calls, rounds } = callsOf(each, operands);
  const straight =
    each.shape[0] === each.shape[1] && each.shape.length === 2 ? lapacks(each, operands, calls) : undefined;
  const theirs = other && (await pytorchs(other, each, operands, calls));
  const runs = [ours(each, operands, calls), theirs, straight].filter((run) => run !== undefined);
  const { medians, ratios } = await measure(runs, rounds);
  const [atTheirs, atStraight] = [theirs ? 1 : -1, straight ? runs.length - 1 : -1];
  const cells = [medians[0], medians[atTheirs], ratios[atTheirs], medians[atStraight], ratios[atStraight]];
  return [titleOf(each), ...cells.map((value, at) => shown(value, at === 2 || at === 4 ? 2 : 3))];
}

async function times(title: string, aim: string, cases: readonly Case[], other: PyTorch | undefined): Promise<void> {
  const rows: string[][] = [];
  for (const each of cases.filter(isWanted))
    rows.push(await withStrict(true, () => withBackend("cpu", () => rowOf(each, other))));
  if (rows.length === 0) return;
  console.log(`\n${title}: milliseconds of a call, medians; ${aim}`);
  console.log(table(["", "ours", "PyTorch", "PyTorch / ours", "LAPACK", "LAPACK / ours"], rows));
}

function traffic(): void {
  const reason = whyUnavailable("metal") ?? (metalContext().isSoftware ? undefined : "only the software device counts");
  if (reason) {
    console.log(`\nDevice bytes are not counted: ${reason}`);
    return;
  }
  const rows = batched.filter(isWanted).map((each) => {
    const { operands, call, readsTriangle } = subjects[each.name] as Subject;
    const few = [8, ...each.shape.slice(1)];
    const [one, many] = [[1, ...each.shape.slice(1)], few].map((shape) =>
      measureTraffic(call, operands(shape), readsTriangle),
    );
    const ratio = many.bytes / many.leastBytes;
    return [
      `${each.name} ${few.join("x")}`,
      many.bytes,
      many.leastBytes,
      shown(ratio, 2),
      one.dispatches,
      many.dispatches,
    ];
  });
  if (rows.length === 0) return;
  console.log("\nBatched kernels on the software Metal device: the aim is a ratio of at most 1.3");
  const head = ["", "bytes", "least", "ratio", "dispatches of a batch of 1", "of 8"];
  console.log(table(head, rows));
}

const { threads, lapack } = cpuInfo(cpuLibrary().native);
console.log(`Linear algebra on the cpu backend, float32, ${threads} threads, LAPACK: ${lapack ?? "none"}`);
const other = PyTorch.start("linalg.py", threads);
console.log(
  other ? await other.hear() : "PyTorch is not there: `bun run fixtures` brings it, or a python3 that has it",
);
try {
  await times("Batches of small matrices", "the aim is 3 times PyTorch's speed", batched, other);
  await times("Tall matrices", "the aim is PyTorch's speed", tall, other);
  await times("One matrix", "the aim is 0.95 of LAPACK's speed", singles, other);
  traffic();
} finally {
  await other?.close();
  rmSync(folder, { recursive: true });
}
