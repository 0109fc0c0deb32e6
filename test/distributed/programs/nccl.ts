/** Trains a drawn model on all ranks, and a copy on the batches of all ranks. Prints what exchanged the gradients. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { worldOf } from "../../../src/distributed/world.ts";
import {
  backward,
  codepaths,
  distributed as d,
  Generator,
  mul,
  nn,
  optim,
  randn,
  square,
  sum,
  type Tensor,
} from "../../../src/index.ts";
import { toJson } from "../json.ts";

const [folder, seed, kind] = [process.argv[2], Number(process.env["DRAWN"]), process.env["KIND"]!];
const dtype = (process.env["DTYPE"] ?? "float32") as "float32" | "float16" | "bfloat16";
const { rank, worldSize, nccl, whyNotNccl } = await d.init();
const { mpi } = worldOf("test").connection!;
let mpiReductions = 0;
for (const name of ["allReduce", "reduceScatterParts"] as const) {
  const plain = mpi[name].bind(mpi) as (...values: unknown[]) => never;
  mpi[name] = (...values: unknown[]) => {
    if (values[0] === "dataParallel") mpiReductions++;
    return plain(...values);
  };
}

// A drawn model: its widths, and so the sizes of its buckets, have no pattern.
const draw = new Generator(seed);
const width = () => 1 + Math.floor((randn([1], { generator: draw }).square().item() * 17) % 23);
const widths = Array.from({ length: 4 }, width);
const build = (from: number) => {
  const generator = new Generator(from);
  const layers = widths.slice(1).map((to, at) => new nn.Linear(widths[at], to, { generator, dtype }));
  return new nn.Sequential(...layers.flatMap((layer) => [layer, new nn.GELU()]));
};
const [model, alone] = [build(seed + rank), build(seed)];
const batchOf = (own: number, step: number): Tensor => {
  const batch = new Generator(1000 * seed + 100 * own + step);
  return randn([5, widths[0]], { generator: batch, dtype });
};
const lossOf = (of: typeof model, own: number, step: number) => sum(square(of.forward(batchOf(own, step)) as Tensor));
const flat = (list: (Tensor | null)[]) => list.flatMap((x) => (x === null ? [] : Array.from(x.dataSync(), Number)));

const parallel = d.dataParallel(model, { bucketBytes: 160 });
const whole = new optim.AdamW(model.parameters(), { lr: 0.01 });
const optimizer = kind === "sharded" ? optim.sharded(whole) : whole;
const plain = new optim.AdamW(alone.parameters(), { lr: 0.01 });
const gradients: unknown[] = [];
const STEPS = 3;
for (let step = 0; step < STEPS; step++) {
  optimizer.zeroGrad();
  plain.zeroGrad();
  if (kind === "killed" && step === 1 && rank === 1) {
    writeFileSync(join(folder, "killed"), `${Date.now()}`);
    process.kill(process.pid, "SIGKILL");
  }
  backward(lossOf(model, rank, step));
  for (let own = 0; own < worldSize; own++) backward(mul(lossOf(alone, own, step), 1 / worldSize) as Tensor);
  const pairs = model.parameters().map(({ grad }, at) => [grad, grad && alone.parameters()[at].grad] as const);
  gradients.push([flat(pairs.map(([got]) => got)), flat(pairs.map(([, want]) => want))]);
  optimizer.step();
  plain.step();
}
parallel.detach();
const sizes = model.parameters().map(({ size }) => size);
const results = {
  world: { nccl: nccl ?? null, whyNotNccl: whyNotNccl ?? null },
  gradients,
  mpiReductions,
  steps: STEPS,
  weights: flat(model.parameters()),
  codepaths: codepaths().flatMap(({ operation, backend, reason }) =>
    operation === "dataParallel" && / over /.test(reason) ? [`${operation} ${backend} ${reason}`] : [],
  ),
  elements: sizes.reduce((total, size) => total + size + 1, 0),
};
await Bun.write(join(folder, `rank-${rank}.json`), JSON.stringify(results, toJson));
await d.finalize();
