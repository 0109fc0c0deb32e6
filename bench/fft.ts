// Compares Fourier transforms on the cpu backend with PyTorch (MKL) and SciPy (pocketfft), in alternating order, over
// drawn lengths from 8 to a million and batches of at most a million elements. It needs the environment of
// `bun run fixtures` that has both, or a `python3` that has them; without it, the table has only Orchard's times.
//
//     bun bench/fft.ts [--count 60] [--seed 1] [--milliseconds 20]

import { parseArgs } from "node:util";
import { mediaToo } from "../scripts/fixtures/environment.ts";
import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import { fft, randn, setBackend, type Tensor } from "../src/index.ts";
import { table } from "./support/measure.ts";
import { PyTorch } from "./support/pytorch.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    milliseconds: { type: "string", default: "20" },
  },
});
const milliseconds = Number(values.milliseconds);
const ROUNDS = 3;

const kinds = ["fft", "ifft", "rfft", "irfft"] as const;

interface Case {
  readonly kind: (typeof kinds)[number];
  readonly rows: number;
  readonly n: number;
}

/** Returns a generator of numbers from 0 to 1 (the linear congruential generator of Numerical Recipes). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Draws the logarithms of lengths and sizes uniformly. */
function drawn(count: number, seed: number): Case[] {
  const random = numbers(seed);
  return Array.from({ length: count }, () => {
    const n = Math.round(2 ** (3 + 17 * random()));
    const rows = Math.max(1, Math.floor(2 ** (10 + 10 * random()) / n));
    return { kind: kinds[Math.floor(kinds.length * random())], rows, n };
  });
}

function operandOf({ kind, rows, n }: Case): Tensor {
  if (kind === "rfft") return randn([rows, n]);
  return randn([rows, kind === "irfft" ? Math.floor(n / 2) + 1 : n], { dtype: "complex64" });
}

/** The milliseconds of the fastest call within the given time. */
function timed(call: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  call();
  for (const end = performance.now() + milliseconds; performance.now() < end; ) {
    const started = performance.now();
    call();
    best = Math.min(best, performance.now() - started);
  }
  return best;
}

setBackend("cpu");
const { threads } = cpuInfo(cpuLibrary().native);
const python = PyTorch.start("fft.py", threads, { requirements: mediaToo, module: "scipy" });

/** Returns the times of the fastest calls of Orchard, PyTorch and SciPy, over all rounds. */
async function measured(each: Case): Promise<readonly [ours: number, torch: number, scipy: number]> {
  const x = operandOf(each);
  const transform = fft[each.kind] as (given: Tensor, n: number) => Tensor;
  await python?.ask(JSON.stringify({ ...each, milliseconds }));
  const best: [number, number, number] = [Infinity, Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    best[0] = Math.min(
      best[0],
      timed(() => transform(x, each.n).dispose()),
    );
    if (!python) continue;
    best[1] = Math.min(best[1], Number(await python.ask("torch")));
    best[2] = Math.min(best[2], Number(await python.ask("scipy")));
  }
  x.dispose();
  return best;
}

const results: { readonly each: Case; readonly times: readonly [number, number, number] }[] = [];
for (const each of drawn(Number(values.count), Number(values.seed)))
  results.push({ each, times: await measured(each) });
await python?.close();

const ratio = (times: readonly number[], of: 1 | 2): number => times[of] / times[0];
results.sort((a, b) => (python ? ratio(a.times, 1) - ratio(b.times, 1) : a.each.n - b.each.n));
const lines = results.map(({ each: { kind, rows, n }, times }) => [
  `${kind} ${rows}x${n}`,
  times[0].toFixed(4),
  ...(python ? [ratio(times, 1).toFixed(2), ratio(times, 2).toFixed(2)] : []),
]);
console.log(table(["", "ms", ...(python ? ["speedup over PyTorch", "over SciPy"] : [])], lines));
if (python)
  for (const [name, of, least] of [
    ["PyTorch", 1, 0.9],
    ["SciPy", 2, 1.2],
  ] as const) {
    const ratios = results.map(({ times }) => ratio(times, of));
    const mean = Math.exp(ratios.reduce((sum, each) => sum + Math.log(each), 0) / ratios.length);
    const enough = ratios.filter((each) => each >= least).length;
    console.log(
      `${name}: geometric mean ${mean.toFixed(2)}, at least ${least} in ${enough} of ${ratios.length}, ` +
        `${threads} threads`,
    );
  }
