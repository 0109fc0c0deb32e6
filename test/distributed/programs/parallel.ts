/** Data-parallel training of a small model, and of the same model on the batches of all ranks. */
import { join } from "node:path";
import { worldOf } from "../../../src/distributed/world.ts";
import {
  backward,
  distributed as d,
  Generator,
  mul,
  nn,
  noGrad,
  optim,
  relu,
  square,
  sub,
  sum,
  type Tensor,
  tensor,
} from "../../../src/index.ts";
import { toJson } from "../json.ts";
import { elementsOf } from "../samples.ts";

const { rank, worldSize } = await d.init();
const results: Record<string, unknown> = {};
const data = (x: Tensor | null) => (x === null ? null : Array.from(x.dataSync() as ArrayLike<number>));

class Small extends nn.Module<[x: Tensor], Tensor> {
  readonly first: nn.Linear;
  readonly second: nn.Linear;
  readonly unused: nn.Linear;
  readonly sometimes: nn.Linear;
  readonly frozen: nn.Linear;
  readonly scale: Tensor;
  constructor(seed: number) {
    super();
    const generator = new Generator(seed);
    this.first = new nn.Linear(3, 8, { generator });
    this.second = new nn.Linear(8, 2, { generator });
    this.unused = new nn.Linear(2, 2, { generator });
    this.sometimes = new nn.Linear(2, 2, { generator });
    this.frozen = new nn.Linear(2, 2, { generator });
    for (const parameter of this.frozen.parameters()) parameter.requiresGrad = false;
    this.scale = tensor([seed]);
  }
  forward(x: Tensor, uses = false): Tensor {
    const hidden = this.first.forward(x);
    if (this === model) hidden.registerHook(() => void events.push("first layer")); // before backward reaches it
    const y = this.frozen.forward(this.second.forward(relu(hidden)));
    return uses ? this.sometimes.forward(y) : y;
  }
}

/** The batch of a rank in a step: 4 rows. */
const batchOf = (own: number, step: number) => {
  const x = elementsOf(own + 3 * step, 12).map((value) => value / 8 - 0.5);
  return tensor([0, 1, 2, 3].map((row) => x.slice(row * 3, row * 3 + 3)));
};
const lossOf = (model: Small, own: number, step: number, uses = false) =>
  mul(sum(square(sub(model.forward(batchOf(own, step), uses), 0.25))), 1 / 8) as Tensor;

const gradients = (model: Small) =>
  Object.fromEntries([...model.namedParameters()].map(([name, { grad }]) => [name, data(grad)]));
const weights = (model: Small) => [...model.namedParameters().values()].map(data);

const model = new Small(rank + 1); // different weights on each rank: all receive rank 0's
const alone = new Small(1);
const events: string[] = [];
const { mpi } = worldOf("test").connection!;
const plain = mpi.allReduce.bind(mpi);
mpi.allReduce = (...values) => {
  events.push("exchange");
  return plain(...values);
};
const parallel = d.dataParallel(model, { bucketBytes: 40 });
results["weights"] = {
  equal: JSON.stringify(weights(model)) === JSON.stringify(weights(alone)),
  buffer: data(model.scale),
};

const options = { lr: 0.05, betas: [0.9, 0.99] } as const;
const optimizer = new optim.AdamW(model.parameters(), options);
const plainOptimizer = new optim.AdamW(alone.parameters(), options);
const scaler = new optim.GradScaler({ initialScale: 64 });
const plainScaler = new optim.GradScaler({ initialScale: 64 });

/** A step of two passes, the first without an exchange; clipped, and scaled from the third step on. */
for (let step = 0; step < 5; step++) {
  for (const each of [optimizer, plainOptimizer]) each.zeroGrad();
  const scaled = (loss: Tensor, by: optim.GradScaler) => (step > 2 ? by.scale(loss) : loss);
  parallel.noSync(() => backward(scaled(lossOf(model, rank, step), scaler)));
  events.push(`step ${step}`);
  backward(scaled(lossOf(model, rank, step + 10, step === 3 && rank === 1), scaler));
  for (let own = 0; own < worldSize; own++) {
    const share = (loss: Tensor) => scaled(mul(loss, 1 / worldSize) as Tensor, plainScaler);
    backward(share(lossOf(alone, own, step)));
    backward(share(lossOf(alone, own, step + 10, step === 3 && own === 1)));
  }
  results[`gradients ${step}`] = [gradients(model), gradients(alone)];
  if (step > 2) {
    scaler.unscale(optimizer);
    plainScaler.unscale(plainOptimizer);
  }
  const norms = [optim.clipGradNorm(model.parameters(), 0.5), optim.clipGradNorm(alone.parameters(), 0.5)];
  results[`norms ${step}`] = norms.map((norm) => norm.item());
  if (step > 2) {
    scaler.step(optimizer);
    plainScaler.step(plainOptimizer);
    for (const each of [scaler, plainScaler]) each.update();
  } else for (const each of [optimizer, plainOptimizer]) each.step();
}
results["events"] = events;
results["after"] = [weights(model), weights(alone)];
results["everywhere"] = weights(model).flatMap((values) => data(d.allReduce(tensor(values!), { op: "max" })));

// an overflow of one rank is skipped by all
const before = JSON.stringify(weights(model));
optimizer.zeroGrad();
backward(mul(scaler.scale(lossOf(model, rank, 0)), rank === 1 ? Number.POSITIVE_INFINITY : 1) as Tensor);
scaler.step(optimizer);
scaler.update();
results["skipped"] = { same: JSON.stringify(weights(model)) === before, scale: scaler.scale(tensor(1)).item() };

// a rank whose pass reaches no parameter takes part by sync()
optimizer.zeroGrad();
if (rank === 0) parallel.sync();
else backward(lossOf(model, rank, 0));
results["sync"] = data(model.second.bias);
results["one rank had none"] = gradients(model);

parallel.detach();
optimizer.zeroGrad();
backward(lossOf(model, rank, 0));
noGrad(() => (results["detached"] = data(model.second.bias!.grad)));

await Bun.write(join(process.argv[2], `rank-${rank}.json`), JSON.stringify(results, toJson));
await d.finalize();
