/** Functions above the operations, each with valid arguments. */
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import * as orchard from "../../src/index.ts";
import { testFolder } from "../support/folder.ts";
import { diffusionCalls } from "./diffusion.ts";
import { distributedCalls } from "./distributed.ts";
import { distributionCalls } from "./distributions.ts";
import { linalgCalls } from "./linalg.ts";
import { quantCalls, quantLayerCalls } from "./quant.ts";
import { smallCtc } from "./small_ctc.ts";
import { smallEncoder } from "./small_encoder.ts";
import { smallEncoderDecoder } from "./small_encoder_decoder.ts";
import { smallDepth, smallDetector, smallDual, smallSegmenter, smallVision } from "./small_vision.ts";
import { smallWhisper } from "./small_whisper.ts";
import { spectralCalls } from "./spectra.ts";
import { transformsCalls } from "./transforms.ts";

const { data, io, metrics, nn, ones, optim, tensor, text, zeros, sum } = orchard;

/** The folder where functions write files. */
let folder = "";
const before = process.cwd();

/**
 * Creates a folder for files that functions write. It is the working folder too, since a hostile path may name a new
 * file.
 */
export function enterFolder(): void {
  folder = testFolder("arguments").path;
  process.chdir(folder);
}

export function leaveFolder(): void {
  process.chdir(before);
}
export type Call = (...values: never[]) => unknown;
/** Functions by name, each with valid arguments. */
export type Calls = Readonly<Record<string, readonly [call: Call, values: () => readonly unknown[]]>>;

/** A class as a function. */
const make =
  (Class: new (...values: never[]) => unknown): Call =>
  (...values) =>
    new Class(...values);

const { init } = nn;
const initial = () => zeros([4, 4], { requiresGrad: true });
const initCalls: Calls = {
  "init.uniform_": [init.uniform_ as Call, () => [initial(), 0, 1, { generator: new orchard.Generator(1) }]],
  "init.normal_": [init.normal_ as Call, () => [initial(), { mean: 0, std: 1 }]],
  "init.truncNormal_": [init.truncNormal_ as Call, () => [initial(), { mean: 0, std: 1, a: -1, b: 1 }]],
  "init.constant_": [init.constant_ as Call, () => [initial(), 0.5]],
  "init.ones_": [init.ones_ as Call, () => [initial()]],
  "init.zeros_": [init.zeros_ as Call, () => [initial()]],
  "init.eye_": [init.eye_ as Call, () => [initial()]],
  "init.dirac_": [init.dirac_ as Call, () => [zeros([4, 2, 3]), { groups: 2 }]],
  "init.xavierUniform_": [init.xavierUniform_ as Call, () => [initial(), { gain: 2 }]],
  "init.xavierNormal_": [init.xavierNormal_ as Call, () => [initial(), { gain: 2 }]],
  "init.kaimingUniform_": [
    init.kaimingUniform_ as Call,
    () => [initial(), { a: 0, mode: "fanOut", nonlinearity: "relu" }],
  ],
  "init.kaimingNormal_": [init.kaimingNormal_ as Call, () => [initial(), 0.1, "fanIn", "leakyRelu"]],
  "init.orthogonal_": [init.orthogonal_ as Call, () => [initial(), { gain: 2 }]],
  "init.sparse_": [init.sparse_ as Call, () => [initial(), 0.5, { std: 1 }]],
  "init.calculateGain": [init.calculateGain as Call, () => ["leakyRelu", 0.2]],
};

const leaf = () => zeros([2, 2], { requiresGrad: true });
const { transforms } = data;
const labels = () => tensor([0n, 1n]);
const picture = () => zeros([2, 2, 3], { dtype: "uint8" });
const sizes = { vocabularySize: 5, contextLength: 4, layers: 1, heads: 2, width: 4 };
const model = new nn.GPT(sizes);
const tokenizer = new data.ByteTokenizer();
const decoders = join(packageRoot, "test", "fixtures", "decoders");
const { model: decoder } = await nn.loadModel(join(decoders, "llama"));
const adapter = nn.lora((await nn.loadModel(join(decoders, "qwen3"))).model, { rank: 1 });
const smallTokenizer = {
  model: { type: "BPE", vocab: { a: 0, b: 1 }, merges: [] },
  ...{ normalizer: null, pre_tokenizer: null, post_processor: null, decoder: { type: "ByteLevel" }, added_tokens: [] },
};

const encoders = {
  plain: await smallEncoder("Model"),
  classifier: await smallEncoder("ForSequenceClassification"),
  reranker: await smallEncoder("ForSequenceClassification", 1),
  tagger: await smallEncoder("ForTokenClassification"),
  reader: await smallEncoder("ForQuestionAnswering"),
  filler: await smallEncoder("ForMaskedLM"),
};

const whisper = await smallWhisper();
const ctc = await smallCtc();
const transcript = { text: "a", language: "en", task: "transcribe", duration: 1, segments: [] } as const;
const encoderDecoder = await smallEncoderDecoder();

const layerOptions = { dimFeedforward: 3, dropout: 0, layerNormEps: 1e-5 };
const smallTransformer = new nn.Transformer({
  ...{ dModel: 4, nhead: 2, numEncoderLayers: 1, numDecoderLayers: 1 },
  ...layerOptions,
});

function restoringBackend(call: Call): Call {
  return (...values) => {
    const before = orchard.getBackend();
    try {
      return call(...values);
    } finally {
      orchard.setBackend(before);
    }
  };
}

function restoringLimit(call: Call): Call {
  return (...values) => {
    try {
      return call(...values);
    } finally {
      orchard.setMemoryLimit(null);
    }
  };
}

function restoringStrict(call: Call): Call {
  return (...values) => {
    const before = orchard.isStrict();
    try {
      return call(...values);
    } finally {
      orchard.setStrict(before);
    }
  };
}

/** Each function with valid arguments. */
export const calls: Calls = {
  formatCodepaths: [orchard.formatCodepaths as Call, () => [orchard.codepaths()]],
  Linear: [make(nn.Linear), () => [2, 3, { bias: true, residual: false, dtype: "float32" }]],
  Dropout: [make(nn.Dropout), () => [{ p: 0.5 }]],
  Dropout1d: [make(nn.Dropout1d), () => [{ p: 0.5 }]],
  Dropout2d: [make(nn.Dropout2d), () => [{ p: 0.5 }]],
  Dropout3d: [make(nn.Dropout3d), () => [{ p: 0.5 }]],
  AlphaDropout: [make(nn.AlphaDropout), () => [{ p: 0.5 }]],
  FeatureAlphaDropout: [make(nn.FeatureAlphaDropout), () => [{ p: 0.5 }]],
  "Dropout2d.forward": [(x) => new nn.Dropout2d().forward(x), () => [zeros([1, 2, 2, 2])]],
  Bilinear: [make(nn.Bilinear), () => [2, 3, 4, { bias: true, dtype: "float32" }]],
  "Bilinear.forward": [(x, y) => new nn.Bilinear(2, 3, 4).forward(x, y), () => [zeros([1, 2]), zeros([1, 3])]],
  ReLU: [make(nn.ReLU), () => []],
  ReLU6: [make(nn.ReLU6), () => []],
  SiLU: [make(nn.SiLU), () => []],
  Sigmoid: [make(nn.Sigmoid), () => []],
  LogSigmoid: [make(nn.LogSigmoid), () => []],
  Hardsigmoid: [make(nn.Hardsigmoid), () => []],
  Hardswish: [make(nn.Hardswish), () => []],
  Mish: [make(nn.Mish), () => []],
  SELU: [make(nn.SELU), () => []],
  Softsign: [make(nn.Softsign), () => []],
  Tanhshrink: [make(nn.Tanhshrink), () => []],
  Tanh: [make(nn.Tanh), () => []],
  Hardshrink: [make(nn.Hardshrink), () => [{ lambda: 0.5 }]],
  Softshrink: [make(nn.Softshrink), () => [{ lambda: 0.5 }]],
  Threshold: [make(nn.Threshold), () => [0, 1]],
  GLU: [make(nn.GLU), () => [{ dim: 1 }]],
  Softmin: [make(nn.Softmin), () => [{ dim: 1 }]],
  Softmax2d: [make(nn.Softmax2d), () => []],
  RReLU: [make(nn.RReLU), () => [{ lower: 0.1, upper: 0.2 }]],
  Identity: [make(nn.Identity), () => []],
  LeakyReLU: [make(nn.LeakyReLU), () => [{ negativeSlope: 0.1 }]],
  ELU: [make(nn.ELU), () => [{ alpha: 1 }]],
  CELU: [make(nn.CELU), () => [{ alpha: 1 }]],
  GELU: [make(nn.GELU), () => [{ approximate: "tanh" }]],
  Hardtanh: [make(nn.Hardtanh), () => [{ minVal: -1, maxVal: 1 }]],
  Softplus: [make(nn.Softplus), () => [{ beta: 1, threshold: 20 }]],
  Softmax: [make(nn.Softmax), () => [{ dim: 1 }]],
  LogSoftmax: [make(nn.LogSoftmax), () => [{ dim: 1 }]],
  PReLU: [make(nn.PReLU), () => [{ numParameters: 2, init: 0.5, dtype: "float32" }]],
  Flatten: [make(nn.Flatten), () => [{ startDim: 0, endDim: -1 }]],
  Unflatten: [make(nn.Unflatten), () => [1, [2, 2]]],
  ModuleList: [make(nn.ModuleList), () => [[new nn.ReLU()]]],
  ModuleDict: [make(nn.ModuleDict), () => []],
  ParameterList: [make(nn.ParameterList), () => [[zeros([2])]]],
  ParameterDict: [make(nn.ParameterDict), () => []],
  "ParameterList.append": [(x) => new nn.ParameterList().append(x), () => [zeros([2])]],
  "ParameterDict.set": [(name, x) => new nn.ParameterDict().set(name, x), () => ["scale", zeros([2])]],
  PixelShuffle: [make(nn.PixelShuffle), () => [2]],
  PixelUnshuffle: [make(nn.PixelUnshuffle), () => [2]],
  ChannelShuffle: [make(nn.ChannelShuffle), () => [2]],
  Unfold: [make(nn.Unfold), () => [2, { dilation: 1, padding: 1, stride: 2 }]],
  Fold: [make(nn.Fold), () => [4, 2, { dilation: 1, padding: 1, stride: 2 }]],
  UpsamplingNearest2d: [make(nn.UpsamplingNearest2d), () => [{ scaleFactor: 2 }]],
  UpsamplingBilinear2d: [make(nn.UpsamplingBilinear2d), () => [{ size: 4 }]],
  FractionalMaxPool2d: [make(nn.FractionalMaxPool2d), () => [2, { outputRatio: 0.5, returnIndices: true }]],
  CTCLoss: [make(nn.CTCLoss), () => [{ blank: 1, reduction: "sum", zeroInfinity: true }]],
  "CTCLoss.forward": [
    (x, targets, times, labels) => new nn.CTCLoss().forward(x, targets, times, labels),
    () => [zeros([2, 1, 2]), tensor([[1n]]), [2], [1]],
  ],
  TripletMarginWithDistanceLoss: [
    make(nn.TripletMarginWithDistanceLoss),
    () => [{ distanceFunction: (a: orchard.Tensor) => sum(a), margin: 1, swap: true }],
  ],
  L1Loss: [make(nn.L1Loss), () => [{ reduction: "sum" }]],
  MSELoss: [make(nn.MSELoss), () => [{ reduction: "sum" }]],
  SmoothL1Loss: [make(nn.SmoothL1Loss), () => [{ beta: 1, reduction: "sum" }]],
  HuberLoss: [make(nn.HuberLoss), () => [{ delta: 1, reduction: "sum" }]],
  PoissonNLLLoss: [make(nn.PoissonNLLLoss), () => [{ logInput: true, full: false, eps: 0 }]],
  GaussianNLLLoss: [make(nn.GaussianNLLLoss), () => [{ full: false, eps: 1 }]],
  HingeEmbeddingLoss: [make(nn.HingeEmbeddingLoss), () => [{ margin: 1 }]],
  MarginRankingLoss: [make(nn.MarginRankingLoss), () => [{ margin: 1 }]],
  SoftMarginLoss: [make(nn.SoftMarginLoss), () => [{ reduction: "none" }]],
  MultiLabelMarginLoss: [make(nn.MultiLabelMarginLoss), () => [{ reduction: "none" }]],
  CosineEmbeddingLoss: [make(nn.CosineEmbeddingLoss), () => [{ margin: 0.5 }]],
  TripletMarginLoss: [make(nn.TripletMarginLoss), () => [{ margin: 1, p: 2, eps: 0, swap: true }]],
  KLDivLoss: [make(nn.KLDivLoss), () => [{ logTarget: true, reduction: "batchmean" }]],
  CrossEntropyLoss: [make(nn.CrossEntropyLoss), () => [zeros([2]), { ignoreIndex: 1, labelSmoothing: 0.5 }]],
  NLLLoss: [make(nn.NLLLoss), () => [zeros([2]), { ignoreIndex: 1 }]],
  BCELoss: [make(nn.BCELoss), () => [zeros([2]), { reduction: "sum" }]],
  BCEWithLogitsLoss: [make(nn.BCEWithLogitsLoss), () => [zeros([2]), { posWeight: zeros([2]) }]],
  MultiMarginLoss: [make(nn.MultiMarginLoss), () => [zeros([2]), { p: 2, margin: 1 }]],
  MultiLabelSoftMarginLoss: [make(nn.MultiLabelSoftMarginLoss), () => [zeros([2]), { reduction: "sum" }]],
  CosineSimilarity: [make(nn.CosineSimilarity), () => [{ dim: 1, eps: 0 }]],
  PairwiseDistance: [make(nn.PairwiseDistance), () => [{ p: 1, eps: 0, keepdim: true }]],
  Conv1d: [make(nn.Conv1d), () => [2, 4, 3, { stride: 1, padding: "same", dilation: 1, groups: 2, bias: true }]],
  ConvTranspose1d: [make(nn.ConvTranspose1d), () => [2, 4, 3, { stride: 2, padding: 1, outputPadding: 1, groups: 2 }]],
  MaxPool1d: [
    make(nn.MaxPool1d),
    () => [2, { stride: 1, padding: 1, dilation: 1, ceilMode: true, returnIndices: true }],
  ],
  AdaptiveMaxPool1d: [make(nn.AdaptiveMaxPool1d), () => [2, { returnIndices: true }]],
  LPPool1d: [make(nn.LPPool1d), () => [2, 3, { stride: 1, ceilMode: true }]],
  MaxUnpool1d: [make(nn.MaxUnpool1d), () => [2, { stride: 1, padding: 1 }]],
  "MaxUnpool1d.forward": [
    (x, indices, size) => new nn.MaxUnpool1d(1).forward(x, indices, size),
    () => [zeros([1, 2]), zeros([1, 2], { dtype: "int64" }), [2]],
  ],
  ZeroPad1d: [make(nn.ZeroPad1d), () => [1]],
  ConstantPad1d: [make(nn.ConstantPad1d), () => [1, 2]],
  ReflectionPad1d: [make(nn.ReflectionPad1d), () => [1]],
  ReplicationPad1d: [make(nn.ReplicationPad1d), () => [1]],
  CircularPad1d: [make(nn.CircularPad1d), () => [1]],
  AvgPool1d: [make(nn.AvgPool1d), () => [2, { stride: 1, padding: 1, ceilMode: true, countIncludePad: false }]],
  AdaptiveAvgPool1d: [make(nn.AdaptiveAvgPool1d), () => [2]],
  BatchNorm1d: [make(nn.BatchNorm1d), () => [2, { eps: 1, momentum: 0.5, affine: true, trackRunningStats: true }]],
  InstanceNorm1d: [make(nn.InstanceNorm1d), () => [2, { eps: 1, affine: true }]],
  Conv2d: [make(nn.Conv2d), () => [2, 4, 3, { stride: 1, padding: "same", dilation: 1, groups: 2, bias: true }]],
  ConvTranspose2d: [make(nn.ConvTranspose2d), () => [2, 4, 3, { stride: 2, padding: 1, outputPadding: 1, groups: 2 }]],
  MaxPool2d: [
    make(nn.MaxPool2d),
    () => [2, { stride: 1, padding: 1, dilation: 1, ceilMode: true, returnIndices: true }],
  ],
  AdaptiveMaxPool2d: [make(nn.AdaptiveMaxPool2d), () => [2, { returnIndices: true }]],
  LPPool2d: [make(nn.LPPool2d), () => [2, 3, { stride: 1, ceilMode: true }]],
  MaxUnpool2d: [make(nn.MaxUnpool2d), () => [2, { stride: 1, padding: 1 }]],
  "MaxUnpool2d.forward": [
    (x, indices, size) => new nn.MaxUnpool2d(1).forward(x, indices, size),
    () => [zeros([1, 2, 2]), zeros([1, 2, 2], { dtype: "int64" }), [2, 2]],
  ],
  ZeroPad2d: [make(nn.ZeroPad2d), () => [1]],
  ConstantPad2d: [make(nn.ConstantPad2d), () => [1, 2]],
  ReflectionPad2d: [make(nn.ReflectionPad2d), () => [1]],
  ReplicationPad2d: [make(nn.ReplicationPad2d), () => [1]],
  CircularPad2d: [make(nn.CircularPad2d), () => [1]],
  AvgPool2d: [make(nn.AvgPool2d), () => [2, { stride: 1, padding: 1, ceilMode: true, countIncludePad: false }]],
  AdaptiveAvgPool2d: [make(nn.AdaptiveAvgPool2d), () => [2]],
  BatchNorm2d: [make(nn.BatchNorm2d), () => [2, { eps: 1, momentum: 0.5, affine: true, trackRunningStats: true }]],
  InstanceNorm2d: [make(nn.InstanceNorm2d), () => [2, { eps: 1, affine: true }]],
  Conv3d: [make(nn.Conv3d), () => [2, 4, 3, { stride: 1, padding: "same", dilation: 1, groups: 2, bias: true }]],
  ConvTranspose3d: [make(nn.ConvTranspose3d), () => [2, 4, 3, { stride: 2, padding: 1, outputPadding: 1, groups: 2 }]],
  MaxPool3d: [
    make(nn.MaxPool3d),
    () => [2, { stride: 1, padding: 1, dilation: 1, ceilMode: true, returnIndices: true }],
  ],
  AdaptiveMaxPool3d: [make(nn.AdaptiveMaxPool3d), () => [2, { returnIndices: true }]],
  LPPool3d: [make(nn.LPPool3d), () => [2, 3, { stride: 1, ceilMode: true }]],
  MaxUnpool3d: [make(nn.MaxUnpool3d), () => [2, { stride: 1, padding: 1 }]],
  "MaxUnpool3d.forward": [
    (x, indices, size) => new nn.MaxUnpool3d(1).forward(x, indices, size),
    () => [zeros([1, 2, 2, 2]), zeros([1, 2, 2, 2], { dtype: "int64" }), [2, 2, 2]],
  ],
  ZeroPad3d: [make(nn.ZeroPad3d), () => [1]],
  ConstantPad3d: [make(nn.ConstantPad3d), () => [1, 2]],
  ReflectionPad3d: [make(nn.ReflectionPad3d), () => [1]],
  ReplicationPad3d: [make(nn.ReplicationPad3d), () => [1]],
  CircularPad3d: [make(nn.CircularPad3d), () => [1]],
  AvgPool3d: [make(nn.AvgPool3d), () => [2, { stride: 1, padding: 1, ceilMode: true, countIncludePad: false }]],
  AdaptiveAvgPool3d: [make(nn.AdaptiveAvgPool3d), () => [2]],
  BatchNorm3d: [make(nn.BatchNorm3d), () => [2, { eps: 1, momentum: 0.5, affine: true, trackRunningStats: true }]],
  InstanceNorm3d: [make(nn.InstanceNorm3d), () => [2, { eps: 1, affine: true }]],
  GroupNorm: [make(nn.GroupNorm), () => [2, 4, { eps: 1, affine: true }]],
  LayerNorm: [make(nn.LayerNorm), () => [4, { eps: 1e-5, bias: true }]],
  RMSNorm: [make(nn.RMSNorm), () => [4, { eps: 1e-5 }]],
  Embedding: [make(nn.Embedding), () => [4, 2, { paddingIndex: 1 }]],
  EmbeddingBag: [make(nn.EmbeddingBag), () => [4, 2, { mode: "sum", paddingIndex: 1, includeLastOffset: false }]],
  RNN: [make(nn.RNN), () => [2, 3, 1, "relu", { bias: true, batchFirst: true, dropout: 0.5, bidirectional: true }]],
  GRU: [make(nn.GRU), () => [2, 3, 2, { bias: true, batchFirst: true, dropout: 0.5, bidirectional: true }]],
  LSTM: [make(nn.LSTM), () => [2, 3, 2, { bias: true, batchFirst: true, projSize: 1, dtype: "float32" }]],
  RNNCell: [make(nn.RNNCell), () => [2, 3, { bias: true, nonlinearity: "relu" }]],
  GRUCell: [make(nn.GRUCell), () => [2, 3, { bias: true }]],
  LSTMCell: [make(nn.LSTMCell), () => [2, 3, { bias: true }]],
  "GRU.forward": [
    (x, inputs) => new nn.GRU(2, 3).forward(x, inputs),
    () => [zeros([4, 2, 2]), { hidden: zeros([1, 2, 3]), lengths: [4, 1] }],
  ],
  "LSTM.forward": [
    (x, inputs) => new nn.LSTM(2, 3).forward(x, inputs),
    () => [zeros([4, 2, 2]), { hidden: zeros([1, 2, 3]), cell: zeros([1, 2, 3]), lengths: [4, 1] }],
  ],
  "LSTMCell.forward": [
    (x, state) => new nn.LSTMCell(2, 3).forward(x, state),
    () => [zeros([4, 2]), { hidden: zeros([4, 3]), cell: zeros([4, 3]) }],
  ],
  "GRUCell.forward": [(x, hidden) => new nn.GRUCell(2, 3).forward(x, hidden), () => [zeros([4, 2]), zeros([4, 3])]],
  MLP: [make(nn.MLP), () => [{ width: 4, hidden: 8, bias: true, approximate: "tanh" }]],
  SwiGLU: [make(nn.SwiGLU), () => [{ width: 4, hidden: 8, bias: true }]],
  MultiHeadAttention: [make(nn.MultiHeadAttention), () => [{ width: 4, heads: 2, keyValueHeads: 1, rotary: {} }]],
  MultiheadAttention: [
    make(nn.MultiheadAttention),
    () => [4, 2, { dropout: 0.5, bias: true, addBiasKv: true, addZeroAttn: true, kdim: 3, vdim: 2, batchFirst: true }],
  ],
  "MultiheadAttention.forward": [
    (query, key, value, inputs) =>
      new nn.MultiheadAttention(4, 2, { batchFirst: true }).forward(query, key, value, inputs),
    () => [
      ...[zeros([1, 2, 4]), zeros([1, 3, 4]), zeros([1, 3, 4])],
      {
        keyPaddingMask: zeros([1, 3], { dtype: "bool" }),
        needWeights: true,
        attnMask: zeros([2, 3]),
        averageAttnWeights: false,
        isCausal: true,
      },
    ],
  ],
  TransformerEncoderLayer: [make(nn.TransformerEncoderLayer), () => [4, 2, { ...layerOptions, normFirst: true }]],
  TransformerDecoderLayer: [make(nn.TransformerDecoderLayer), () => [4, 2, { ...layerOptions, activation: "gelu" }]],
  "TransformerEncoderLayer.forward": [
    (x, inputs) => new nn.TransformerEncoderLayer(4, 2, layerOptions).forward(x, inputs),
    () => [zeros([2, 4]), { srcMask: zeros([2, 2]), srcKeyPaddingMask: zeros([2]), isCausal: true }],
  ],
  "TransformerDecoderLayer.forward": [
    (x, memory, inputs) => new nn.TransformerDecoderLayer(4, 2, layerOptions).forward(x, memory, inputs),
    () => [zeros([2, 4]), zeros([3, 4]), { tgtMask: zeros([2, 2]), memoryMask: zeros([2, 3]), tgtIsCausal: true }],
  ],
  TransformerEncoder: [
    make(nn.TransformerEncoder),
    () => [new nn.TransformerEncoderLayer(4, 2, layerOptions), 1, { norm: new nn.LayerNorm(4) }],
  ],
  TransformerDecoder: [
    make(nn.TransformerDecoder),
    () => [new nn.TransformerDecoderLayer(4, 2, layerOptions), 1, { norm: null }],
  ],
  "TransformerEncoder.forward": [
    (x, inputs) => new nn.TransformerEncoder(new nn.TransformerEncoderLayer(4, 2, layerOptions), 1).forward(x, inputs),
    () => [zeros([2, 4]), { mask: zeros([2, 2]), srcKeyPaddingMask: zeros([2]), isCausal: true }],
  ],
  "TransformerDecoder.forward": [
    (x, memory, inputs) =>
      new nn.TransformerDecoder(new nn.TransformerDecoderLayer(4, 2, layerOptions), 1).forward(x, memory, inputs),
    () => [zeros([2, 4]), zeros([3, 4]), { memoryIsCausal: true, memoryKeyPaddingMask: zeros([3]) }],
  ],
  Transformer: [
    make(nn.Transformer),
    () => [{ dModel: 4, nhead: 2, numEncoderLayers: 1, numDecoderLayers: 1, ...layerOptions }],
  ],
  "Transformer.forward": [
    (src, tgt, inputs) => smallTransformer.forward(src, tgt, inputs),
    () => [zeros([2, 4]), zeros([3, 4]), { srcMask: zeros([2, 2]), srcIsCausal: true, tgtIsCausal: true }],
  ],
  "Transformer.generateSquareSubsequentMask": [
    nn.Transformer.generateSquareSubsequentMask as Call,
    () => [3, { dtype: "float64" }],
  ],
  TransformerBlock: [make(nn.TransformerBlock), () => [{ width: 4, heads: 2, feedForward: "gelu", norm: "rmsNorm" }]],
  GPT: [make(nn.GPT), () => [{ ...sizes, dropout: 0.1, activation: "gelu" }]],
  Llama: [make(nn.Llama), () => [{ ...sizes, ropeBase: 10, hidden: 32 }]],
  AttentionCache: [make(nn.AttentionCache), () => [3, { format: "q8_0", window: 2 }]],
  KeyValueCache: [make(nn.KeyValueCache), () => [1, 3, { format: "float16", windows: [2] }]],
  KeyValueCacheBatch: [make(nn.KeyValueCacheBatch), () => [[new nn.KeyValueCache(1, 3)]]],
  "LanguageModel.newCache": [(options) => model.newCache(options), () => [{ format: "q8_0" }]],
  "KeyValueCache.canTruncate": [(length) => new nn.KeyValueCache(1, 3).canTruncate(length), () => [0]],
  "KeyValueCache.truncate": [(length) => new nn.KeyValueCache(1, 3).truncate(length), () => [0]],
  weightNorm: [nn.weightNorm as Call, () => [new nn.Linear(2, 3), { name: "bias", dim: 0 }]],
  spectralNorm: [
    nn.spectralNorm as Call,
    () => [new nn.Linear(2, 3), { nPowerIterations: 1, eps: 0, dim: null, generator: new orchard.Generator(1) }],
  ],
  registerParametrization: [nn.registerParametrization as Call, () => [new nn.Linear(2, 2), "weight", new nn.Tanh()]],
  removeParametrizations: [
    nn.removeParametrizations as Call,
    () => [nn.weightNorm(new nn.Linear(2, 3)), "weight", { leaveParametrized: true }],
  ],
  Upsample: [make(nn.Upsample), () => [{ scaleFactor: 2, mode: "bilinear", alignCorners: true }]],
  LocalResponseNorm: [make(nn.LocalResponseNorm), () => [2, { alpha: 1, beta: 1, k: 1 }]],
  "LocalResponseNorm.forward": [(x) => new nn.LocalResponseNorm(2).forward(x), () => [zeros([1, 2, 2])]],
  Sequential: [make(nn.Sequential), () => [new nn.Linear(2, 2), new nn.Dropout()]],
  registerForwardPreHook: [(hook) => new nn.Linear(2, 2).registerForwardPreHook(hook), () => [() => undefined]],
  registerForwardHook: [(hook) => new nn.Linear(2, 2).registerForwardHook(hook), () => [() => undefined]],
  registerFullBackwardHook: [(hook) => new nn.Linear(2, 2).registerFullBackwardHook(hook), () => [() => undefined]],
  registerFullBackwardPreHook: [
    (hook) => new nn.Linear(2, 2).registerFullBackwardPreHook(hook),
    () => [() => undefined],
  ],
  "Module.to": [(dtype) => new nn.Linear(2, 2).to(dtype), () => ["float64"]],
  "Module.train": [(mode) => new nn.Linear(2, 2).train(mode), () => [true]],
  "Module.loadStateDict": [
    (state, options) => new nn.Linear(2, 2).loadStateDict(state, options),
    () => [new nn.Linear(2, 2).stateDict(), { strict: true }],
  ],
  "Linear.forward": [(x) => new nn.Linear(2, 2).forward(x), () => [zeros([1, 2])]],
  "LayerNorm.forward": [(x) => new nn.LayerNorm(2).forward(x), () => [zeros([1, 2])]],
  "Dropout.forward": [(x) => new nn.Dropout().forward(x), () => [zeros([1, 2])]],
  "Embedding.forward": [(x) => new nn.Embedding(3, 2).forward(x), () => [tensor([1], { dtype: "int64" })]],
  "GPT.forward": [
    (tokens, inputs) => model.forward(tokens, inputs),
    () => [tensor([[1]], { dtype: "int32" }), { padding: [0] }],
  ],
  gpt2Initialization: [nn.gpt2Initialization as Call, () => [2, 0.1]],
  llamaInitialization: [nn.llamaInitialization as Call, () => [0.1]],
  normalOf: [nn.normalOf as Call, () => [0.1]],
  summary: [nn.summary as Call, () => [new nn.Linear(2, 2), zeros([1, 2])]],
  checkpoint: [nn.checkpoint as Call, () => [(x: orchard.Tensor) => sum(x), leaf()]],
  lora: [
    (...values) => (nn.lora as (...own: unknown[]) => orchard.nn.LoraAdapter)(...values).remove(),
    () => [decoder, { rank: 1, alpha: 2, targets: ["query"], dropout: 0.1 }],
  ],
  saveLora: [nn.saveLora as Call, () => [adapter, join(folder, "adapter")]],
  loadLora: [
    (...values) => (nn.loadLora as (...own: unknown[]) => orchard.nn.LoraAdapter)(...values).remove(),
    () => [decoder, join(decoders, "llama", "adapter")],
  ],
  loadModel: [
    nn.loadModel as Call,
    () => [join(decoders, "gpt2"), { dtype: "float32", quantize: "q8_0", onReport: () => undefined }],
  ],
  generate: [
    nn.generate as Call,
    () => [model, [1], { maxTokens: 1, temperature: 0, stopTokens: [2], cache: "float16" }],
  ],
  generateText: [nn.generateText as Call, () => [model, tokenizer, "a", { maxTokens: 1, stop: ["b"] }]],
  embed: [nn.embed as Call, () => [model, [[1, 2], [3]], { pooling: "last", normalize: false }]],
  "embed of an encoder": [
    nn.embed as Call,
    () => [encoders.plain, ["ab", [1, 2]], { pooling: "max", normalize: false, truncateDim: 3, prompt: "a", batch: 2 }],
  ],
  "Encoder.forward": [
    (tokens, inputs) => encoders.plain.forward(tokens, inputs),
    () => [tensor([[1, 2]], { dtype: "int32" }), { lengths: [1], tokenTypes: tensor([[0, 1]], { dtype: "int32" }) }],
  ],
  classify: [nn.classify as Call, () => [encoders.classifier, ["ab", ["a", "b"]], { batch: 1 }]],
  embeddingBackward: [
    nn.embeddingBackward as Call,
    () => [encoders.plain, [["ab"], ["b"]], nn.multipleNegativesRankingLoss, { batch: 1 }],
  ],
  multipleNegativesRankingLoss: [
    nn.multipleNegativesRankingLoss as Call,
    () => [orchard.ones([2, 3]), orchard.ones([2, 3]), { negatives: [orchard.ones([1, 3])], scale: 2 }],
  ],
  cosentLoss: [nn.cosentLoss as Call, () => [orchard.ones([2, 3]), orchard.ones([2, 3]), tensor([0, 1]), { scale: 2 }]],
  rerank: [nn.rerank as Call, () => [encoders.reranker, "a", ["b"], { topK: 1, batch: 1 }]],
  tag: [nn.tag as Call, () => [encoders.tagger, ["ab"], { aggregate: "none", batch: 1 }]],
  answer: [nn.answer as Call, () => [encoders.reader, "a", "ab", { topK: 1, maxAnswerTokens: 2 }]],
  "embed of images and texts": [
    nn.embed as Call,
    () => [smallDual(encoders.plain.tokenizer), ["ab", [1, 2]], { normalize: false, batch: 2 }],
  ],
  embedImages: [
    nn.embedImages as Call,
    () => [smallVision(), [ones([3, 4, 4], { dtype: "uint8" })], { normalize: false, batch: 2 }],
  ],
  classifyImages: [
    nn.classifyImages as Call,
    () => [smallVision(2), [ones([3, 4, 4], { dtype: "uint8" })], { batch: 2 }],
  ],
  detectObjects: [
    nn.detectObjects as Call,
    () => [smallDetector(), [ones([3, 4, 4], { dtype: "uint8" })], { threshold: 0.1, batch: 2 }],
  ],
  segmentImage: [
    nn.segmentImage as Call,
    () => [smallSegmenter(), [ones([3, 4, 4], { dtype: "uint8" })], { batch: 2 }],
  ],
  estimateDepth: [nn.estimateDepth as Call, () => [smallDepth(), [ones([3, 4, 4], { dtype: "uint8" })], { batch: 2 }]],
  drawSegmentation: [nn.drawSegmentation as Call, () => [tensor([[0, 1]], { dtype: "int32" })]],
  drawDepth: [nn.drawDepth as Call, () => [tensor([[0, 1]])]],
  drawObjects: [
    nn.drawObjects as Call,
    () => [
      [{ label: "a", score: 0.5, box: { left: 0, top: 1, right: 2, bottom: 3 } }],
      { width: 4, height: 4, href: "a.png" },
    ],
  ],
  "classifyImages with labels": [
    nn.classifyImages as Call,
    () => [
      smallDual(encoders.plain.tokenizer),
      [ones([3, 4, 4], { dtype: "uint8" })],
      { labels: ["a", "b"], template: "a{}", batch: 2 },
    ],
  ],
  "VisionEncoder.hiddenStates": [
    (pixels, options) => smallVision().hiddenStates(pixels, options),
    () => [ones([1, 3, 4, 4]), { blocks: -1 }],
  ],
  ImageProcessor: [
    make(nn.ImageProcessor),
    () => [
      {
        ...{ size: { kind: "exact", height: 2, width: 2 }, filter: "lanczos", crop: [1, 1], rescale: 0.5 },
        ...{ mean: [0.5], std: [2], resizesFloats: false },
      },
    ],
  ],
  "ImageProcessor.sizeOf": [(image) => new nn.ImageProcessor({}).sizeOf(image), () => [[2, 3]]],
  "ImageProcessor.process": [
    (images) => new nn.ImageProcessor({}).process(images),
    () => [[ones([3, 4, 4], { dtype: "uint8" })]],
  ],
  createModel: [nn.createModel as Call, () => [{ model_type: "missing" }, { dtype: "float32" }]],
  loadImageProcessor: [nn.loadImageProcessor as Call, () => ["missing"]],
  loadChatProcessor: [nn.loadChatProcessor as Call, () => ["missing"]],
  fillMask: [nn.fillMask as Call, () => [encoders.filler, "a[MASK]", { topK: 1 }]],
  logMelFeatures: [nn.logMelFeatures as Call, () => [zeros([400]), { nMels: 8 }]],
  transcribe: [
    nn.transcribe as Call,
    () => [
      whisper,
      [zeros([1280])],
      {
        ...{ language: "en", task: "translate", timestamps: false, wordTimestamps: false, temperature: [0] },
        ...{ compressionRatioThreshold: 3, logProbabilityThreshold: -2, noSpeechThreshold: 0.5, sampleRate: 16_000 },
        ...{ conditionOnPreviousText: false, initialPrompt: "a", maxTokens: 2, batch: 1 },
      },
    ],
  ],
  "transcribe with CTC": [nn.transcribe as Call, () => [ctc, [zeros([1280])], { wordTimestamps: true, batch: 1 }]],
  formatTranscription: [nn.formatTranscription as Call, () => [transcript, "srt"]],
  generateBatch: [
    nn.generateBatch as Call,
    () => [
      encoderDecoder,
      [[1, 2], [0]],
      {
        ...{ numBeams: 2, numReturnSequences: 2, maxTokens: 2, minTokens: 1, lengthPenalty: 0.5, badWords: [[0, 1]] },
        ...{ earlyStopping: "never", noRepeatNgramSize: 3, repetitionPenalty: 1.5, forcedBeginToken: 1, batch: 1 },
        ...{ forcedEndToken: 2, stopTokens: [2], temperature: 0, topK: 2, topP: 0.5, minP: 0.1, seed: 1 },
      },
    ],
  ],
  textToText: [
    nn.textToText as Call,
    () => [encoderDecoder, ["ab"], { maxTokens: 2, prefix: "a", truncate: true, numBeams: 2 }],
  ],
  summarize: [nn.summarize as Call, () => [encoderDecoder, ["ab"], { maxTokens: 2, prefix: "b" }]],
  translate: [nn.translate as Call, () => [encoderDecoder, ["ab"], { maxTokens: 2, source: "a", target: "b" }]],
  "EncoderDecoder.decode": [
    (tokens, encoded, inputs) => orchard.noGrad(() => encoderDecoder.decode(tokens, encoded, inputs)),
    () => {
      const states = encoderDecoder.encode(tensor([[1, 2]], { dtype: "int32" }));
      return [tensor([[0]], { dtype: "int32" }), states, { cache: encoderDecoder.newCache(), lastOnly: true }];
    },
  ],
  Batcher: [make(nn.Batcher), () => [model, { slots: 2, queue: 3, promptChunk: 4, cache: "q8_0" }]],
  "Batcher.submit": [
    (...values: never[]) => {
      using batcher = new nn.Batcher(model);
      const { submit } = batcher as unknown as { submit: (...values: unknown[]) => orchard.nn.TokenStream };
      submit.apply(batcher, values).cancel();
    },
    () => [[1], { maxTokens: 1, topK: 2, logitBias: { 2: 1 }, stopTokens: [2], logProbabilities: 1 }],
  ],
  loadTokenizer: [text.loadTokenizer as Call, () => ["missing"]],
  PretrainedTokenizer: [make(text.PretrainedTokenizer), () => [smallTokenizer, { name: "a" }]],
  "PretrainedTokenizer.encode": [
    (own, options) => new text.PretrainedTokenizer(smallTokenizer).encode(own, options),
    () => ["ab", { addSpecialTokens: false }],
  ],
  "PretrainedTokenizer.encodePair": [
    (own, pair, options) => new text.PretrainedTokenizer(smallTokenizer).encodePair(own, pair, options),
    () => ["ab", "a", { addSpecialTokens: false, maxTokens: 2 }],
  ],
  "PretrainedTokenizer.decode": [
    (tokens, options) => new text.PretrainedTokenizer(smallTokenizer).decode(tokens, options),
    () => [[0, 1], { skipSpecialTokens: false }],
  ],
  "PretrainedTokenizer.decoder": [
    (options) => new text.PretrainedTokenizer(smallTokenizer).decoder(options),
    () => [{ isStart: true }],
  ],
  compileConstraint: [text.compileConstraint as Call, () => [tokenizer, { schema: { type: "integer" } }]],
  ChatTemplate: [make(text.ChatTemplate), () => ["{{ messages[0].content }}", { bosToken: "<s>" }]],
  "ChatTemplate.render": [
    (messages, options) => new text.ChatTemplate("{{ messages[0].content }}", {}).render(messages, options),
    () => [[{ role: "user", content: "a" }], { addGenerationPrompt: false, variables: { a: 1 } }],
  ],
  AdamW: [make(optim.AdamW), () => [[leaf()], { lr: 1, betas: [0.9, 0.9], eps: 1, weightDecay: 0, amsgrad: true }]],
  Adam: [make(optim.Adam), () => [[leaf()], { lr: 1 }]],
  SGD: [make(optim.SGD), () => [[leaf()], { lr: 1, momentum: 0.9, nesterov: true, dampening: 0 }]],
  Lion: [make(optim.Lion), () => [[leaf()], { lr: 1, betas: [0.9, 0.9] }]],
  RMSprop: [make(optim.RMSprop), () => [[leaf()], { lr: 1, alpha: 0.9, eps: 1, momentum: 0.5, centered: true }]],
  Adagrad: [make(optim.Adagrad), () => [[leaf()], { lr: 1, lrDecay: 0.5, initialAccumulatorValue: 1, eps: 1 }]],
  Adadelta: [make(optim.Adadelta), () => [[leaf()], { lr: 1, rho: 0.5, eps: 1, weightDecay: 1 }]],
  Adamax: [make(optim.Adamax), () => [[leaf()], { lr: 1, betas: [0.9, 0.9], eps: 1, weightDecay: 1 }]],
  NAdam: [make(optim.NAdam), () => [[leaf()], { lr: 1, momentumDecay: 0.5, decoupledWeightDecay: true }]],
  RAdam: [make(optim.RAdam), () => [[leaf()], { lr: 1, betas: [0.9, 0.9], decoupledWeightDecay: true }]],
  Adafactor: [make(optim.Adafactor), () => [[leaf()], { lr: 1, eps: [null, 1], beta2Decay: -1, d: 1, maximize: true }]],
  LBFGS: [
    make(optim.LBFGS),
    () => [[leaf()], { lr: 1, maxIter: 1, maxEval: null, historySize: 1, lineSearchFn: "strongWolfe" }],
  ],
  "LBFGS.step": [
    (closure) => new optim.LBFGS([leaf()], { maxIter: 1 }).step(closure),
    () => [() => sum(zeros([2], { requiresGrad: true }))],
  ],
  "LBFGS.loadStateDict": [
    (state) => new optim.LBFGS([leaf()]).loadStateDict(state),
    () => [new optim.LBFGS([leaf()]).stateDict()],
  ],
  Muon: [make(optim.Muon), () => [[leaf()], { lr: 1, newtonSchulzSteps: 1 }]],
  "Optimizer.setLearningRate": [(lr, group) => new optim.SGD([leaf()]).setLearningRate(lr, group), () => [1, 0]],
  "Optimizer.scaleLearningRate": [(factor) => new optim.SGD([leaf()]).scaleLearningRate(factor), () => [1]],
  "Optimizer.loadStateDict": [
    (state) => new optim.SGD([leaf()]).loadStateDict(state),
    () => [new optim.SGD([leaf()]).stateDict()],
  ],
  GradScaler: [make(optim.GradScaler), () => [{ initialScale: 2, growthInterval: 3 }]],
  "GradScaler.scale": [(loss) => new optim.GradScaler().scale(loss), () => [zeros([])]],
  "GradScaler.step": [(optimizer) => new optim.GradScaler().step(optimizer), () => [new optim.SGD([leaf()])]],
  "GradScaler.unscale": [(optimizer) => new optim.GradScaler().unscale(optimizer), () => [new optim.SGD([leaf()])]],
  "GradScaler.loadStateDict": [
    (state) => new optim.GradScaler().loadStateDict(state),
    () => [new optim.GradScaler().stateDict()],
  ],
  clipGradNorm: [optim.clipGradNorm as Call, () => [[leaf()], 1, { normType: 2, errorIfNonfinite: false }]],
  clipGradValue: [optim.clipGradValue as Call, () => [[leaf()], 1]],
  "optim.linear": [optim.linear as Call, () => [{ total: 3, from: 1, to: 0 }]],
  "optim.step": [optim.step as Call, () => [{ stepSize: 3, gamma: 0.5 }]],
  "optim.multiStep": [optim.multiStep as Call, () => [{ milestones: [3, 4], gamma: 0.5 }]],
  "optim.exponential": [optim.exponential as Call, () => [{ gamma: 0.5 }]],
  "optim.polynomial": [optim.polynomial as Call, () => [{ total: 3, power: 2 }]],
  "optim.cosineAnnealing": [optim.cosineAnnealing as Call, () => [{ total: 3, floor: 0 }]],
  "optim.cosineWarmRestarts": [optim.cosineWarmRestarts as Call, () => [{ period: 3, multiple: 2, floor: 0 }]],
  "optim.cyclic": [optim.cyclic as Call, () => [{ base: 0.1, stepsUp: 3, mode: "exponential", gamma: 0.5 }]],
  "optim.chained": [optim.chained as Call, () => [[optim.constant()]]],
  "optim.sequential": [optim.sequential as Call, () => [[optim.constant(), optim.constant()], [3]]],
  EarlyStopping: [make(optim.EarlyStopping), () => [{ patience: 3, mode: "max", minDelta: 0.1 }]],
  "EarlyStopping.step": [(x) => new optim.EarlyStopping().step(x), () => [1]],
  "EarlyStopping.loadStateDict": [
    (state) => new optim.EarlyStopping().loadStateDict(state),
    () => [new optim.EarlyStopping().stateDict()],
  ],
  ReduceOnPlateau: [make(optim.ReduceOnPlateau), () => [new optim.SGD([leaf()]), { patience: 3, mode: "max" }]],
  "ReduceOnPlateau.step": [(x) => new optim.ReduceOnPlateau(new optim.SGD([leaf()])).step(x), () => [1]],
  "ReduceOnPlateau.loadStateDict": [
    (state) => new optim.ReduceOnPlateau(new optim.SGD([leaf()])).loadStateDict(state),
    () => [{ best: 1, badSteps: 0, cooldown: 0 }],
  ],
  AveragedWeights: [make(optim.AveragedWeights), () => [[leaf()], { decay: 0.5 }]],
  "AveragedWeights.withAverages": [(body) => new optim.AveragedWeights([leaf()]).withAverages(body), () => [() => 1]],
  "AveragedWeights.loadStateDict": [
    (state) => new optim.AveragedWeights([leaf()]).loadStateDict(state),
    () => [{ updates: 1, tensors: { 0: zeros([2, 2]) } }],
  ],
  cosineWithWarmup: [optim.cosineWithWarmup as Call, () => [{ warmup: 1, total: 3, floor: 0 }]],
  oneCycle: [optim.oneCycle as Call, () => [{ total: 3, anneal: "linear" }]],
  ...distributedCalls,
  ...diffusionCalls,
  ...distributionCalls,
  ...linalgCalls,
  ...spectralCalls,
  ...transformsCalls,
  ...quantCalls,
  ...quantLayerCalls,
  backward: [orchard.backward as Call, () => [sum(leaf()), tensor(1), { retainGraph: true, createGraph: false }]],
  grad: [orchard.grad as Call, () => gradArguments()],
  valueAndGrad: [orchard.valueAndGrad as Call, () => [(x: orchard.Tensor) => sum(x), 1]],
  "valueAndGrad's function": [(x) => orchard.valueAndGrad((y: orchard.Tensor) => sum(y))(x), () => [zeros([2])]],
  gradcheck: [
    orchard.gradcheck as Call,
    () => [(x: orchard.Tensor) => x, [zeros([1], { dtype: "float64", requiresGrad: true })], { epsilon: 1e-6 }],
  ],
  detach: [orchard.detach as Call, () => [zeros([2])]],
  noGrad: [orchard.noGrad as Call, () => [() => 1]],
  autocast: [orchard.autocast as Call, () => ["bfloat16", () => 1]],
  ...initCalls,
  enableGrad: [orchard.enableGrad as Call, () => [() => 1]],
  tidy: [orchard.tidy as Call, () => [() => zeros([2])]],
  keep: [orchard.keep as Call, () => [zeros([2])]],
  compile: [
    orchard.compile as Call,
    () => [(x: orchard.Tensor) => x, { state: [new nn.Linear(2, 2)], variants: 2, fuse: false }],
  ],
  "CompiledFunction.save": [
    (...values) => {
      const saved = orchard.compile((x: orchard.Tensor) => x);
      for (let call = 0; call < 3; call++) orchard.withBackend("cpu", () => saved(zeros([2])));
      return (saved.save as Call)(...values);
    },
    () => [join(folder, "a.program")],
  ],
  loadProgram: [orchard.loadProgram as Call, () => [join(folder, "none.program")]],
  withBackend: [orchard.withBackend as Call, () => ["cpu", () => 1]],
  withStrict: [orchard.withStrict as Call, () => [true, () => 1]],
  setBackend: [restoringBackend(orchard.setBackend as Call), () => ["cpu"]],
  setStrict: [restoringStrict(orchard.setStrict as Call), () => [false]],
  setMemoryLimit: [restoringLimit(orchard.setMemoryLimit as Call), () => [2 ** 40]],
  setMemoryFraction: [restoringLimit(orchard.setMemoryFraction as Call), () => [1]],
  manualSeed: [orchard.manualSeed as Call, () => [1]],
  detectAnomaly: [orchard.detectAnomaly as Call, () => [() => 1, { infinity: true }]],
  override: [
    (...values) => (orchard.override as (...own: never[]) => Disposable)(...values)[Symbol.dispose](),
    () => ["exp", "cpu", () => undefined, { name: "own", when: () => false }],
  ],
  withOverride: [orchard.withOverride as Call, () => ["exp", "cpu", () => undefined, () => 1, { name: "own" }]],
  route: [
    (...values) => (orchard.route as (...own: never[]) => Disposable)(...values)[Symbol.dispose](),
    () => ["softmax", "cpu"],
  ],
  withRoute: [orchard.withRoute as Call, () => ["softmax", "cpu", () => 1]],
  Generator: [make(orchard.Generator), () => [1]],
  "Generator.manualSeed": [(seed) => new orchard.Generator().manualSeed(seed), () => [1]],
  "Generator.setState": [(state) => new orchard.Generator().setState(state), () => [{ seed: 1n, offset: 0n }]],
  ByteTokenizer: [(text) => tokenizer.encode(text), () => ["a"]],
  "ByteTokenizer.decode": [(tokens) => tokenizer.decode(tokens), () => [[97]]],
  "ByteTokenizer.bytesOf": [(token) => tokenizer.bytesOf(token), () => [97]],
  Gpt2Tokenizer: [(text) => new data.Gpt2Tokenizer().encode(text), () => ["a"]],
  "Gpt2Tokenizer.decode": [(tokens) => new data.Gpt2Tokenizer().decode(tokens), () => [[97]]],
  BpeTokenizer: [(text) => data.trainBpe("a b", { size: 257 }).encode(text as string), () => ["a"]],
  "BpeTokenizer.decode": [
    (tokens) => data.trainBpe("a b", { size: 257 }).decode(tokens as Iterable<number>),
    () => [[97]],
  ],
  accuracy: [metrics.accuracy as Call, () => [labels(), labels()]],
  confusionMatrix: [metrics.confusionMatrix as Call, () => [labels(), labels(), { classes: 2 }]],
  precision: [metrics.precision as Call, () => [labels(), labels(), { average: "macro", zeroDivision: 1 }]],
  recall: [metrics.recall as Call, () => [labels(), labels(), { average: "macro", zeroDivision: 1 }]],
  f1Score: [metrics.f1Score as Call, () => [labels(), labels(), { average: "macro", zeroDivision: 1 }]],
  rocAuc: [metrics.rocAuc as Call, () => [tensor([0.5, 0.25]), labels(), { average: "macro" }]],
  perplexity: [metrics.perplexity as Call, () => [zeros([2, 3]), labels(), { ignoreIndex: 0 }]],
  trainBpe: [data.trainBpe as Call, () => ["a text", { size: 260 }]],
  TensorDataset: [make(data.TensorDataset), () => [zeros([2, 2]), zeros([2])]],
  Subset: [make(data.Subset), () => [new data.TensorDataset(zeros([2])), [1, 0]]],
  ConcatDataset: [make(data.ConcatDataset), () => [[new data.TensorDataset(zeros([2]))]]],
  SummaryWriter: [make(io.SummaryWriter), () => [join(folder, "events")]],
  "SummaryWriter.addScalar": [
    (...values) => {
      using log = new io.SummaryWriter(join(folder, "events"));
      log.addScalar(...(values as unknown as [string, number, number]));
    },
    () => ["loss", 0.5, 3],
  ],
  loadCsv: [io.loadCsv as Call, () => [join(folder, "a.csv"), { delimiter: ";", header: false }]],
  loadParquet: [io.loadParquet as Call, () => [join(folder, "a.parquet"), { columns: ["a"], dtypes: { a: "int32" } }]],
  progress: [data.progress as Call, () => [[1, 2], { label: "items", total: 2 }]],
  "Progress.show": [(figures) => data.progress([1]).show(figures as never), () => [{ loss: 0.5 }]],
  IterableDataset: [make(data.IterableDataset), () => [() => [1, 2], { shuffleBuffer: 2 }]],
  weightedRandomSampler: [data.weightedRandomSampler as Call, () => [[1, 2], { count: 1, replacement: false }]],
  MappedDataset: [make(data.MappedDataset), () => [new data.TensorDataset(zeros([2])), () => 1]],
  ImageFolder: [
    make(data.ImageFolder),
    () => [folder, { mode: "gray", channels: "last", orient: false, maxPixels: 9, transform: (x: unknown) => x }],
  ],
  "transforms.compose": [transforms.compose as Call, () => [[(x: unknown) => x]]],
  "transforms.toFloat": [transforms.toFloat as Call, () => [{ dtype: "float64" }]],
  "transforms.normalize": [
    transforms.normalize as Call,
    () => [
      [1, 2],
      [3, 4],
    ],
  ],
  "transforms.resize": [transforms.resize as Call, () => [4, { mode: "bicubic", antialias: false, maxSize: 9 }]],
  "transforms.centerCrop": [transforms.centerCrop as Call, () => [[2, 3]]],
  "transforms.pad": [transforms.pad as Call, () => [[1, 2, 3, 4], { mode: "reflect", value: 1 }]],
  "transforms.randomCrop": [transforms.randomCrop as Call, () => [2, { padding: 1, mode: "constant", value: 2 }]],
  "transforms.randomResizedCrop": [
    transforms.randomResizedCrop as Call,
    () => [2, { mode: "nearest", antialias: false, scale: [0.1, 1], ratio: [1, 2] }],
  ],
  "transforms.randomHorizontalFlip": [transforms.randomHorizontalFlip as Call, () => [{ p: 0.5 }]],
  "transforms.randomVerticalFlip": [transforms.randomVerticalFlip as Call, () => [{ p: 0.5 }]],
  "transforms.rotate": [transforms.rotate as Call, () => [30, { mode: "bilinear", fill: 1 }]],
  "transforms.affine": [
    transforms.affine as Call,
    () => [{ angle: 1, translate: [1, 2], scale: 2, shear: [1, 2], mode: "bilinear", fill: 1 }],
  ],
  "transforms.randomRotation": [transforms.randomRotation as Call, () => [[1, 2], { mode: "bilinear", fill: 1 }]],
  "transforms.randomAffine": [
    transforms.randomAffine as Call,
    () => [3, { translate: [0.1, 0.1], scale: [1, 2], shear: [1, 2, 3, 4], mode: "bilinear", fill: 1 }],
  ],
  "transforms.adjustBrightness": [transforms.adjustBrightness as Call, () => [2]],
  "transforms.adjustContrast": [transforms.adjustContrast as Call, () => [2]],
  "transforms.adjustSaturation": [transforms.adjustSaturation as Call, () => [2]],
  "transforms.adjustHue": [transforms.adjustHue as Call, () => [0.2]],
  "transforms.grayscale": [transforms.grayscale as Call, () => [{ channels: 3 }]],
  "transforms.colorJitter": [
    transforms.colorJitter as Call,
    () => [{ brightness: 0.1, contrast: [1, 2], saturation: 0.1, hue: 0.1 }],
  ],
  randomSplit: [data.randomSplit as Call, () => [new data.TensorDataset(zeros([4])), [3, 1], { seed: 1 }]],
  collate: [data.collate as Call, () => [[1, 2]]],
  DataLoader: [
    make(data.DataLoader),
    () => [new data.TensorDataset(zeros([4])), 2, true, { seed: 1, dropLast: true, prefetch: 1 }],
  ],
  "DataLoader.setState": [
    (state) => new data.DataLoader(new data.TensorDataset(zeros([4]))).setState(state),
    () => [{ epoch: 0, batch: 1, seed: 0n }],
  ],
  openWorkerDataset: [data.openWorkerDataset as Call, () => [join(folder, "none.ts"), { workers: 1 }]],
  openTextDataset: [
    data.openTextDataset as Call,
    () => [{ paths: import.meta.path, tokenizer, contextLength: 4, heldOut: 0.1, seed: 1, cacheFolder: folder }],
  ],
  openSafetensors: [io.openSafetensors as Call, () => [join(folder, "none.safetensors")]],
  loadWeights: [
    io.loadWeights as Call,
    () => [join(folder, "none.safetensors"), { quantization: { bits: 4, groupSize: 64, symmetric: false } }],
  ],
  loadSafetensors: [io.loadSafetensors as Call, () => [join(folder, "none.safetensors")]],
  saveSafetensors: [
    io.saveSafetensors as Call,
    () => [join(folder, "a.safetensors"), { x: zeros([2]) }, { metadata: { a: "b" } }],
  ],
  loadNpy: [io.loadNpy as Call, () => [join(folder, "none.npy")]],
  saveNpy: [io.saveNpy as Call, () => [join(folder, "a.npy"), zeros([2])]],
  loadNpz: [io.loadNpz as Call, () => [join(folder, "none.npz")]],
  saveNpz: [io.saveNpz as Call, () => [join(folder, "a.npz"), { x: zeros([2]) }, { compressed: true }]],
  loadAudio: [io.loadAudio as Call, () => [join(folder, "none.wav"), { maxSamples: 9 }]],
  loadImage: [
    io.loadImage as Call,
    () => [join(folder, "none.png"), { mode: "gray", channels: "last", orient: false, maxPixels: 9 }],
  ],
  saveImage: [
    io.saveImage as Call,
    () => [join(folder, "a.png"), picture(), { channels: "last", quality: 9, lossless: true }],
  ],
  encodeImage: [
    io.encodeImage as Call,
    () => [picture(), { format: "webp", channels: "last", quality: 9, lossless: true }],
  ],
  loadOnnx: [io.loadOnnx as Call, () => [join(folder, "none.onnx")]],
  saveOnnx: [
    io.saveOnnx as Call,
    () => [new orchard.nn.ReLU(), { x: zeros([2]) }, { path: join(folder, "a.onnx"), axes: { x: { 0: "n" } } }],
  ],
  openGguf: [io.openGguf as Call, () => [join(folder, "none.gguf")]],
  saveGguf: [
    io.saveGguf as Call,
    () => [join(folder, "a.gguf"), { x: zeros([2]) }, { metadata: { a: "b" }, alignment: 32 }],
  ],
  saveCheckpoint: [
    io.saveCheckpoint as Call,
    () => [join(folder, "run"), { model: { x: zeros([2]) }, step: 1, generator: new orchard.Generator() }, { keep: 1 }],
  ],
  loadCheckpoint: [io.loadCheckpoint as Call, () => [join(folder, "run")]],
};

function gradArguments() {
  const x = leaf();
  return [[sum(x)], [x], { allowUnused: true, gradOutputs: [tensor(1)], createGraph: false }];
}
