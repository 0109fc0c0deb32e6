/** Every layer and loss of nn through `compile`, on cpu: results and gradients are bit-identical to plain calls. */
import { describe, expect, test } from "bun:test";
import * as orchard from "../../src/index.ts";
import { compile, manualSeed, nn, rand, randint, type Tensor, withBackend } from "../../src/index.ts";
import { hash } from "../ops/samples.ts";
import { repeats } from "../support/repeats.ts";

type Run = (x: Tensor) => unknown;

/** A layer, the shape of its argument, and its call; by default `forward` on the argument. */
type Row = readonly [layer: nn.Module, shape: readonly number[], run?: Run];

const ofRows = [6, 8] as const;
const shapes = { 1: [2, 4, 12], 2: [2, 4, 6, 8], 3: [1, 4, 4, 4, 6] } as const;
const dimensions = [1, 2, 3] as const;

const call = (layer: nn.Module, ...values: unknown[]): unknown =>
  (layer as nn.Module<unknown[], unknown>).forward(...values);

const plain = ["CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity"] as const;
const more = ["LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU"] as const;
const rest = ["SiLU", "Sigmoid", "Softmax", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh"] as const;
const others = ["Tanhshrink", "Dropout", "AlphaDropout", "FeatureAlphaDropout"] as const;

type Classes = Readonly<Record<string, new (...values: unknown[]) => nn.Module>>;
const classes = nn as unknown as Classes;
const made = (name: string, ...values: unknown[]): nn.Module => new classes[name](...values);

/** Layers whose constructors differ only in the number of dimensions. */
const byDimension: Readonly<Record<string, readonly unknown[]>> = {
  AdaptiveAvgPool: [3],
  AdaptiveMaxPool: [3],
  AvgPool: [2],
  MaxPool: [2],
  LPPool: [2, 2],
  Dropout: [0.3],
  BatchNorm: [4],
  InstanceNorm: [4, { affine: true }],
  Conv: [4, 3, 3],
  ConvTranspose: [4, 3, 2],
  CircularPad: [1],
  ConstantPad: [1, 0.5],
  ReflectionPad: [1],
  ReplicationPad: [1],
  ZeroPad: [1],
};

const pairs = ["BCEWithLogitsLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "PoissonNLLLoss", "SmoothL1Loss"];
const [classIndices, signs] = withBackend("cpu", () => [randint(0, 8, [6]), rand([6]).sub(0.5).sign()] as const);
const half = (x: Tensor): Tensor => x.detach().mul(0.5).abs();

/** A recurrent layer or cell: the outputs and the states. */
const rowOf = (layer: nn.Module, shape: readonly number[], run?: (layer: nn.Module, x: Tensor) => unknown): Row =>
  run ? [layer, shape, (x) => run(layer, x)] : [layer, shape];

const makers: Readonly<Record<string, () => Row>> = {
  ...Object.fromEntries([...plain, ...more, ...rest, ...others].map((name) => [name, () => rowOf(made(name), ofRows)])),
  ...Object.fromEntries(
    Object.entries(byDimension).flatMap(([name, values]) =>
      dimensions.map((of) => [`${name}${of}d`, () => rowOf(made(`${name}${of}d`, ...values), shapes[of])]),
    ),
  ),
  ...Object.fromEntries(
    pairs.map((name) => [name, () => rowOf(made(name), ofRows, (loss, x) => call(loss, x, half(x)))]),
  ),
  Threshold: () => [new nn.Threshold(0.1, 0.2), ofRows],
  Softmax2d: () => [new nn.Softmax2d(), shapes[2]],
  Linear: () => [new nn.Linear(8, 5), ofRows],
  Bilinear: () => rowOf(new nn.Bilinear(8, 8, 3), ofRows, (layer, x) => call(layer, x, x)),
  MLP: () => [new nn.MLP({ width: 8, hidden: 12 }), ofRows],
  Sequential: () => [new nn.Sequential(new nn.Linear(8, 3), new nn.Tanh()), ofRows],
  LayerNorm: () => [new nn.LayerNorm(8), ofRows],
  RMSNorm: () => [new nn.RMSNorm(8), ofRows],
  GroupNorm: () => [new nn.GroupNorm(2, 4), shapes[1]],
  LocalResponseNorm: () => [new nn.LocalResponseNorm(2), shapes[1]],
  ChannelShuffle: () => [new nn.ChannelShuffle(2), shapes[2]],
  PixelShuffle: () => [new nn.PixelShuffle(2), shapes[2]],
  PixelUnshuffle: () => [new nn.PixelUnshuffle(2), shapes[2]],
  Flatten: () => [new nn.Flatten(), shapes[2]],
  Unflatten: () => [new nn.Unflatten(1, [2, 4]), ofRows],
  Unfold: () => [new nn.Unfold(2), shapes[2]],
  Fold: () => [new nn.Fold([3, 3], 2), [1, 8, 4]],
  Upsample: () => [new nn.Upsample({ scaleFactor: 2 }), shapes[2]],
  CosineSimilarity: () => rowOf(new nn.CosineSimilarity(), ofRows, (layer, x) => call(layer, x, half(x))),
  PairwiseDistance: () => rowOf(new nn.PairwiseDistance(), ofRows, (layer, x) => call(layer, x, half(x))),
  BCELoss: () => rowOf(new nn.BCELoss(), ofRows, (loss, x) => call(loss, x.sigmoid(), half(x).clamp(0, 1))),
  CrossEntropyLoss: () => rowOf(new nn.CrossEntropyLoss(), ofRows, (loss, x) => call(loss, x, classIndices)),
  NLLLoss: () => rowOf(new nn.NLLLoss(), ofRows, (loss, x) => call(loss, x, classIndices)),
  MultiMarginLoss: () => rowOf(new nn.MultiMarginLoss(), ofRows, (loss, x) => call(loss, x, classIndices)),
  SoftMarginLoss: () => rowOf(new nn.SoftMarginLoss(), [6], (loss, x) => call(loss, x, signs)),
  HingeEmbeddingLoss: () => rowOf(new nn.HingeEmbeddingLoss(), [6], (loss, x) => call(loss, x, signs)),
  MarginRankingLoss: () => rowOf(new nn.MarginRankingLoss(), [6], (loss, x) => call(loss, x, half(x), signs)),
  CosineEmbeddingLoss: () => rowOf(new nn.CosineEmbeddingLoss(), ofRows, (loss, x) => call(loss, x, half(x), signs)),
  TripletMarginLoss: () => rowOf(new nn.TripletMarginLoss(), ofRows, (loss, x) => call(loss, x, half(x), x.neg())),
  GaussianNLLLoss: () => rowOf(new nn.GaussianNLLLoss(), ofRows, (loss, x) => call(loss, x, half(x), half(x).add(1))),
  LSTM: () => rowOf(new nn.LSTM(8, 5), [3, 2, 8]),
  GRU: () => rowOf(new nn.GRU(8, 5), [3, 2, 8]),
  RNN: () => rowOf(new nn.RNN(8, 5), [3, 2, 8]),
  LSTMCell: () => rowOf(new nn.LSTMCell(8, 5), ofRows),
  GRUCell: () => rowOf(new nn.GRUCell(8, 5), ofRows),
  RNNCell: () => rowOf(new nn.RNNCell(8, 5), ofRows),
  MultiheadAttention: () => rowOf(new nn.MultiheadAttention(8, 2), [2, 5, 8], (layer, x) => call(layer, x, x, x)),
  TransformerEncoderLayer: () => [new nn.TransformerEncoderLayer(8, 2, { dimFeedforward: 12 }), [2, 5, 8]],
  TransformerDecoderLayer: () =>
    rowOf(new nn.TransformerDecoderLayer(8, 2, { dimFeedforward: 12 }), [2, 5, 8], (layer, x) => call(layer, x, x)),
};

/** Returns the tensors in a value: those of arrays and objects, too. */
function tensorsIn(value: unknown): Tensor[] {
  if (orchard.Tensor.isTensor(value)) return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(tensorsIn);
}

function check(name: string, seed: number): void {
  const make = (isCompiled: boolean) => {
    manualSeed(hash(`${name} ${seed}`));
    const [layer, shape, run = (x: Tensor) => call(layer, x)] = makers[name]();
    const step = (x: Tensor) => {
      for (const parameter of layer.parameters()) parameter.grad = null;
      const found = tensorsIn(run(x));
      const losses = found.filter(({ requiresGrad }) => requiresGrad).map((each) => each.square().sum());
      if (losses.length > 0) losses.reduce((a, b) => a.add(b)).backward();
      return [...found, ...layer.parameters().map(({ grad }) => grad?.clone() ?? null)];
    };
    const compiled = compile(step, { state: layer });
    return { shape, compiled, step: isCompiled ? compiled : step };
  };
  const [expected, got] = [make(false), make(true)];
  for (let at = 0; at < 5; at++) {
    const results = ({ step, shape }: typeof got) => {
      manualSeed(at);
      return step(rand(shape).sub(0.4)).map((each) => each?.toArray() ?? null);
    };
    expect(results(got)).toEqual(results(expected));
  }
  expect(got.compiled.explain()).toMatch(/[2-9] replays/);
}

/** Modules of several modules, of integers or of checked positions, and those that other tests replay. */
const elsewhere: ReadonlySet<string> = new Set([
  ...["CTCLoss", "Embedding", "EmbeddingBag", "FractionalMaxPool2d", "FractionalMaxPool3d", "GPT", "Int4Linear"],
  ...["LanguageModel", "Llama"],
  ...["MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "ModuleDict", "ModuleList", "MultiHeadAttention"],
  ...["MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "ParameterDict", "ParameterList", "QuantizedEmbedding"],
  ...["QuantizedLinear", "SwiGLU", "Transformer", "TransformerBlock", "TransformerDecoder", "TransformerEncoder"],
  ...["TripletMarginWithDistanceLoss", "UpsamplingBilinear2d", "UpsamplingNearest2d"],
]);

test("each module of nn is replayed here, or listed", () => {
  const modules = Object.entries(nn).flatMap(([name, value]) =>
    typeof value === "function" && value.prototype instanceof nn.Module ? [name] : [],
  );
  expect(modules.filter((name) => !elsewhere.has(name) && !Object.hasOwn(makers, name))).toEqual([]);
});

describe("replays of every layer", () => {
  const seeds = Array.from({ length: repeats({ usual: 1, all: 8 }) }, (_, seed) => seed);
  const cases = Object.keys(makers).flatMap((name) => seeds.map((seed) => [name, seed] as const));
  test.each(cases)("replays of %s are bit-identical to plain calls, seed %d", (name, seed) =>
    withBackend("cpu", () => orchard.tidy(() => check(name, seed))),
  );
});
