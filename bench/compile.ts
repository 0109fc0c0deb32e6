// Compares compiled functions on the cpu backend with plain calls, and with PyTorch, eager and torch.compile, on the
// same number of threads, in alternating calls: small training steps, chains of elementwise and row operations, and
// tokens of a language model. It uses `--python`, by default the Python environment of `bun run fixtures`; without
// PyTorch, the table has only Orchard's times. torch.compile uses the C++ compiler of the cpu backend's build. Ratios
// above 1: the compiled function is faster. `bun bench/compile.ts chain step --threads 2,16` selects rows by words.

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { findCompiler, hasCompiler } from "../scripts/cpu/compiler.ts";

import { cpuLibrary } from "../src/backend/cpu/loader.ts";
import { cpuInfo } from "../src/backend/cpu/report.ts";
import * as orchard from "../src/index.ts";
import { compile, nn, noGrad, optim, randint, randn, type Tensor } from "../src/index.ts";
import { table } from "./support/measure.ts";
import { PyTorch } from "./support/pytorch.ts";

const countOf = (text: string): number => {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError("expected whole numbers from 1 on.");
  return count;
};

const command = new Command("bun bench/compile.ts")
  .argument("[words...]", "measures the rows whose names contain one of these words")
  .option("--threads <list>", "numbers of threads, separated by commas", (text) => text.split(",").map(countOf))
  .option("--rounds <count>", "rounds of alternating calls", countOf, 11)
  .option("--python <program>", "a Python with PyTorch")
  .option("--eager", "does not measure torch.compile, which takes minutes to compile")
  .parse();
const options = command.opts<{ threads?: number[]; rounds: number; python?: string; eager?: true }>();

if (options.threads) {
  // a backend reads the number of threads when it is loaded, so each number gets a separate process
  const flags = ["--rounds", `${options.rounds}`, ...(options.eager ? ["--eager"] : [])];
  const python = options.python === undefined ? [] : ["--python", options.python];
  for (const count of options.threads) {
    const child = Bun.spawn([process.execPath, import.meta.path, ...command.args, ...flags, ...python], {
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...process.env, ORCHARD_CPU_THREADS: `${count}` },
    });
    if ((await child.exited) !== 0) process.exitCode = 1;
  }
  process.exit();
}

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
  chain({ elements, operations }: { elements: number; operations: number }) {
    const [x, y] = [randn([elements]), randn([elements])];
    const steps: readonly ((value: Tensor) => Tensor)[] = [
      ...[(value: Tensor) => value.add(y), (value: Tensor) => value.mul(y), (value: Tensor) => value.add(3)],
      ...[(value: Tensor) => value.abs(), (value: Tensor) => value.sub(x), (value: Tensor) => value.relu()],
      ...[(value: Tensor) => value.square(), (value: Tensor) => value.add(y), (value: Tensor) => value.mul(0.5)],
      (value) => value.sub(y),
    ];
    return both(() => steps.slice(0, operations).reduce<Tensor>((value, step) => step(value), x));
  },
  /** A token of a language model with keys and values of the earlier ones. */
  decode({ vocabulary, context, ...sizes }: Record<"vocabulary" | "context" | GptSize, number>) {
    const model = new nn.GPT({ vocabularySize: vocabulary, contextLength: context, ...sizes }).eval() as nn.GPT;
    const token = randint(0, vocabulary, [1, 1]);
    const start = randint(0, vocabulary, [1, context / 2]);
    const run = (isCompiled: boolean): Run => {
      const cache = model.newCache();
      noGrad(() => model.forward(start, { cache }));
      const step = () => noGrad(() => model.forward(token, { cache, lastOnly: true }));
      const next = isCompiled ? compile(step, { state: [model, cache] }) : step;
      return () => {
        if (cache.position === context) cache.truncate(context / 2);
        return next();
      };
    };
    return { plain: run(false), compiled: run(true) };
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

const decoded = { vocabulary: 256, context: 256, layers: 6, heads: 6, width: 384 };

const chains = Object.entries({ "64 K": 16, "1 M": 20, "16 M": 24 }).flatMap(([size, power]) =>
  [5, 8, 10].map((operations): [string, Case] => [
    `chain of ${operations} operations on ${size} elements`,
    { kind: "chain", sizes: { elements: 2 ** power, operations }, calls: Math.max(1, 2 ** (22 - power)) },
  ]),
);

const cases: Readonly<Record<string, Case>> = {
  "step of a net 64-64-1, batch of 32": { kind: "net", sizes: { sizes: [64, 64, 1], rows: 32 }, calls: 60 },
  "step of a net 784-512-10, batch of 64": { kind: "net", sizes: { sizes: [784, 512, 10], rows: 64 }, calls: 30 },
  "step of a GPT of 0.8 M parameters": { kind: "gpt", sizes: gptSizes, calls: 2 },
  "decoding of a GPT of 10.9 M parameters, a token": { kind: "decode", sizes: decoded, calls: 32 },
  ...Object.fromEntries(chains),
  "softmax in 5 operations, 4096 x 1024": { kind: "softmax", sizes: { rows: 4096, width: 1024 }, calls: 2 },
  "layer norm in 9 operations, 4096 x 1024": { kind: "norm", sizes: { rows: 4096, width: 1024 }, calls: 2 },
};

/** PyTorch's threads may spin while they wait for work; they stop within this many milliseconds. */
const SETTLING = 15;

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1];

const timed = (run: Run, calls: number) => (): number => {
  const started = performance.now();
  for (let call = 0; call < calls; call++) orchard.tidy(() => void run());
  return (performance.now() - started) / calls;
};

orchard.setBackend("cpu");
const threads = cpuInfo(cpuLibrary().native).threads;
const { python } = options;
const other = PyTorch.start("compile.py", threads, { python });

/** A folder for torch.compile's cache, and for a script that runs the compiler with its arguments. */
const folder = mkdtempSync(join(tmpdir(), "orchard-torch-compile-"));

/** PyTorch with torch.compile; undefined without PyTorch or a C++ compiler. */
async function compilingPyTorch(): Promise<PyTorch | undefined> {
  if (options.eager || !hasCompiler()) return undefined;
  const found = await findCompiler();
  const compiler = join(folder, "c++");
  writeFileSync(compiler, `#!/bin/sh\nexec ${found.command.join(" ")} "$@"\n`);
  chmodSync(compiler, 0o755);
  const env = { CXX: compiler, TORCHINDUCTOR_CACHE_DIR: folder };
  return PyTorch.start("compile.py", threads, { args: ["--compile"], env, python });
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
  for (let round = -2; round < options.rounds; round++)
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

const isChosen = (name: string) => command.args.length === 0 || command.args.some((word) => name.includes(word));
const found: string[][] = [];
for (const [name, each] of Object.entries(cases)) if (isChosen(name)) found.push(await rowOf(name, each));
const columns = ["plain", "compiled", "PyTorch", "torch.compile"];
const ratios = ["plain", "PyTorch", "torch.compile"].map((name) => `${name} / compiled`);
console.log(table(["", ...columns, ...ratios], found));
await Promise.all([other?.close(), compiling?.close()]);
rmSync(folder, { recursive: true });
