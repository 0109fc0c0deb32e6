/**
 * Measures `allReduce` by size, and training steps of a GPT, on the ranks that MPI starts:
 *
 *     mpirun -n 4 bun bench/distributed.ts                # allReduce: bytes, microseconds, GB/s
 *     mpirun -n 4 bun bench/distributed.ts --train        # steps of a GPT of 10 M parameters, batch 8 per rank
 *     mpirun -n 4 bun bench/distributed.ts --train late   # the same, exchanged after backward
 *     mpirun -n 4 bun bench/distributed.ts --train apart  # the same without an exchange: the machine's limit
 *     mpirun -n 4 bun bench/distributed.ts --train shares # the same with optim.sharded
 *     bun bench/scaling.ts                                # efficiency by ranks, with the limit and gloo
 *
 * `ORCHARD_CPU_THREADS` sets the threads per rank. Weak scaling: the efficiency of n ranks is their tokens per second
 * divided by n times those of one. `bench/support/distributed.c` measures MPI itself, to compare with the first table.
 */
import { backward, crossEntropy, distributed, Generator, nn, ones, optim, randint, tensor } from "../src/index.ts";
import { tidy } from "../src/tensor/tidy.ts";

const { rank, worldSize, library = "one process" } = await distributed.init({ check: false });
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

function reductions(): void {
  say(`allReduce of float32 in place, ${worldSize} ranks, ${library}`);
  for (let bytes = 4; bytes <= 2 ** 26; bytes *= 4) {
    const x = ones([bytes / 4]);
    const time = shortest(bytes < 2 ** 20 ? 50 : 10, () => distributed.allReduce(x, { inPlace: true }));
    say(
      `${String(bytes).padStart(10)} bytes ${time.toFixed(1).padStart(10)} µs ${(bytes / time / 1000).toFixed(3)} GB/s`,
    );
    x.dispose();
  }
}

const [BATCH, CONTEXT, STEPS] = [8, 128, 12];

type Mode = "overlapped" | "late" | "apart" | "shares";

function training(mode: Mode): void {
  const generator = new Generator(1);
  const sizes = { vocabularySize: 512, contextLength: CONTEXT, layers: 6, heads: 6, width: 384 };
  const model = new nn.GPT({ ...sizes, generator });
  const parallel = distributed.dataParallel(model);
  const whole = new optim.AdamW(model.parameters(), { lr: 1e-4 });
  const optimizer = mode === "shares" ? optim.sharded(whole) : whole;
  const rankGenerator = new Generator(rank);
  const times: number[] = [];
  for (let step = 0; step < STEPS; step++) {
    distributed.barrier();
    const start = performance.now();
    tidy(() => {
      const x = randint(0, 512, [BATCH, CONTEXT], { generator: rankGenerator, dtype: "int32" });
      optimizer.zeroGrad();
      const pass = () => backward(crossEntropy(model.forward(x), x, { dim: -1 }));
      if (mode === "late" || mode === "apart") parallel.noSync(pass);
      else pass();
      if (mode === "late") parallel.sync();
      optimizer.step();
    });
    distributed.barrier();
    if (step > 1) times.push(performance.now() - start);
  }
  const best = Math.min(...times);
  const count = model.parameters().reduce((sum, { size }) => sum + size, 0);
  const tokens = (worldSize * BATCH * CONTEXT * 1000) / best;
  const size = `${(count / 1e6).toFixed(1)} M parameters, ${worldSize} ranks`;
  say(`${size}, ${mode}: ${best.toFixed(1)} ms a step, ${tokens.toFixed(0)} tokens/s`);
  if (mode === "apart") return;
  const held = whole.slots.flatMap(({ parameter: { grad }, state }) => [
    ...(grad ? [grad] : []),
    ...Object.values(state),
  ]);
  const bytes = distributed.allGather(tensor([held.reduce((sum, { size }) => sum + size * 4, 0) / 1e6])).dataSync();
  say(`gradients and state by rank: ${Array.from(bytes, (each) => each.toFixed(1)).join(", ")} MB`);
}

const at = process.argv.indexOf("--train");
if (at >= 0) training((process.argv[at + 1] ?? "overlapped") as Mode);
else reductions();
await distributed.finalize();
