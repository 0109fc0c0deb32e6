// Measures what copying attention's operands costs: a forward and a backward pass with all operands in memory that the
// backend reads directly, so that nothing is copied, and with some operands in other memory: for metal in host memory,
// for cpu in private memory of the device. Kernels on the software device complete without running, so only copies and
// encoding take time.

import { metalContext } from "../src/backend/metal/context.ts";
import { metalCopies } from "../src/backend/metal/copies.ts";
import { withBackend, withStrict } from "../src/backend/policy.ts";
import { flashAttention } from "../src/ops/attention/flash_attention.ts";
import { grad } from "../src/ops/gradient/backward.ts";
import { randn, transpose } from "../src/ops/index.ts";
import type { Tensor } from "../src/tensor/tensor.ts";
import { table } from "./support/measure.ts";

const [batch, heads, rows, dim] = [1, 8, 512, 64] as const;
const rounds = 15;

const names = ["q", "k", "v", "gradOut"] as const;
type Name = (typeof names)[number];

interface Case {
  readonly name: string;
  readonly isTransposed?: boolean;
  /** The operands that the backend does not read directly. */
  readonly elsewhere: readonly Name[];
}

const cases: readonly Case[] = [
  { name: "contiguous", elsewhere: [] },
  { name: "projected rows", isTransposed: true, elsewhere: [] },
  { name: "q elsewhere", elsewhere: ["q"] },
  { name: "k and v elsewhere", elsewhere: ["k", "v"] },
  { name: "q, k and v elsewhere", elsewhere: ["q", "k", "v"] },
  { name: "all elsewhere", elsewhere: names },
  { name: "all elsewhere, projected rows", isTransposed: true, elsewhere: names },
];

const places = {
  metal: {
    here: (make: () => Tensor) => withBackend("metal", make),
    elsewhere: (make: () => Tensor) => withBackend("cpu", make),
  },
  cpu: {
    here: (make: () => Tensor) => withBackend("cpu", make),
    elsewhere: (make: (storage?: "private") => Tensor) => withBackend("metal", () => make("private")),
  },
} as const;
type BackendName = keyof typeof places;

function draw({ isTransposed }: Case, storage?: "private"): Tensor {
  if (isTransposed) return transpose(randn([batch, rows, heads, dim], { storage }), 1, 2);
  return randn([batch, heads, rows, dim], { storage });
}

interface Sample {
  readonly milliseconds: number;
  readonly copies: number;
}

/** Runs both passes with operands that were never used before. */
function sample(backend: BackendName, of: Case): Sample {
  const operands = names.map((name) =>
    places[backend][of.elsewhere.includes(name) ? "elsewhere" : "here"]((storage?: "private") => draw(of, storage)),
  );
  const [q, k, v, gradOut] = operands as [Tensor, Tensor, Tensor, Tensor];
  for (const operand of [q, k, v]) operand.requiresGrad = true;
  metalContext().wait();
  const [memories, copies] = [operands.map(({ storage }) => storage.memory), metalCopies()];
  const started = performance.now();
  withStrict(true, () =>
    withBackend(backend, () => grad(flashAttention(q, k, v, { causal: true }), [q, k, v], { gradOutputs: [gradOut] })),
  );
  metalContext().wait();
  const milliseconds = performance.now() - started;
  const moved = operands.filter(({ storage }, at) => storage.memory !== memories[at]).length;
  return { milliseconds, copies: metalCopies() - copies + moved };
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1];

/** Rounds over all cases, after one warm-up round. */
function measure(backend: BackendName): (string | number)[][] {
  const samples = cases.map((): Sample[] => []);
  for (let round = -1; round < rounds; round++)
    for (const [at, each] of cases.entries()) {
      const taken = sample(backend, each);
      if (round >= 0) samples[at].push(taken);
    }
  const times = samples.map((each) => median(each.map(({ milliseconds }) => milliseconds)));
  const megabytes = (batch * heads * rows * dim * 4) / 2 ** 20;
  return cases.map(({ name, isTransposed }, at) => {
    const { copies } = samples[at][0];
    const more = times[at] - times[isTransposed ? 1 : 0];
    return [`${backend}: ${name}`, copies, copies * megabytes, times[at].toFixed(2), more.toFixed(2)];
  });
}

const context = metalContext();
const rowsOf = (backend: BackendName) => {
  const skipsKernels = backend === "metal" && context.isSoftware;
  if (skipsKernels) context.configure("execute", false);
  const measured = measure(backend);
  if (skipsKernels) context.configure("execute", true);
  return measured;
};
console.log(table(["", "copies", "MiB", "ms", "more than none"], [...rowsOf("metal"), ...rowsOf("cpu")]));
context.close();
