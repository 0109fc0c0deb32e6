/**
 * Measures `allReduce` by size, and training steps of a GPT, on the ranks that MPI starts:
 *
 *     mpirun -n 4 bun bench/distributed.ts                # allReduce: bytes, microseconds, GB/s
 *     mpirun -n 4 bun bench/distributed.ts --train        # steps of a GPT of 10 M parameters, batch 8 per rank
 *     mpirun -n 4 bun bench/distributed.ts --train late   # the same, exchanged after backward
 *     mpirun -n 4 bun bench/distributed.ts --train apart  # the same without an exchange: the machine's limit
 *     mpirun -n 4 bun bench/distributed.ts --train shares # the same with optim.sharded
 *     mpirun -n 2 bun bench/distributed.ts --train --model gpt-124m --batch 8   # in bfloat16, for GPUs
 *     bun bench/scaling.ts                                # efficiency by ranks, with the limit and gloo
 *
 * `ORCHARD_BACKEND=metal ORCHARD_METAL_DEVICE=nvidia` runs on a GPU per rank; `support/distributed_torch.py` is the
 * same in PyTorch. `ORCHARD_CPU_THREADS` sets the threads per rank. Weak scaling: the efficiency of n ranks is their
 * tokens per second divided by n times the tokens per second of one rank. `bench/support/distributed.c` measures MPI
 * itself, to compare with the first table.
 */
import { parseArgs } from "node:util";
import { worldOf } from "../src/distributed/world.ts";
import {
  backward,
  codepaths,
  crossEntropy,
  distributed,
  Generator,
  nn,
  ones,
  optim,
  randint,
  type Tensor,
  tensor,
} from "../src/index.ts";
import { tidy } from "../src/tensor/tidy.ts";

const { rank, worldSize, nccl, library = "one process" } = await distributed.init({ check: false });
const say = (text: string): void => {
  if (rank === 0) console.log(text);
};

/** Returns the shortest of several times, in microseconds. */
function shortest(repeats: number, body: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let count = 0; count < repeats; count++) {
    distributed.barrier();
    const start = performance.now();
    body();
    best = Math.min(best, (performance.now() - start) * 1000);
  }
  return best;
}

/** Sums x in place as training does: over NCCL between GPUs. */
function exchange(x: Tensor): void {
  const { connection } = worldOf("bench");
  if (connection?.overNccl === undefined) return void distributed.allReduce(x, { inPlace: true });
  const { queue, overNccl } = connection;
  const steps = function* () {
    yield overNccl.allReduce("bench", x);
  };
  queue.wait(queue.begin("bench", undefined, steps));
}

function reductions(): void {
  say(`allReduce of float32 in place, ${worldSize} ranks, ${nccl ?? library}`);
  for (let bytes = 4; bytes <= (nccl ? 2 ** 29 : 2 ** 26); bytes *= 4) {
    const x = ones([bytes / 4]);
    exchange(x);
    const time = shortest(bytes < 2 ** 20 ? 50 : 10, () => exchange(x));
    say(
      `${String(bytes).padStart(10)} bytes ${time.toFixed(1).padStart(10)} µs ${(bytes / time / 1000).toFixed(3)} GB/s`,
    );
    x.dispose();
  }
}

const models = {
  "gpt-11m": { batch: 8, dtype: "float32", vocabularySize: 512, contextLength: 128, layers: 6, heads: 6, width: 384 },
  "gpt-124m": {
    batch: 8,
    dtype: "bfloat16",
    vocabularySize: 50_304,
    contextLength: 1024,
    layers: 12,
    heads: 12,
    width: 768,
  },
} as const;

type Mode = "overlapped" | "late" | "apart" | "shares";

interface Training {
  readonly mode: Mode;
  readonly name: keyof typeof models;
  readonly batch: number;
  readonly steps: number;
}

function training({ mode, name, batch, steps }: Training): void {
  const { dtype, batch: _, ...sizes } = models[name];
  const { contextLength, vocabularySize } = sizes;
  const generator = new Generator(1);
  const model = new nn.GPT({ ...sizes, generator }).to(dtype);
  const parallel = distributed.dataParallel(model);
  const whole = new optim.AdamW(model.parameters(), { lr: 1e-4, masterWeights: dtype !== "float32" });
  const optimizer = mode === "shares" ? optim.sharded(whole) : whole;
  const rankGenerator = new Generator(rank);
  const last = model.parameters().at(-1)!;
  const times: number[] = [];
  for (let step = 0; step < steps; step++) {
    distributed.barrier();
    const start = performance.now();
    tidy(() => {
      const x = randint(0, vocabularySize, [batch, contextLength], { generator: rankGenerator, dtype: "int32" });
      optimizer.zeroGrad();
      const pass = () => backward(crossEntropy(model.forward(x), x, { dim: -1 }));
      if (mode === "late" || mode === "apart") parallel.noSync(pass);
      else pass();
      if (mode === "late") parallel.sync();
      optimizer.step();
    });
    last.dataSync(); // waits for the device
    distributed.barrier();
    if (step > 1) times.push(performance.now() - start);
  }
  const best = Math.min(...times);
  const count = model.parameters().reduce((sum, { size }) => sum + size, 0);
  const tokens = (worldSize * batch * contextLength * 1000) / best;
  const size = `${(count / 1e6).toFixed(1)} M parameters, ${worldSize} ranks`;
  say(`${size}, ${mode}, ${exchanged()}: ${best.toFixed(1)} ms a step, ${tokens.toFixed(0)} tokens/s`);
  if (mode === "apart") return;
  const held = whole.slots.flatMap(({ parameter: { grad }, state }) => [
    ...(grad ? [grad] : []),
    ...Object.values(state),
  ]);
  const bytes = distributed.allGather(tensor([held.reduce((sum, { size }) => sum + size * 4, 0) / 1e6])).dataSync();
  say(`gradients and state by rank: ${Array.from(bytes, (each) => each.toFixed(1)).join(", ")} MB`);
}

/** Describes how gradients were exchanged. */
const exchanged = (): string =>
  codepaths().find(({ reason }) => reason.includes(" over "))?.reason ?? "no exchange of gradients";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    train: { type: "boolean", default: false },
    model: { type: "string", default: "gpt-11m" },
    ...({ batch: { type: "string" }, steps: { type: "string", default: "12" } } as const),
  },
});
if (values.train) {
  const name = values.model as keyof typeof models;
  const [batch, steps] = [Number(values.batch ?? models[name].batch), Number(values.steps)];
  training({ mode: (positionals[0] ?? "overlapped") as Mode, name, batch, steps });
} else reductions();
await distributed.finalize();
