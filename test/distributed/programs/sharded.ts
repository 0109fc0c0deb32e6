/** Optimizers with sharded state, compared with whole ones. */
import { join } from "node:path";
import { distributed as d, optim, type Tensor, tensor } from "../../../src/index.ts";
import { toJson } from "../json.ts";
import { elementsOf } from "../samples.ts";

const { rank } = await d.init();
const results: Record<string, unknown> = {};
const shapes = [[6, 4], [8], [3, 8], [5], [2, 2]] as const;

const make = () =>
  shapes.map((shape, at) => {
    const size = shape.reduce((product: number, length) => product * length, 1);
    const values = tensor(elementsOf(at, size)).reshape([...shape]);
    return tensor(values.toArray(), { requiresGrad: true, dtype: at === 3 ? "bfloat16" : "float32" });
  });
const data = (x: Tensor) => Array.from(x.dataSync() as ArrayLike<number>);
const stateBytes = (optimizer: { stateDict(): { tensors: Readonly<Record<string, Tensor>> } }) =>
  Object.values(optimizer.stateDict().tensors).reduce((sum, { size }) => sum + size * 4, 0);

const kinds = {
  AdamW: (list: Tensor[]) => new optim.AdamW(list, { lr: 0.01, masterWeights: true }),
  SGD: (list: Tensor[]) => new optim.SGD(list, { lr: 0.01, momentum: 0.9 }),
  Adafactor: (list: Tensor[]) => new optim.Adafactor(list, { lr: 0.01 }),
  ASGD: (list: Tensor[]) => new optim.ASGD(list, { lr: 0.01, t0: 1, masterWeights: true }),
  Rprop: (list: Tensor[]) => new optim.Rprop(list, { lr: 0.01, masterWeights: true }),
};
for (const [name, build] of Object.entries(kinds)) {
  const [parameters, plain] = [make(), make()];
  const optimizers = [optim.sharded(build(parameters)), build(plain)] as const;
  const step = (own: (typeof optimizers)[number], list: Tensor[], at: number) => {
    for (const [index, parameter] of list.entries()) {
      const values = elementsOf(at + index, parameter.size).map((value) => value / 16 - 0.25);
      parameter.grad =
        index === 4 && at === 0 ? null : tensor(values, { dtype: parameter.dtype }).reshape([...parameter.shape]);
    }
    own.step();
  };
  for (const at of [0, 1, 2]) {
    step(optimizers[0], parameters, at);
    step(optimizers[1], plain, at);
  }
  results[name] = [parameters.map(data), plain.map(data)];
  const held = optimizers[0].slots.flatMap(({ state }) => Object.values(state));
  results[`${name} bytes`] = [held.reduce((sum, { size }) => sum + size * 4, 0), stateBytes(optimizers[1])];
  const [whole, expected] = [optimizers[0].stateDict(), optimizers[1].stateDict()];
  const shown = ({ steps, tensors }: typeof whole) => ({
    steps,
    tensors: Object.fromEntries(Object.entries(tensors).map(([key, x]) => [key, data(x)])),
  });
  results[`${name} state`] = [shown(whole), shown(expected)];
  const other = make();
  const resumed = optim.sharded(build(other));
  for (const [index, parameter] of other.entries()) parameter.storage.hostBytes().set(plain[index].storage.hostBytes());
  resumed.loadStateDict(expected);
  step(resumed, other, 7);
  step(optimizers[1], plain, 7);
  results[`${name} resumed`] = [other.map(data), plain.map(data)];
}

await Bun.write(join(process.argv[2], `rank-${rank}.json`), JSON.stringify(results, toJson));
await d.finalize();
