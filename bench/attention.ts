// Compares `flashAttention` on the cpu backend with PyTorch's `scaled_dot_product_attention` on the same number of
// threads, in alternating calls: forward only, and forward with backward. It uses the Python environment of `bun run
// fixtures`; without it, the table has only Orchard's times.

import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { withBackend, withStrict } from "../src/backend/policy.ts";
import { flashAttention } from "../src/ops/attention/flash_attention.ts";
import { grad } from "../src/ops/gradient/backward.ts";
import { randn } from "../src/ops/random/randn.ts";
import { unflatten } from "../src/ops/view/flatten.ts";
import { transpose } from "../src/ops/view/permute.ts";
import { split } from "../src/ops/view/split.ts";
import type { Tensor } from "../src/tensor/tensor.ts";
import { table } from "./support/measure.ts";
import { PyTorch } from "./support/pytorch.ts";

/** A row of the table. */
interface Case {
  readonly heads: number;
  /** If given, q, k and v are views of the rows of one projection, as in layers. */
  readonly batch?: number;
  /** The number of keys, and of queries unless `queries` is given. */
  readonly rows: number;
  readonly queries?: number;
  readonly dim: number;
  readonly causal: boolean;
  readonly backward: boolean;
  /** Calls per sample, for calls that are too short to measure one at a time. Default 1. */
  readonly calls?: number;
}

const lengths = [512, 1024, 2048, 4096];
const passes: readonly Case[] = [false, true].flatMap((backward) =>
  [false, true].flatMap((causal) =>
    [64, 128].flatMap((dim) => lengths.map((rows) => ({ heads: 8, rows, dim, causal, backward }))),
  ),
);
/** Decoding: one query, many keys. */
const decoding: readonly Case[] = (
  [
    [8, 4096],
    [32, 4096],
    [8, 32768],
  ] as const
).map(([heads, rows]) => ({ heads, rows, queries: 1, dim: 64, causal: false, backward: false }));
/** A layer of a small GPT. */
const training: readonly Case[] = [false, true].map((backward) => ({
  batch: 12,
  heads: 4,
  rows: 64,
  dim: 32,
  causal: true,
  backward,
  calls: 50,
}));
const cases = [...passes, ...training, ...decoding];

/** Forward has two matrix products and backward five; causal masks halve them. */
const operationsOf = ({ batch = 1, heads, rows, queries = rows, dim, causal, backward }: Case): number =>
  batch * heads * queries * rows * dim * (backward ? 14 : 4) * (causal ? 0.5 : 1);

/** Short calls get more rounds, since their times vary more. */
const roundsOf = (each: Case): number => Math.min(25, Math.max(5, Math.round(4e10 / operationsOf(each))));

/** PyTorch's threads may spin while they wait for work; they stop within this many milliseconds. */
const settling = 15;

/** Warm-up calls for cases with few rows, until JavaScript's compiler has optimized them. */
const warmUps = 2000;

/** Runs a case once and returns the time in milliseconds. */
type Run = () => Promise<number>;

/** q, k, v and the cotangent, without gradients. */
function draw({ batch, heads, rows, queries = rows, dim }: Case): Tensor[] {
  if (batch === undefined) return [queries, rows, rows, queries].map((length) => randn([1, heads, length, dim]));
  const inHeads = (part: Tensor): Tensor => transpose(unflatten(part, 2, [heads, dim]), 1, 2);
  const [projected, cotangent] = [randn([batch, rows, 3 * heads * dim]), randn([batch, rows, heads * dim])];
  return [...split(projected, heads * dim, { dim: -1 }), cotangent].map(inHeads);
}

/** Calls the public function, as a user does. */
function ours(each: Case): Run {
  const { causal, backward, calls = 1 } = each;
  const [q, k, v, cotangent] = draw(each) as [Tensor, Tensor, Tensor, Tensor];
  for (const leaf of [q, k, v]) leaf.requiresGrad = backward;
  const call = (): Tensor[] => {
    const out = flashAttention(q, k, v, { causal });
    return backward ? [out, ...grad(out, [q, k, v], { gradOutputs: [cotangent] })] : [out];
  };
  return async () => {
    let taken = 0;
    for (let done = 0; done < calls; done++) {
      const started = performance.now();
      const results = call();
      taken += performance.now() - started;
      for (const result of results) result.dispose();
    }
    return taken / calls;
  };
}

/** Prepares a case in PyTorch. */
async function pytorchs(other: PyTorch, each: Case): Promise<Run> {
  await other.ask(JSON.stringify(each));
  return async () => Number(await other.ask("run"));
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

/**
 * Returns the median time of each call, in alternating order after a warm-up round, and the median of the ratios within
 * a round.
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
  const medians = runs.map((_, at) => median(samples.map((taken) => taken[at])));
  const ratios = samples.map(([mine, other]) => (other === undefined ? Number.NaN : other / mine));
  return { medians, ratio: median(ratios) };
}

const threads = cpuInfo(cpuLibrary().native).threads;
const other = PyTorch.start("attention.py", threads);
console.log(
  `Attention on the cpu backend, ${threads} threads, float32, 8 heads where no number is given (medians, milliseconds)`,
);
console.log(other ? await other.hear() : "PyTorch is not there: `bun run fixtures` brings it");

const shown = (value: number | undefined, digits: number): string =>
  value === undefined || Number.isNaN(value) ? "" : value.toFixed(digits);

function nameOf({ batch, heads, rows, queries, dim, causal, backward }: Case): string {
  if (queries) return `decoding ${heads} heads D ${dim} N ${rows}`;
  const pass = `${backward ? "forward + backward" : "forward"} ${causal ? "causal" : "dense"} D ${dim} N ${rows}`;
  return batch === undefined ? pass : `${pass}, ${batch} x ${heads} heads of a projection`;
}

async function rowOf(each: Case): Promise<string[]> {
  const small = ours({ ...each, rows: 16, calls: 1 });
  for (let call = 0; call < warmUps; call++) await small();
  const runs = [ours(each), ...(other ? [await pytorchs(other, each)] : [])];
  const { medians, ratio } = await measure(runs, roundsOf(each));
  const [mine, theirs] = medians;
  return [nameOf(each), shown(mine, 2), shown(theirs, 2), shown(ratio, 2), shown(operationsOf(each) / mine / 1e6, 0)];
}

const rows: string[][] = [];
const wanted = process.argv.slice(2).join(" ");
for (const each of cases)
  if (JSON.stringify(each).includes(wanted))
    rows.push(await withStrict(true, () => withBackend("cpu", () => rowOf(each))));
console.log(table(["", "ours", "PyTorch", "PyTorch / ours", "GFLOP/s"], rows));
await other?.close();
