/** A model with sharded gradients and optimizer state, and one with whole ones, trained alike. */
import { join } from "node:path";
import { worldOf } from "../../../src/distributed/world.ts";
import {
  backward,
  distributed as d,
  Generator,
  mul,
  nn,
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

const { rank } = await d.init();
const results: Record<string, unknown> = {};
const data = (x: Tensor | null) => (x === null ? null : Array.from(x.dataSync() as ArrayLike<number>));

class Small extends nn.Module<[x: Tensor], Tensor> {
  readonly layers: nn.ModuleList<nn.Linear>;
  readonly unused: nn.Linear;
  constructor() {
    super();
    const generator = new Generator(7);
    const sizes = [3, 16, 16, 16, 2];
    const layers = [0, 1, 2, 3].map((at) => new nn.Linear(sizes[at], sizes[at + 1], { generator }));
    this.layers = new nn.ModuleList(layers);
    this.unused = new nn.Linear(2, 2, { generator });
  }
  forward(x: Tensor): Tensor {
    let y = x;
    for (const layer of this.layers) y = relu(layer.forward(y));
    return y;
  }
}

const calls: string[] = [];
const { mpi } = worldOf("test").connection!;
for (const name of ["allReduce", "reduceScatterParts"] as const) {
  const plain = mpi[name].bind(mpi) as (...values: unknown[]) => never;
  (mpi as Record<typeof name, unknown>)[name] = (...values: unknown[]) => {
    calls.push(name);
    return plain(...values);
  };
}

const batchOf = (step: number) => {
  const x = elementsOf(rank + 3 * step, 12).map((value) => value / 8 - 0.5);
  return tensor([0, 1, 2, 3].map((row) => x.slice(row * 3, row * 3 + 3)));
};
const lossOf = (model: Small, step: number) => sum(square(sub(model.forward(batchOf(step)), 0.25)));

const setUp = (isSharded: boolean) => {
  const model = new Small();
  const parallel = d.dataParallel(model, { bucketBytes: 500 });
  const plain = new optim.AdamW(model.parameters(), { lr: 0.01 });
  return {
    model,
    parallel,
    optimizer: isSharded ? optim.sharded(plain) : plain,
    scaler: new optim.GradScaler({ initialScale: 64 }),
  };
};
const both = [setUp(true), setUp(false)] as const;

/** Two passes accumulated, clipped by both norms; scaled from step 2 on; in step 4 one rank's gradient overflows. */
for (let step = 0; step < 6; step++) {
  const norms = both.map(({ model, parallel, optimizer, scaler }) => {
    calls.length = 0;
    optimizer.zeroGrad();
    const scaled = (loss: Tensor) => (step < 2 ? loss : scaler.scale(loss));
    const [first] = model.parameters(); // only one rank has a gradient
    if (step === 4 && rank === 1) parallel.noSync(() => backward(mul(sum(first), Number.POSITIVE_INFINITY)));
    parallel.noSync(() => backward(scaled(lossOf(model, step))));
    backward(scaled(lossOf(model, step + 10)));
    if (optimizer === both[0].optimizer) results[`calls ${step}`] = [...new Set(calls)];
    if (step >= 2) scaler.unscale(optimizer);
    const most = optim.clipGradNorm(model.parameters(), Number.POSITIVE_INFINITY, { normType: Infinity });
    const norm = optim.clipGradNorm(model.parameters(), 0.5);
    if (step < 2) optimizer.step();
    else {
      scaler.step(optimizer);
      scaler.update();
    }
    return [most.item(), norm.item(), scaler.scale(tensor(1)).item()];
  });
  results[`norms ${step}`] = norms;
  results[`weights ${step}`] = both.map(({ model }) => model.parameters().flatMap((each) => data(each)!));
}

const bytesOf = ({ model, optimizer }: (typeof both)[number]) => ({
  gradients: model.parameters().reduce((bytes, { grad }) => bytes + (grad?.size ?? 0) * 4, 0),
  state: optimizer.slots.flatMap(({ state }) => Object.values(state)).reduce((bytes, { size }) => bytes + size * 4, 0),
});
results["bytes"] = both.map(bytesOf);

// a second exchange on top of the first would count the shares more than once
backward(lossOf(both[1].model, 0));
try {
  backward(lossOf(both[0].model, 0));
  results["not cleared"] = "no error";
} catch (error) {
  results["not cleared"] = (error as d.DistributedError).code;
}

await Bun.write(join(process.argv[2], `rank-${rank}.json`), JSON.stringify(results, toJson));
await d.finalize();
