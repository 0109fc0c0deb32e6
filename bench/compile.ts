// Compares compiled functions on the cpu backend with plain calls, and with PyTorch, eager and torch.compile, on the
// same number of threads, in alternating calls: small training steps, and chains of elementwise and row operations. It
// uses the Python environment of `bun run fixtures`; without it, the table has only Orchard's times. torch.compile uses
// the C++ compiler of the cpu backend's build. Ratios above 1: the compiled function is faster.

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findCompiler, hasCompiler } from "../scripts/cpu/compiler.ts";

import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import * as orchard from "../src/index.ts";
import { compile, nn, optim, randint, randn, type Tensor } from "../src/index.ts";
import { table } from "./support/measure.ts";
import { PyTorch } from "./support/pytorch.ts";

type Run = () => unknown;

/** A function as a plain and as a compiled call. */
interface Candidate {
  readonly plain: Run;
  readonly compiled: Run;
}

/** A row of the table: a case that `support/compile.py` can build too, and the calls per round. */
interface Case {
  readonly kind: keyof typeof makers;
  readonly sizes: Readonly<Record<string, number | readonly number[]>>;
  readonly calls: number;
}

function training(model: nn.Module, lossOf: () => Tensor): Candidate {
  const optimizer = new optim.AdamW(model.parameters(), { lr: 1e-4 });
  const step = () => {
    const loss = lossOf();
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  };
  return { plain: step, compiled: compile(step, { state: [model, optimizer] }) };
}

const both = (fn: () => Tensor): Candidate => ({ plain: fn, compiled: compile(fn) });

const rows = { dim: -1, keepdim: true } as const;

const makers = {
  net({ sizes: [inputs, hidden, outputs], rows: count }: { sizes: readonly [number, number, number]; rows: number }) {
    const model = new nn.Sequential(new nn.Linear(inputs, hidden), new nn.ReLU(), new nn.Linear(hidden, outputs));
    const [x, y] = [randn([count, inputs]), randn([count, outputs])];
    return training(model, () => model.forward(x).sub(y).square().mean());
  },
  gpt({ vocabulary, context, batch, ...sizes }: Record<"vocabulary" | "context" | "batch" | GptSize, number>) {
    const model = new nn.GPT({ vocabularySize: vocabulary, contextLength: context, ...sizes });
    const [x, y] = [randint(0, vocabulary, [batch, context]), randint(0, vocabulary, [batch * context])];
    return training(model, () => orchard.crossEntropy(model.forward(x).reshape([-1, vocabulary]), y));
  },
  chain({ elements }: { elements: number }) {
    const [x, y] = [randn([elements]), randn([elements])];
    return both(() => x.add(y).mul(y).add(3).abs().sub(x).relu().square().add(y));
  },
  softmax({ rows: count, width }: { rows: number; width: number }) {
    const x = randn([count, width]);
    return both(() => {
      const shifted = x.sub(x.amax(rows)).exp();
      return shifted.div(shifted.sum(rows));
    });
  },
  norm({ rows: count, width }: { rows: number; width: number }) {
    const [x, weight, bias] = [randn([count, width]), randn([width]), randn([width])];
    return both(() => {
      const centered = x.sub(x.mean(rows));
      return centered.mul(centered.square().mean(rows).add(1e-5).rsqrt()).mul(weight).add(bias);
    });
  },
};

type GptSize = "layers" | "heads" | "width";

const gptSizes = { vocabulary: 256, context: 64, layers: 4, heads: 4, width: 128, batch: 8 };

const chain = (power: number): Case => ({
  kind: "chain",
  sizes: { elements: 2 ** power },
  calls: Math.max(1, 2 ** (22 - power)),
});

const cases: Readonly<Record<string, Case>> = {
  "step of a net 64-64-1, batch of 32": { kind: "net", sizes: { sizes: [64, 64, 1], rows: 32 }, calls: 60 },
  "step of a net 784-512-10, batch of 64": { kind: "net", sizes: { sizes: [784, 512, 10], rows: 64 }, calls: 30 },
  "step of a GPT of 0.8 M parameters": { kind: "gpt", sizes: gptSizes, calls: 2 },
  "8 operations on 64 K elements": chain(16),
  "8 operations on 1 M elements": chain(20),
  "8 operations on 16 M elements": chain(24),
  "softmax in 5 operations, 4096 x 1024": { kind: "softmax", sizes: { rows: 4096, width: 1024 }, calls: 2 },
  "layer norm in 9 operations, 4096 x 1024": { kind: "norm", sizes: { rows: 4096, width: 1024 }, calls: 2 },
};

/** PyTorch's threads may spin while they wait for work; they stop within this many milliseconds. */
const SETTLING = 15;
const ROUNDS = 11;

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1];

const timed = (run: Run, calls: number) => (): number => {
  const started = performance.now();
  for (let call = 0; call < calls; call++) orchard.tidy(() => void run());
  return (performance.now() - started) / calls;
};

orchard.setBackend("cpu");
const threads = cpuInfo(cpuLibrary().native).threads;
const other = PyTorch.start("compile.py", threads);

/** A folder for torch.compile's cache, and for a script that runs the compiler with its arguments. */
const folder = mkdtempSync(join(tmpdir(), "orchard-torch-compile-"));

/** PyTorch with torch.compile; undefined without PyTorch or a C++ compiler. */
async function compilingPyTorch(): Promise<PyTorch | undefined> {
  if (!hasCompiler()) return undefined;
  const { command } = await findCompiler();
  const compiler = join(folder, "c++");
  writeFileSync(compiler, `#!/bin/sh\nexec ${command.join(" ")} "$@"\n`);
  chmodSync(compiler, 0o755);
  const env = { CXX: compiler, TORCHINDUCTOR_CACHE_DIR: folder };
  return PyTorch.start("compile.py", threads, { args: ["--compile"], env });
}

const compiling = await compilingPyTorch();
await compiling?.hear();
console.log(`Compiled functions on the cpu backend, ${threads} threads (medians, milliseconds per call)`);
console.log(other ? await other.hear() : "PyTorch is not there: `bun run fixtures` brings it");

async function rowOf(name: string, { kind, sizes, calls }: Case): Promise<string[]> {
  const { plain, compiled } = makers[kind](sizes as never);
  for (const each of [other, compiling]) await each?.ask(JSON.stringify({ kind, sizes, calls }));
  const theirs = [other, compiling].flatMap((each) => (each ? [async () => Number(await each.ask("run"))] : []));
  const runs = [timed(plain, calls), timed(compiled, calls), ...theirs];
  const samples: number[][] = runs.map(() => []);
  for (let round = -2; round < ROUNDS; round++)
    for (const [at, run] of runs.entries()) {
      await Bun.sleep(SETTLING);
      const taken = await run();
      if (round >= 0) samples[at].push(taken);
    }
  const [slow, fast, torch, theirCompiled] = samples.map(median);
  const ratio = (time: number | undefined) => (time === undefined ? "" : (time / fast).toFixed(2));
  const times = [slow, fast, torch, theirCompiled];
  return [name, ...times.map((time) => time?.toFixed(3) ?? ""), ...[slow, torch, theirCompiled].map(ratio)];
}

const found: string[][] = [];
for (const [name, each] of Object.entries(cases)) found.push(await rowOf(name, each));
const columns = ["plain", "compiled", "PyTorch", "torch.compile"];
const ratios = ["plain", "PyTorch", "torch.compile"].map((name) => `${name} / compiled`);
console.log(table(["", ...columns, ...ratios], found));
await Promise.all([other?.close(), compiling?.close()]);
rmSync(folder, { recursive: true });
