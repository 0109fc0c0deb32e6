/**
 * Measures the cases of `cases.ts` in alternating order with other libraries on one number of threads, and prints a
 * line of JSON per case. Results are compared before anything is timed. Arguments: peers, separated by commas; the
 * folder of ONNX Runtime, or an empty string; parts of the names of cases.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { quantAlone } from "../../../scripts/fixtures/environment.ts";
import { cpuLibrary } from "../../../src/backend/cpu/loader.ts";
import { cpuInfo } from "../../../src/backend/cpu/report.ts";
import { manualSeed, randint, randn, setBackend, setStrict, type Tensor, toDType } from "../../../src/index.ts";
import { LineProcess, PyTorch } from "../pytorch.ts";
import { type Case, cases, type Operand } from "./cases.ts";
import { type Call, ours, type Weights } from "./ours.ts";

/** A row: milliseconds per call by library, and the median over rounds of each time divided by Orchard's. */
export interface Row {
  readonly name: string;
  readonly threads: number;
  readonly milliseconds: Readonly<Record<string, number>>;
  readonly ratios: Readonly<Record<string, number>>;
  readonly bytes?: number;
  readonly operations?: number;
}

/** The outcome of a case: its row, or why it failed. */
export type Line = Row | { readonly note: string };

const [peers = "", onnxFolder = "", ...words] = process.argv.slice(2);
/** The other library's threads may spin while they wait for work; they stop within this many milliseconds. */
const SETTLING = 15;

const print = (line: Line): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[(values.length - 1) >> 1];

function draw({ shape, dtype = "float32", below }: Operand): Tensor {
  if (below !== undefined) return randint(0, below, [...shape]);
  const x = randn([...shape]);
  return dtype === "float32" ? x : toDType(x, dtype);
}

/** Writes files of float32 numbers, which represent bfloat16, float16 and small integers exactly. */
async function write(folder: string, named: Iterable<readonly [string, Tensor]>) {
  const files: { name: string; path: string; shape: readonly number[]; dtype: string }[] = [];
  for (const [name, x] of named) {
    const path = join(folder, `${files.length}-${name}`);
    await Bun.write(path, toDType(x.detach(), "float32").dataSync() as Float32Array<ArrayBuffer>);
    files.push({ name, path, shape: x.shape, dtype: x.dtype });
  }
  return files;
}

/** The largest difference that a dtype's rounding explains, relative to the largest number. */
const tolerances: Readonly<Record<string, number>> = { float32: 1e-4, float16: 2 ** -9, bfloat16: 2 ** -6 };

/** @throws if results differ */
function compare({ name }: Case, output: Tensor, theirs: Float32Array): void {
  const mine = toDType(output, "float32").dataSync() as Float32Array;
  if (mine.length !== theirs.length) throw new Error(`${name}: ${mine.length} and ${theirs.length} elements`);
  let [largest, off] = [0, 0];
  for (const [at, value] of theirs.entries()) {
    largest = Math.max(largest, Math.abs(value));
    off = Math.max(off, Math.abs(value - mine[at]));
  }
  const allowed = (tolerances[output.dtype] ?? 0) * largest;
  if (!(off <= allowed)) throw new Error(`${name}: results differ by ${off}, expected at most ${allowed}`);
}

/**
 * Returns how many calls take about ten milliseconds, after enough calls for JavaScript's compiler to have optimized
 * them.
 */
function callsOf(call: Call): { calls: number; rounds: number } {
  let [spent, taken] = [0, 0];
  for (let warm = 0; warm < 2000 && (warm < 3 || spent < 300); warm++) {
    const started = performance.now();
    call().dispose();
    taken = performance.now() - started;
    spent += taken;
  }
  return { calls: Math.max(1, Math.round(10 / taken)), rounds: taken > 500 ? 3 : 9 };
}

function timed(call: Call, calls: number): number {
  const started = performance.now();
  for (let done = 0; done < calls; done++) call().dispose();
  return (performance.now() - started) / calls;
}

/** Whether a peer has the case. It is then prepared there, and its result has been compared with ours. */
async function prepared(
  other: LineProcess,
  each: Case,
  files: unknown,
  output: Tensor,
  result: string,
): Promise<boolean> {
  const { operation, settings = {} } = each;
  const answer = await other.ask(JSON.stringify({ operation, settings, ...(files as object), result }));
  if (answer === "missing") return false;
  compare(each, output, new Float32Array(await Bun.file(result).arrayBuffer()));
  return true;
}

async function measure(each: Case, others: ReadonlyMap<string, LineProcess>, folder: string, threads: number) {
  manualSeed(1);
  const operands = each.operands.map(draw);
  const files = await write(
    folder,
    operands.map((x, at) => [`operand${at}`, x] as const),
  );
  const { call, weights = new Map() as Weights } = ours[each.operation](operands, each.settings ?? {});
  const given = { operands: files, weights: await write(folder, weights) };
  const output = call();
  const present: [string, PyTorch][] = [];
  for (const [peer, other] of others)
    if (await prepared(other, each, given, output, join(folder, "result"))) present.push([peer, other]);
  output.dispose();
  const { calls, rounds } = callsOf(call);
  const samples: Record<string, number[]> = { ours: [], ...Object.fromEntries(present.map(([peer]) => [peer, []])) };
  for (let round = -1; round < rounds; round++) {
    for (const name of Object.keys(samples)) {
      await Bun.sleep(SETTLING);
      const taken = name === "ours" ? timed(call, calls) : Number(await others.get(name)!.ask(`run ${calls}`));
      if (round >= 0) samples[name].push(taken);
    }
  }
  for (const x of operands) x.dispose();
  print(rowOf(each, threads, samples));
}

function rowOf({ name, bytes, operations }: Case, threads: number, samples: Record<string, number[]>): Row {
  const of = (value: (times: readonly number[]) => number) =>
    Object.fromEntries(Object.entries(samples).map(([peer, times]) => [peer, value(times)]));
  return {
    name,
    threads,
    milliseconds: of(median),
    ratios: of((times) => median(times.map((time, at) => time / samples["ours"][at]))),
    ...(bytes === undefined ? {} : { bytes }),
    ...(operations === undefined ? {} : { operations }),
  };
}

const requirements: Readonly<Record<string, string | undefined>> = { pytorch: undefined, mlx: quantAlone };

function startPeer(peer: string, threads: number): LineProcess | undefined {
  if (peer !== "onnxruntime")
    return PyTorch.start(`peers/${peer}.py`, threads, {
      module: peer === "mlx" ? "mlx.core" : "torch",
      requirements: requirements[peer],
    });
  if (!existsSync(join(onnxFolder, "node_modules", "onnxruntime-node"))) return undefined;
  return new LineProcess(["node", join(import.meta.dir, "onnxruntime.mjs"), resolve(onnxFolder), `${threads}`]);
}

async function startPeers(threads: number): Promise<Map<string, LineProcess>> {
  const others = new Map<string, LineProcess>();
  for (const peer of peers.split(",").filter((name) => name !== "")) {
    const other = startPeer(peer, threads);
    if (other) others.set(peer, other);
    print({ note: other ? await other.hear() : `${peer} is not there` });
  }
  return others;
}

setBackend("cpu");
setStrict(true);
const { threads, isa } = cpuInfo(cpuLibrary().native);
print({ note: `${threads} threads, ${isa}` });
const others = await startPeers(threads);
const folder = mkdtempSync(join(tmpdir(), "orchard-peers-"));
try {
  for (const each of cases.filter(({ name }) => name.includes(words.join(" ")))) {
    try {
      await measure(each, others, folder, threads);
    } catch (cause) {
      print({ note: cause instanceof Error ? cause.message : String(cause) });
      process.exitCode = 1;
    }
  }
} finally {
  for (const other of others.values()) await other.close();
  rmSync(folder, { recursive: true });
}
