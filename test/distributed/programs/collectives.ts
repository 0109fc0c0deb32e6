/** Every call on every dtype, blocking and as promises. Each rank writes its results. */
import { join } from "node:path";
import { backward, distributed as d, mul, sum, type Tensor, tensor, transpose } from "../../../src/index.ts";
import { toJson } from "../json.ts";
import { asDType, dtypes, elementsOf, SIZE } from "../samples.ts";

const { rank, worldSize } = await d.init();
const results: Record<string, unknown> = {};
const isInexact = (dtype: string) => dtype.includes("float");
const data = (x: Tensor) => Array.from(x.dataSync() as ArrayLike<number | bigint>);

for (const dtype of dtypes) {
  const x = tensor(asDType(dtype, elementsOf(rank, SIZE)), { dtype });
  const ops = dtype === "bool" ? (["max", "min"] as const) : (["sum", "max", "min"] as const);
  for (const op of [...ops, ...(isInexact(dtype) ? (["mean"] as const) : [])]) {
    results[`allReduce ${dtype} ${op}`] = data(d.allReduce(x, { op }));
    results[`reduceScatter ${dtype} ${op}`] = data(d.reduceScatter(x, { op }));
  }
  results[`broadcast ${dtype}`] = data(d.broadcast(x, { src: worldSize - 1 }));
  results[`allGather ${dtype}`] = data(d.allGather(x));
  results[`allToAll ${dtype}`] = data(d.allToAll(x));
  results[`unchanged ${dtype}`] = data(x);
  const pending = [
    d.allReduceAsync(x, { op: "max" }),
    d.broadcastAsync(x, { src: worldSize - 1 }),
    d.allGatherAsync(x),
    d.reduceScatterAsync(x, { op: "max" }),
    d.allToAllAsync(x),
  ];
  await d.barrierAsync();
  results[`async ${dtype}`] = (await Promise.all(pending)).map(data);
  const [next, previous] = [(rank + 1) % worldSize, (rank + worldSize - 1) % worldSize];
  const sent = d.sendAsync(x, { dst: next, tag: 3 });
  results[`receive ${dtype}`] = data(d.receive([SIZE], { src: previous, dtype, tag: 3 }));
  await sent;
}

// 256 + 1 + 1 + … of bfloat16, whose step there is 2: in float32, rounded once
results["one rounding"] = data(d.allReduce(tensor([rank === 0 ? 256 : 1], { dtype: "bfloat16" })));
const special = [rank === 1 ? Number.NaN : rank, rank === 0 ? -Infinity : -0, rank === 0 ? Infinity : 1, -rank - 1];
for (const dtype of ["float64", "float32", "float16"] as const)
  for (const op of ["max", "min"] as const)
    results[`special ${dtype} ${op}`] = data(d.allReduce(tensor(special, { dtype }), { op }));

const grid = tensor([elementsOf(rank, 3), elementsOf(rank + 1, 3)]);
results["of a view"] = data(d.allReduce(transpose(grid, 0, 1)));
const inPlace = tensor(elementsOf(rank, SIZE));
const returned = d.allReduce(inPlace, { inPlace: true });
results["in place"] = { elements: data(inPlace), isX: returned === inPlace };
const half = tensor(elementsOf(rank, 4), { dtype: "float16" });
await d.allReduceAsync(half, { op: "mean", inPlace: true });
results["in place, float16"] = data(half);
const column = transpose(tensor([elementsOf(rank, 3), elementsOf(rank + 1, 3)]), 0, 1);
results["in place, a view"] = data(d.broadcast(column, { src: 1, inPlace: true }));
results["of nothing"] = data(d.allReduce(tensor([], { dtype: "float32" })));
results["of a scalar"] = d.allGather(tensor(rank + 0.5)).toArray();

/** The gradient with respect to x of Σ wᵢ · yᵢ, with this rank's weights. */
function gradientOf(call: (x: Tensor) => Tensor): unknown {
  const x = tensor(elementsOf(rank, SIZE), { requiresGrad: true });
  const y = call(x);
  backward(sum(mul(y, tensor(elementsOf(rank + 5, y.size)))));
  return data(x.grad!);
}
results["gradient allReduce sum"] = gradientOf((x) => d.allReduce(x));
results["gradient allReduce mean"] = gradientOf((x) => d.allReduce(x, { op: "mean" }));
results["gradient allGather"] = gradientOf((x) => d.allGather(x));
results["gradient reduceScatter sum"] = gradientOf((x) => d.reduceScatter(x));
results["gradient reduceScatter mean"] = gradientOf((x) => d.reduceScatter(x, { op: "mean" }));
results["gradient broadcast"] = gradientOf((x) => d.broadcast(x, { src: 1 }));
results["gradient allToAll"] = gradientOf((x) => d.allToAll(x));
const scalar = tensor(2, { requiresGrad: true });
backward(sum(mul(d.allGather(scalar), tensor(elementsOf(rank, worldSize)))));
results["gradient of a scalar"] = scalar.grad!.toArray();

const later = tensor(elementsOf(rank, SIZE), { requiresGrad: true });
const gathered = await d.allReduceAsync(later);
backward(sum(mul(gathered, tensor(elementsOf(rank + 5, SIZE)))));
results["gradient allReduceAsync"] = data(later.grad!);

await Bun.write(join(process.argv[2], `rank-${rank}.json`), JSON.stringify(results, toJson));
await d.finalize();
