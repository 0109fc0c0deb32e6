/** Types of layers and of values read from tensors: the compiler is the test (`bun run check`). */
import { type Complex, data, type FloatDType, nn, randn, relu, type Tensor, tensor, zeros } from "../../src/index.ts";
import type { Equals, IsAny, True } from "./expect.ts";

const plain = new nn.Linear(2, 3);
const half = new nn.Linear(2, 3, { dtype: "float16" });
const stated = new nn.Linear<"float32">(2, 3, false);
const norm = new nn.LayerNorm(3, { dtype: "bfloat16" });
const rms = new nn.RMSNorm(3, 1e-6, { dtype: "float64" });
const rows = new nn.Embedding(10, 3, { dtype: "float16" });
const bag = new nn.EmbeddingBag(10, 3, { dtype: "float16", mode: "sum" });
const indices = tensor([1, 2], { dtype: "int32" });

export type Layers = [
  // The dtype of a layer without an option is any float dtype, since to() may convert it.
  True<Equals<typeof plain, nn.Linear<FloatDType>>>,
  True<Equals<typeof plain.weight, Tensor<FloatDType>>>,
  True<Equals<typeof half, nn.Linear<"float16">>>,
  True<Equals<typeof half.weight, Tensor<"float16">>>,
  True<Equals<typeof half.bias, Tensor<"float16"> | null>>,
  True<Equals<typeof stated.weight, Tensor<"float32">>>,
  True<Equals<typeof norm.weight, Tensor<"bfloat16"> | null>>,
  True<Equals<typeof rms.weight, Tensor<"float64"> | null>>,
  True<Equals<typeof rows.weight, Tensor<"float16">>>,
];

const x = randn([4, 2]);
const out = half.forward(x.to("float16"));
const plainOut = plain.forward(x);
const normed = norm.forward(x);
const looked = rows.forward(indices);
const reduced = bag.forward(indices);
export type Forward = [
  True<Equals<typeof out, Tensor<"float16">>>,
  True<Equals<typeof plainOut, Tensor<FloatDType>>>,
  True<Equals<typeof normed, Tensor<"bfloat16">>>,
  True<Equals<typeof looked, Tensor<"float16">>>,
  True<Equals<typeof reduced, Tensor<"float16">>>,
];

// A layer of one dtype is a layer, and a module.
export const layers: readonly nn.Linear[] = [plain, half, stated];
export const others: readonly [nn.LayerNorm, nn.RMSNorm, nn.Embedding, nn.EmbeddingBag] = [norm, rms, rows, bag];
export const chain = new nn.Sequential(half, norm);

const matrix = tensor([[1, 2]]).toArray({ rank: 2 });
const flags = x.gt(0).toArray({ rank: 1 });
const single = tensor(1n).toArray({ rank: 0 });
const unknownRank = x.toArray();
export type Arrays = [
  True<Equals<typeof matrix, number[][]>>,
  True<Equals<typeof flags, boolean[]>>,
  True<Equals<typeof single, bigint>>,
  True<IsAny<typeof unknownRank>>,
];

const loss = plainOut.sum().item();
const lossOfHalf = out.mean().item();
const whole = tensor([1n]).item();
const truth = tensor([true]).item();
const integer = zeros([1], { dtype: "int32" }).item();
const some = (tensor([1]) as Tensor).item();
const compared = x.gt(0).all().item();
const index = x.argmax().item();
export type Items = [
  True<Equals<typeof loss, number>>,
  True<Equals<typeof lossOfHalf, number>>,
  True<Equals<typeof whole, bigint>>,
  True<Equals<typeof truth, boolean>>,
  True<Equals<typeof integer, number>>,
  True<Equals<typeof some, number | bigint | boolean | Complex>>,
  True<Equals<typeof compared, boolean>>,
  True<Equals<typeof index, bigint>>,
];

const named = new nn.Sequential(plain, half, relu);
const functions = new nn.Sequential(half, (given: Tensor) => given.gt(0));
const unknownSteps = new nn.Sequential(...layers);
const keeping = new nn.Sequential(half, new nn.ReLU(), new nn.Dropout(0.1), new nn.Flatten(), new nn.Sigmoid());
const convolving = new nn.Sequential(new nn.Conv2d(1, 2, 3), new nn.BatchNorm2d(2), new nn.GELU(), new nn.MaxPool2d(2));
const activated = new nn.ReLU().forward(half.forward(x));
const batches = new data.DataLoader(new data.TensorDataset(x, zeros([4], { dtype: "int64" })), 2);
const collated = data.collate([{ image: new Uint8Array(2), score: 1, label: "a", place: [1n, true] as const }]);
async function firstBatch() {
  for await (const [images, labels] of batches) return { images, labels };
  return undefined;
}
const [batchSize, sequence] = x.sizes(2);
const [query, key, value] = x.chunk(3);
const [left] = half.forward(x).split([1, 2], 1);
const someParts = x.chunk(x.rank);
const manyParts = x.chunk(1000);
export type WithoutCasts = [
  True<Equals<ReturnType<typeof chain.forward>, Tensor<"bfloat16">>>,
  True<Equals<ReturnType<typeof named.forward>, Tensor<"float16">>>,
  True<Equals<ReturnType<typeof functions.forward>, Tensor<"bool">>>,
  True<Equals<ReturnType<typeof unknownSteps.forward>, Tensor>>,
  True<Equals<ReturnType<typeof keeping.forward>, Tensor<"float16">>>,
  True<Equals<ReturnType<typeof convolving.forward>, Tensor<FloatDType>>>,
  True<Equals<typeof activated, Tensor<"float16">>>,
  True<
    Equals<Awaited<ReturnType<typeof firstBatch>>, { images: Tensor<"float32">; labels: Tensor<"int64"> } | undefined>
  >,
  True<Equals<typeof collated.image, Tensor<"uint8">>>,
  True<Equals<typeof collated.score, Tensor<"float32">>>,
  True<Equals<typeof collated.label, string[]>>,
  True<Equals<typeof collated.place, [Tensor<"int64">, Tensor<"bool">]>>,
  True<Equals<typeof batchSize | typeof sequence, number>>,
  True<Equals<typeof query | typeof key | typeof value, Tensor<"float32">>>,
  True<Equals<typeof left, Tensor<"float16">>>,
  True<Equals<typeof someParts, Tensor<"float32">[]>>,
  True<Equals<typeof manyParts, Tensor<"float32">[]>>,
];
// A chain of known steps is a chain, and a module.
export const chains: readonly nn.Sequential[] = [named, functions, unknownSteps];
