/** Invalid calls of operations: ranks, axes, indices and steps out of range. */
import { ArgumentError, ShapeError } from "../../../src/core/errors.ts";
import { ones, tensor } from "../../../src/index.ts";
import { each, far, highest, nine, rowsOf, three, whole } from "./table.ts";

export const ranks = rowsOf("a rank over 8", ShapeError, [
  ...each("zeros ones empty rand randn", () => [nine], "got rank 9", "at most 8"),
  ["full", () => [nine, 1], "got rank 9", "at most 8"],
  ["randint", () => [0, 1, nine], "got rank 9", "at most 8"],
  ...each("uniform normal", () => [0, 1, nine], "got rank 9", "at most 8"),
  ["bernoulli", () => [0.5, nine], "got rank 9", "at most 8"],
  ["tensor", () => [[[[[[[[[[1]]]]]]]]]], "got rank 9", "at most 8"],
  ["fromArray", () => [new Float32Array(1), nine], "got rank 9", "at most 8"],
  ["reshape", () => [highest(), nine], "got rank 9", "at most 8"],
  ["expand", () => [highest(), nine], "got rank 9", "at most 8"],
  ["unflatten", () => [highest(), 0, [1, 1]], "got rank 9", "at most 8"],
  ["unsqueeze", () => [highest(), 0], "got rank 9", "at most 8"],
  ["stack", () => [[highest()]], "got rank 9", "at most 8"],
  ...each("repeat tile", () => [highest(), nine], "got rank 9", "at most 8"),
  ["oneHot", () => [ones([1, 1, 1, 1, 1, 1, 1, 1], whole), { numClasses: 2 }], "got rank 9", "at most 8"],
  ["einsum", () => ["abcde,fghi->abcdefghi", ones([1, 1, 1, 1, 1]), ones([1, 1, 1, 1])], "got rank 9", "at most 8"],
]);

const outside = "from -2 to 1 for a tensor of rank 2";
export const axes = rowsOf("an axis out of range", ShapeError, [
  ...each(
    "all any amax amin max min argmax argmin sum prod mean std norm logsumexp varMean " +
      "argsort sort softmax logSoftmax cumsum cumprod unbind squeeze slice",
    ({ x }) => [x, { dim: 2 }],
    "got 2",
    outside,
  ),
  ["var", ({ x }) => [x, { dim: -3 }], "got -3", outside],
  ["sum", ({ x }) => [x, { dim: 0.5 }], "got 0.5", outside],
  ["topk", ({ x }) => [x, 1, { dim: 2 }], "got 2", outside],
  ...each(
    "median nanmedian nansum nanmean nanmax nanmin countNonzero aminmax stdMean diff trapezoid " +
      "cumulativeTrapezoid cummax cummin logcumsumexp glu softmin",
    ({ x }) => [x, { dim: 2 }],
    "got 2",
    outside,
  ),
  ...each("kthvalue tensorSplit repeatInterleave", ({ x }) => [x, 1, { dim: 2 }], "got 2", outside),
  ...each("quantile nanquantile", ({ x }) => [x, 0.5, { dim: 2 }], "got 2", outside),
  ...each("gumbelSoftmax", ({ x }) => [x, { dim: 2 }], "got 2", outside),
  ["renorm", ({ x }) => [x, 2, 2, 1], "got 2", outside],
  ["tensordot", ({ x }) => [x, x, [[2], [0]]], "got 2", outside],
  ["indexCopy", ({ x, places }) => [x, 2, places, x], "got 2", outside],
  ["scatterReduce", ({ x, indices }) => [x, 2, indices, x, "sum"], "got 2", outside],
  ["indexReduce", ({ x, places }) => [x, 2, places, x, "prod"], "got 2", outside],
  ["slidingWindows", ({ x }) => [x, 2, 1, 1], "got 2", outside],
  ["rot90", ({ x }) => [x, 1, [0, 2]], "got 2", outside],
  ["diagEmbed", ({ x }) => [x, { dim1: 3 }], "got 3", "from -3 to 2"],
  ...each("mode unique uniqueConsecutive", ({ x }) => [x, { dim: 2 }], "got 2", outside),
  ["indexFill", ({ x, places }) => [x, 2, places, 1], "got 2", outside],
  ["normalize", ({ x }) => [x, { dim: 2 }], "got 2", outside],
  ["cosineSimilarity", ({ x }) => [x, x, { dim: 2 }], "got 2", outside],
  ...each("split chunk", ({ x }) => [x, 1, { dim: 2 }], "got 2", outside),
  ...each("narrow", ({ x }) => [x, 2, 0, 1], "got 2", outside),
  ["select", ({ x }) => [x, -3, 0], "got -3", outside],
  ["transpose", ({ x }) => [x, 0, 2], "got 2", outside],
  ["swapaxes", ({ x }) => [x, 0, 2], "got 2", outside],
  ["movedim", ({ x }) => [x, 0, 2], "got 2", outside],
  ["permute", ({ x }) => [x, [0, 2]], "got 2", outside],
  ["flatten", ({ x }) => [x, { endDim: 2 }], "got 2", outside],
  ["unflatten", ({ x }) => [x, 2, [1]], "got 2", outside],
  ["unsqueeze", ({ x }) => [x, 3], "got 3", "from -3 to 2"],
  ["crossEntropy", ({ x, places }) => [x, places, { dim: 2 }], "got 2", outside],
  ["diagonal", ({ x }) => [x, { dim2: 2 }], "got 2", outside],
  ["flip", ({ x }) => [x, 2], "got 2", outside],
  ["roll", ({ x }) => [x, 1, { dims: 2 }], "got 2", outside],
  ["cat", ({ x }) => [[x], { dim: 2 }], "got 2", outside],
  ["stack", ({ x }) => [[x], { dim: 3 }], "got 3", "from -3 to 2"],
  ...each("gather takeAlongDim", ({ x, indices }) => [x, indices, { dim: 2 }], "got 2", outside),
  ["indexSelect", ({ x, places }) => [x, places, { dim: 2 }], "got 2", outside],
  ["scatterAdd", ({ x, indices }) => [x, indices, x, { dim: 2 }], "got 2", outside],
  ["scatter", ({ x, indices }) => [x, indices, x, { dim: 2 }], "got 2", outside],
  ["indexAdd", ({ x, places }) => [x, places, x, { dim: 2 }], "got 2", outside],
  ...each("slice narrow", ({ value }) => [value, 0, 0, 1], "got float32[]", "expected a tensor of at least rank 1"),
  ["select", ({ value }) => [value, 0, 0], "got float32[]", "expected a tensor of at least rank 1"],
]);

const right = () => tensor([0n, 1n, 1n]);
const farther = () => tensor([[0n, -2n], [1n, 1n]]); // biome-ignore format: rows
const square = () => tensor([[1, 2], [3, 4]]); // biome-ignore format: rows
export const indices = rowsOf("an index out of range", ShapeError, [
  ["gather", () => [square(), farther(), { dim: 1 }], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["takeAlongDim", () => [three(), far()], "got 7 at [1]", "indices of -3 to 2"],
  ["indexSelect", () => [three(), far(), { dim: 0 }], "got 7 at [1]", "indices of 0 to 2"],
  ["scatterAdd", () => [square(), farther(), square(), { dim: 1 }], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["scatter", () => [square(), farther(), square(), { dim: 1 }], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["indexAdd", () => [three(), far(), three(), { dim: 0 }], "got 7 at [1]", "indices of 0 to 2"],
  ["scatterReduce", () => [square(), 1, farther(), square(), "sum"], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["scatterReduce", () => [square(), 1, farther(), square(), "amax"], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["put", () => [three(), far(), three()], "got 7 at [1]", "indices of -3 to 2"],
  ["bincount", () => [tensor([1n, -1n])], "got -1 at [1]", "indices of 0 to 1"],
  ["setAt", () => [three(), [5], 0], "got 5", "expected indices of -3 to 2"],
  ["oneHot", () => [far(), { numClasses: 7 }], "got 7 at [1]", "indices of 0 to 6"],
  ["oneHot", () => [tensor([2n, -1n])], "got -1 at [1]", "indices of 0 to 2"],
  ["embedding", () => [far(), square()], "got 7 at [1]", "indices of 0 to 1"],
  ["embedding", () => [farther(), square()], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["embedding", () => [far(), ones([0, 2])], "got 3", "an axis without elements"],
  ["embeddingBag", () => [far(), ones([0, 2]), { offsets: tensor([0n]) }], "got 3", "without elements"],
  ["embeddingBag", () => [farther(), square()], "got -2 at [0, 1]", "indices of 0 to 1"],
  ["embeddingBag", () => [far(), square(), { offsets: tensor([0n]) }], "got 7 at [1]", "indices of 0 to 1"],
  ["embeddingBag", () => [right(), square(), { offsets: tensor([1n, 2n]) }], "got 1 at [0]", "from 0"],
  ["embeddingBag", () => [right(), square(), { offsets: tensor([0n, 2n, 1n]) }], "got 1 at [2]", "ascending"],
  ["embeddingBag", () => [right(), square(), { offsets: tensor([0n, 4n]) }], "got 4 at [1]", "at most 3"],
  ["crossEntropy", () => [square(), tensor([1n, 2n])], "got 2 at [1]", "indices of 0 to 1"],
  ["crossEntropy", () => [square(), tensor([-1n, 0n])], "got -1 at [0]", "indices of 0 to 1"],
  ["crossEntropy", () => [ones([3, 0]), far()], "got 3", "an axis without elements"],
  ["gather", () => [ones([0]), far(), { dim: 0 }], "got 3", "an axis without elements"],
  ["indexSelect", () => [ones([0]), far(), { dim: 0 }], "got 3", "an axis without elements"],
  ["select", () => [three(), 0, 3], "got 3", "from -3 to 2"],
  ["narrow", () => [three(), 0, 2, 2], "got 2 elements from index 2", "has 3"],
]);

export const steps = rowsOf("a step that leads nowhere", ArgumentError, [
  ["slice", ({ x }) => [x, { step: -1 }], "got -1", "expected step to be a whole number of at least 1"],
  ["slice", ({ x }) => [x, { step: 0 }], "got 0", "expected step to be a whole number of at least 1"],
  ["arange", () => [0, 5, -1], "a step of -1", "change the sign"],
  ["arange", () => [0, 5, 0], "step", "other than 0"],
]);
