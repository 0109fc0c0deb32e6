/** A valid call of every operation, from which tests of all operations start. */
import { signatures } from "../../src/core/parameters.ts";
import { type Definition, definitions } from "../../src/ops/elementwise/define.ts";
import * as operations from "../../src/ops/index.ts";
import { Tensor } from "../../src/tensor/tensor.ts";

type Functions = typeof operations;
/** The operations by their names. */
export type OperationName = {
  [Name in keyof Functions]: Functions[Name] extends (...values: never) => unknown ? Name : never;
}[keyof Functions];

const functions = operations as Readonly<Record<string, unknown>>;

/** The operations' names, as they are exported. */
export const operationNames = Object.entries(functions).flatMap(([name, value]) =>
  typeof value === "function" ? [name as OperationName] : [],
);

/**
 * Elementwise operations that accept only integers, or that accept a number as the first operand. They have separate
 * rows.
 */
const ofTheirOwn: ReadonlySet<string> = new Set(["gcd", "lcm", "polygamma", "bitwiseLeftShift", "bitwiseRightShift"]);

/**
 * Kinds of operations whose calls and mistakes are generated: elementwise ones, and functions of real numbers composed
 * of them.
 */
export const kinds = {
  unary: named(({ operands, takes }) => operands === 1 && takes !== "bits"),
  binary: named(({ operands, takes, name }) => operands === 2 && takes !== "bits" && !ofTheirOwn.has(name)),
  unaryOfBits: named(({ operands, takes }) => operands === 1 && takes === "bits"),
  binaryOfBits: named(({ operands, takes }) => operands === 2 && takes === "bits"),
  unaryOfNumbers: named(({ operands, takes }) => operands === 1 && takes === "numbers"),
  binaryOfNumbers: named(({ operands, takes }) => operands === 2 && takes === "numbers"),
  /** Operations on real numbers whose other arguments have defaults. */
  float: operationNames.filter((name) => (functions[name] as { method?: string }).method === "float"),
} as const;

function named(applies: (definition: Definition) => boolean): readonly OperationName[] {
  return operationNames.filter((name) => definitions.has(name) && applies(definitions.get(name)!));
}

const { expand, ones, tensor, zeros } = operations;

/** Operands of the calls: matrices of size × size, and related tensors. */
const makers = {
  x: (size: number) => ones([size, size]),
  y: (size: number) => ones([size, size]),
  vector: (size: number) => ones([size]),
  other: (size: number) => ones([size]),
  batch: (size: number) => ones([1, size, size]),
  single: (size: number) => ones([1, size]),
  signal: (size: number) => ones([1, 1, size]),
  picture: (size: number) => ones([1, 1, size, 3]),
  volume: (size: number) => ones([1, 1, size, 3, 3]),
  triples: (size: number) => ones([size, 3]),
  integers: (size: number) => ones([size, size], { dtype: "int32" }),
  bytes: (size: number) => ones([size, size], { dtype: "uint8" }),
  mask: (size: number) => ones([size, size], { dtype: "bool" }),
  indices: (size: number) => ones([size, size], { dtype: "int64" }),
  complexes: (size: number) => ones([size, size], { dtype: "complex64" }),
  pairs: (size: number) => ones([size, 2]),
  places: (size: number) => ones([size], { dtype: "int64" }),
  value: () => tensor(1),
} as const;

export type Operands = { readonly [Name in keyof typeof makers]: ReturnType<(typeof makers)[Name]> };

const makerOf = (name: string) => makers[name as keyof typeof makers];

/** Makes all operands. */
export const makeOperands = (size: number): Operands =>
  Object.fromEntries(Object.keys(makers).map((name) => [name, makerOf(name)(size)])) as unknown as Operands;

/** Operands that are created when they are first read, because a call reads only a few of them. */
export const operandsOnDemand = (size: number): Operands =>
  new Proxy<Record<string, Tensor>>(
    {},
    { get: (made, name: string) => (made[name] ??= makerOf(name)(size)) },
  ) as unknown as Operands;

type Arguments = (operands: Operands) => readonly unknown[];

const unary: Arguments = ({ x }) => [x];
const binary: Arguments = ({ x, y }) => [x, y];
const along: Arguments = ({ x }) => [x, { dim: 1 }];
const sized: Arguments = ({ x }) => [x.shape];
const counted: Arguments = ({ vector }) => [vector.size];

let made: Tensor[] = [];

/** A view of a tensor, as a leaf that requires a gradient: `tidy` leaves it to {@link disposeLeaves}. */
export function leafOf({ storage, dtype, shape, strides, offset }: Tensor): Tensor {
  const leaf = new Tensor(storage, dtype, shape, strides, offset);
  leaf.requiresGrad = true;
  made.push(leaf);
  return leaf;
}

/** Disposes of all leaves and their gradients. */
export function disposeLeaves(): void {
  for (const leaf of made) {
    leaf.grad?.dispose();
    leaf.dispose();
  }
  made = [];
}

/** Calls of operations along one, two and three axes. */
const ofAxes = (name: string, values: (x: Tensor) => readonly unknown[]): Readonly<Record<string, Arguments>> => ({
  [`${name}1d`]: ({ signal }) => values(signal),
  [`${name}2d`]: ({ picture }) => values(picture),
  [`${name}3d`]: ({ volume }) => values(volume),
});

/** The arguments of operations that belong to none of the kinds above. */
const others: Readonly<Partial<Record<OperationName, Arguments>>> = {
  addbmm: ({ x, batch }) => [x, batch, batch],
  addcdiv: ({ x, y, vector }) => [x, y, vector],
  addcmul: ({ x, y, vector }) => [x, y, vector],
  addmv: ({ vector, x, other }) => [vector, x, other],
  addr: ({ x, vector, other }) => [x, vector, other],
  baddbmm: ({ x, batch }) => [x, batch, batch],
  bilinear: ({ x, y, batch }) => [x, y, batch],
  bitwiseLeftShift: ({ integers, bytes }) => [integers, bytes],
  bitwiseRightShift: ({ integers, bytes }) => [integers, bytes],
  blockDiag: ({ x, vector }) => [[x, vector]],
  cartesianProd: ({ vector, other }) => [[vector, other]],
  combinations: ({ vector }) => [vector],
  dist: binary,
  dropout1d: ({ signal }) => [signal],
  dropout2d: ({ picture }) => [picture],
  dropout3d: ({ volume }) => [volume],
  dsplit: ({ batch }) => [batch, 2],
  complex: binary,
  floatPower: binary,
  frexp: unary,
  gradient: ({ x }) => [x, { edgeOrder: 1 }],
  ldexp: ({ x, integers }) => [x, integers],
  fmax: binary,
  fmin: binary,
  fractionalMaxPool2d: ({ picture }) => [picture, 2, { outputSize: 2 }],
  fractionalMaxPool3d: ({ volume }) => [volume, 2, { outputRatio: 0.6 }],
  hsplit: ({ x }) => [x, 2],
  gammainc: binary,
  gammaincc: binary,
  zeta: binary,
  imag: ({ complexes }) => [complexes],
  inner: binary,
  isin: binary,
  localResponseNorm: ({ picture }) => [picture, 2],
  logspace: ({ vector }) => [0, 1, vector.size],
  mvlgamma: ({ x }) => [x, 2],
  polar: binary,
  renorm: ({ x }) => [x, 2, 0, 1],
  tensordot: ({ x, y }) => [x, y, 1],
  trilIndices: ({ vector }) => [vector.size, 3],
  tripletMarginWithDistanceLoss: ({ x, y, single }) => [x, y, single],
  triuIndices: ({ vector }) => [vector.size, 3],
  vsplit: ({ x }) => [x, 2],
  gcd: ({ integers }) => [integers, integers],
  lcm: ({ integers }) => [integers, integers],
  polygamma: ({ x }) => [1, x],
  cosineEmbeddingLoss: ({ x, y, vector }) => [x, y, vector],
  cosineSimilarity: binary,
  gaussianNllLoss: ({ x, y, vector }) => [x, y, vector],
  hingeEmbeddingLoss: binary,
  huberLoss: binary,
  klDiv: binary,
  l1Loss: binary,
  marginRankingLoss: ({ x, y, vector }) => [x, y, vector],
  multiMarginLoss: ({ x, places, vector }) => [x, places, { weight: vector }],
  multilabelMarginLoss: ({ x, indices }) => [x, indices],
  multilabelSoftMarginLoss: ({ x, y, vector }) => [x, y, { weight: vector }],
  nllLoss: ({ x, places, vector }) => [x, places, { weight: vector }],
  normalize: unary,
  pairwiseDistance: binary,
  poissonNllLoss: binary,
  smoothL1Loss: binary,
  softMarginLoss: binary,
  tripletMarginLoss: ({ x, y, single }) => [x, y, single],
  binaryCrossEntropy: ({ x, y, vector }) => [x, y, { weight: vector }],
  bucketize: ({ x, vector }) => [x, vector],
  columnStack: ({ x, y }) => [[x, y]],
  cummax: along,
  cummin: along,
  diff: along,
  dstack: ({ x, y }) => [[x, y]],
  hstack: ({ x, y }) => [[x, y]],
  indexCopy: ({ x, places, y }) => [x, 1, places, y],
  indexFill: ({ x, places }) => [x, 1, places, 2],
  kthvalue: ({ x }) => [x, 1],
  logcumsumexp: along,
  maskedSelect: ({ x, mask }) => [x, mask],
  median: along,
  meshgrid: ({ vector, other }) => [[vector, other]],
  nanmedian: along,
  nanquantile: ({ x }) => [x, 0.5, { dim: 1 }],
  quantile: ({ x }) => [x, 0.5, { dim: 1 }],
  repeatInterleave: ({ x }) => [x, 2, { dim: 1 }],
  searchsorted: ({ vector, x }) => [vector, x],
  softmin: along,
  stdMean: along,
  take: ({ x, indices }) => [x, indices],
  tensorSplit: ({ x }) => [x, 2],
  threshold: ({ x }) => [x, 0, 1],
  vstack: ({ x, y }) => [[x, y]],
  batchNorm: ({ x, vector, other }) => [x, { weight: vector, bias: other, training: true }],
  groupNorm: ({ x, vector, other }) => [x, 2, { weight: vector, bias: other }],
  instanceNorm: ({ batch, vector, other }) => [batch, { weight: vector, bias: other }],
  ...ofAxes("conv", (x) => [x, x]),
  ...ofAxes("convTranspose", (x) => [x, x]),
  ...ofAxes("maxPool", (x) => [x, 2]),
  ...ofAxes("avgPool", (x) => [x, 2]),
  ...ofAxes("adaptiveAvgPool", (x) => [x, 2]),
  ...ofAxes("adaptiveMaxPool", (x) => [x, 2]),
  ...ofAxes("lpPool", (x) => [x, 2, 2]),
  ...ofAxes("maxUnpool", (x) => [x, expand(zeros([], { dtype: "int64" }), x.shape), 2]),
  unfold: ({ picture }) => [picture, 2],
  fold: ({ x }) => [x, [1, x.shape[1]], 1],
  pixelShuffle: ({ picture }) => [picture, 1],
  pixelUnshuffle: ({ picture }) => [picture, 1],
  channelShuffle: ({ picture }) => [picture, 1],
  interpolate: ({ picture }) => [picture, { scaleFactor: 2 }],
  gridSample: ({ picture }) => [picture, expand(zeros([]), [1, 2, 2, 2])],
  affineGrid: ({ x }) => [ones([1, 2, 3]), [1, 1, ...x.shape]],
  ctcLoss: ({ x, places }) => [x, places, [x.shape[0]], [1]],
  asStrided: ({ x }) => [x, x.shape, x.strides, { storageOffset: x.offset }],
  slidingWindows: ({ x }) => [x, 1, 2, 1],
  broadcastTensors: ({ x, y }) => [[x, y]],
  at: ({ x, places }) => [x, places],
  setAt: ({ x, places, y }) => [x, [places], y],
  indexPut: ({ x, places, y }) => [x, [places], y],
  scatterReduce: ({ x, indices, y }) => [x, 1, indices, y, "amax"],
  indexReduce: ({ x, places, y }) => [x, 1, places, y, "prod"],
  put: ({ x, indices, y }) => [x, indices, y],
  maskedScatter: ({ x, mask, y }) => [x, mask, y],
  bincount: ({ places, vector }) => [places, vector],
  histogram: ({ x }) => [x, 3],
  mode: along,
  addLayerNorm: ({ x, y, vector }) => [x, y, { weight: vector, bias: vector }],
  addRmsNorm: ({ x, y, vector }) => [x, y, { weight: vector }],
  add_: binary,
  addmm: ({ vector, x, y }) => [vector, x, y],
  all: along,
  amax: along,
  allClose: binary,
  amin: along,
  any: along,
  arange: counted,
  argmax: along,
  argmin: along,
  argsort: along,
  bernoulli: unary,
  binaryCrossEntropyWithLogits: ({ x, y, vector, other }) => [x, y, { weight: vector, posWeight: other }],
  bmm: ({ batch }) => [batch, batch],
  cat: ({ x, y }) => [[x, y], { dim: 1 }],
  cdist: binary,
  chunk: ({ x }) => [x, 3, { dim: 1 }],
  clamp: ({ x, y, value }) => [x, { min: value, max: y }],
  copy_: binary,
  cross: ({ triples }) => [triples, triples],
  crossEntropy: ({ x, places, vector }) => [x, places, { weight: vector }],
  cumprod: along,
  cumsum: along,
  div_: binary,
  dot: ({ vector, other }) => [vector, other],
  einsum: ({ x, y }) => ["ij,jk->ik", x, y],
  embedding: ({ indices, x }) => [indices, x],
  embeddingBag: ({ indices, x, y }) => [indices, x, { mode: "sum", perSampleWeights: y }],
  empty: sized,
  emptyLike: unary,
  equal: binary,
  expand: ({ single, x }) => [single, x.shape],
  eye: counted,
  fill_: ({ x }) => [x, 1],
  flashAttention: ({ batch }) => [batch, batch, batch],
  flip: ({ x }) => [x, [0, 1]],
  fromArray: ({ x }) => [new Float32Array(x.size), x.shape],
  full: ({ x }) => [x.shape, 1],
  fullLike: ({ x }) => [x, 1],
  gather: ({ x, indices }) => [x, indices, { dim: 1 }],
  isClose: binary,
  indexAdd: ({ x, places, y }) => [x, places, y, { dim: 1 }],
  indexSelect: ({ x, places }) => [x, places, { dim: 1 }],
  layerNorm: ({ x, vector, other }) => [x, { weight: vector, bias: other }],
  kron: ({ vector, other }) => [vector, other],
  lerp: ({ x, y, value }) => [x, y, value],
  linear: ({ x, y, vector }) => [x, y, vector],
  linspace: ({ vector }) => [0, 1, vector.size],
  logSoftmax: along,
  logsumexp: along,
  maskedFill: ({ x, mask, value }) => [x, mask, value],
  maskedFill_: ({ x, mask, value }) => [x, mask, value],
  matmul: binary,
  max: along,
  mean: along,
  min: along,
  mm: binary,
  movedim: ({ x }) => [x, 0, 1],
  mseLoss: binary,
  mul_: binary,
  multinomial: ({ x }) => [x, 3],
  narrow: ({ x }) => [x, 1, 0, 3],
  norm: along,
  normal: ({ x }) => [0, 1, x.shape],
  oneHot: ({ places }) => [places, { numClasses: 7 }],
  ones: sized,
  onesLike: unary,
  outer: ({ vector, other }) => [vector, other],
  pad: ({ x }) => [x, [1, 1]],
  permute: ({ x }) => [x, [1, 0]],
  prelu: ({ x, vector }) => [x, vector],
  prod: along,
  rand: sized,
  randLike: unary,
  randint: ({ x }) => [0, 9, x.shape],
  randintLike: ({ x }) => [x, 0, 9],
  randn: sized,
  randnLike: unary,
  randperm: counted,
  repeat: ({ x }) => [x, [1, 2]],
  reshape: ({ x }) => [x, [x.size]],
  rmsNorm: ({ x, vector }) => [x, { weight: vector }],
  roll: ({ x }) => [x, 1],
  scaledDotProductAttention: ({ batch }) => [batch, batch, batch],
  scatter: ({ x, indices, y }) => [x, indices, y, { dim: 1 }],
  scatterAdd: ({ x, indices, y }) => [x, indices, y, { dim: 1 }],
  select: ({ x }) => [x, 1, 0],
  selectScatter: ({ x, vector }) => [x, vector, 0, 0],
  sliceScatter: ({ x }) => [x, x, { start: 0, step: 1 }],
  unravelIndex: ({ indices }) => [indices, [4, 4]],
  slice: ({ x }) => [x, { dim: 1, start: 1, step: 2 }],
  softmax: along,
  sort: along,
  split: ({ x }) => [x, 4, { dim: 1 }],
  squeeze: ({ single }) => [single],
  stack: ({ x, y }) => [[x, y], { dim: 1 }],
  std: along,
  sub_: binary,
  sum: along,
  swapaxes: ({ x }) => [x, 0, 1],
  takeAlongDim: ({ x, indices }) => [x, indices, { dim: 1 }],
  tensor: ({ x }) => [new Float32Array(x.size), { shape: x.shape }],
  tile: ({ x }) => [x, [2]],
  toDType: ({ x }) => [x, "float16"],
  topk: ({ x }) => [x, 3, { dim: 1 }],
  transpose: ({ x }) => [x, 0, 1],
  unbind: along,
  unflatten: ({ x }) => [x, 1, [-1, 2]],
  uniform: ({ x }) => [0, 1, x.shape],
  unsqueeze: ({ x }) => [x, 1],
  var: along,
  varMean: along,
  variance: along,
  where: ({ mask, x, y }) => [mask, x, y],
  viewAsComplex: ({ pairs }) => [pairs],
  viewAsReal: ({ complexes }) => [complexes],
  zeros: sized,
  zerosLike: unary,
};

/** The arguments of each operation's calls. */
export const calls = Object.fromEntries(
  operationNames.map((name) => [name, others[name] ?? usualArguments(name)]),
) as Readonly<Record<OperationName, Arguments>>;

/** Methods whose other arguments have defaults. */
function isMethodOfOne(name: OperationName): boolean {
  const operation = functions[name] as ((...values: unknown[]) => unknown) & { readonly method?: string };
  const declared = signatures.get(name)?.parameters;
  const needed = declared ? Object.values(declared).filter(({ isRequired }) => isRequired).length : operation.length;
  return operation.method !== undefined && needed === 1;
}

function usualArguments(name: OperationName): Arguments {
  if (kinds.unaryOfBits.includes(name)) return ({ integers }) => [integers];
  if (isMethodOfOne(name)) return unary;
  if (kinds.binary.includes(name)) return binary;
  if (kinds.binaryOfBits.includes(name)) return ({ integers, bytes }) => [integers, bytes];
  throw new Error(`${name} has no call: add one to test/ops/calls.ts`);
}
