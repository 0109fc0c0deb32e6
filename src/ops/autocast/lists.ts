/**
 * The dtypes in which operations compute under `autocast`, by the operations' names: PyTorch's lists for CUDA, in
 * aten/src/ATen/autocast_mode.h. Operations in no list compute in the dtype of their operands.
 */

/** Products: computed in the lower dtype. */
const lower = [
  "matmul",
  "mm",
  "bmm",
  "linear",
  "einsum",
  "inner",
  "multiDot",
  "addmm",
  "addmv",
  "addr",
  "addbmm",
  "baddbmm",
  "prelu",
  "conv1d",
  "conv2d",
  "conv3d",
  "convTranspose1d",
  "convTranspose2d",
  "convTranspose3d",
  "scaledDotProductAttention",
  "flashAttention",
];

/**
 * Exponentials and logarithms, sums, norms, and losses: computed in float32. Unlike in PyTorch, this includes all
 * normalizations.
 */
const full = [
  "acos",
  "asin",
  "cosh",
  "erfinv",
  "exp",
  "expm1",
  "log",
  "log10",
  "log1p",
  "log2",
  "pow",
  "reciprocal",
  "rsqrt",
  "sinh",
  "softplus",
  "tan",
  "cumprod",
  "cumsum",
  "logsumexp",
  "norm",
  "prod",
  "sum",
  "softmax",
  "logSoftmax",
  "softmin",
  "addLayerNorm",
  "addRmsNorm",
  "batchNorm",
  "groupNorm",
  "instanceNorm",
  "layerNorm",
  "localResponseNorm",
  "normalize",
  "renorm",
  "rmsNorm",
  "cdist",
  "cosineSimilarity",
  "dist",
  "pdist",
  "pairwiseDistance",
  "binaryCrossEntropy",
  "binaryCrossEntropyWithLogits",
  "cosineEmbeddingLoss",
  "crossEntropy",
  "ctcLoss",
  "gaussianNllLoss",
  "hingeEmbeddingLoss",
  "huberLoss",
  "klDiv",
  "l1Loss",
  "marginRankingLoss",
  "mseLoss",
  "multiMarginLoss",
  "multilabelMarginLoss",
  "multilabelSoftMarginLoss",
  "nllLoss",
  "poissonNllLoss",
  "smoothL1Loss",
  "softMarginLoss",
  "tripletMarginLoss",
  "tripletMarginWithDistanceLoss",
  "interpolate",
];

/** Computed in the widest dtype of the operands. */
const widest = [
  "addcdiv",
  "addcmul",
  "atan2",
  "bilinear",
  "cat",
  "cross",
  "dot",
  "gridSample",
  "indexAdd",
  "indexCopy",
  "indexPut",
  "scatter",
  "scatterAdd",
  "scatterReduce",
  "stack",
  "tensordot",
];

/** How an operation chooses its dtype. */
export type CastRule = "lower" | "full" | "widest";

/** The rules by operation. */
export const castRules: ReadonlyMap<string, CastRule> = new Map([
  ...lower.map((name) => [name, "lower"] as const),
  ...full.map((name) => [name, "full"] as const),
  ...widest.map((name) => [name, "widest"] as const),
]);
